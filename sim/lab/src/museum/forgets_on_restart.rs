//! B33: the resource keeps the highest token in memory only, and forgets it when it restarts.

use super::store::{Mistake, Rows};

/// Forgets all rows at each start.
pub(super) struct ForgetsOnRestart;

impl Mistake for ForgetsOnRestart {
    fn begin(_: &Rows) -> Rows {
        Rows::default()
    }
}
