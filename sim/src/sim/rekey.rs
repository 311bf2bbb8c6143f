//! New seeds during a run.

use serde::{Deserialize, Serialize};

use crate::span::Span;

/// A new seed for the rest of a run: draws before `at` stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rekey {
    /// The true time from which latencies, owner tokens and backoffs are drawn from the new seed.
    pub at: Span,
    /// The new seed.
    pub seed: u64,
}
