//! The rules.

use super::{Invalid, Schedule};

impl Schedule {
    /// Whether it can be run.
    ///
    /// # Errors
    ///
    /// [`Invalid`] for the first rule that it breaks.
    pub fn validate(&self) -> Result<(), Invalid> {
        Ok(())
    }
}
