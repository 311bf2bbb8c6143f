//! The two arms of a run: with fencing and without.

use serde::{Deserialize, Serialize};

/// Whether the resource refuses stale tokens: the two arms of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fence {
    /// The unsafe baseline: every write is taken.
    Off,
    /// Stale tokens are refused.
    On,
}

impl Fence {
    /// Before and after.
    pub const BOTH: [Self; 2] = [Self::Off, Self::On];

    /// As the flag `--fence` has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
        }
    }
}
