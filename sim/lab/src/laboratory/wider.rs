//! The rarer options of drawn schedules, as values.

use sim::entropy::Site;

use super::options::Options;

/// A rarer change of the drawn options, for a mistake that shows in no other run.
pub(super) struct Wider {
    /// Its name, after which its source of randomness is called.
    pub(super) name: &'static str,
    pub(super) probability: f64,
    pub(super) change: fn(&mut Options, &mut Site),
}

impl Wider {
    pub(super) const fn new(
        name: &'static str,
        probability: f64,
        change: fn(&mut Options, &mut Site),
    ) -> Self {
        Self { name, probability, change }
    }
}
