//! The two arms of a schedule of the laboratory: fencing off and fencing on.

use resource::Fencing;

history::names! {
    /// An arm of a schedule: a run with fencing off or on.
    pub enum Arm as "arm" {
        /// The resource ignores fencing tokens.
        Unfenced = "unfenced",
        /// The resource refuses stale fencing tokens.
        Fenced = "fenced",
    }
}

/// The names of both arms.
pub(super) const ARMS: [&str; 2] = [Arm::Unfenced.name(), Arm::Fenced.name()];

impl From<Fencing> for Arm {
    fn from(fencing: Fencing) -> Self {
        match fencing {
            Fencing::Off => Self::Unfenced,
            Fencing::On => Self::Fenced,
        }
    }
}

impl Arm {
    /// Returns the resource's check of tokens in this arm.
    pub fn fencing(self) -> Fencing {
        match self {
            Self::Unfenced => Fencing::Off,
            Self::Fenced => Fencing::On,
        }
    }

    /// Returns the arms for which the schedule has expectations, the unfenced one first; both if it has none.
    pub fn of(expect: &sim::sim::Expect) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|arm| expect.runs(arm.name()))
    }
}
