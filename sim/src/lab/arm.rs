//! The two ways in which a schedule of the laboratory is run.

use resource::Fencing;

use crate::names::names;

names! {
    /// One of the two ways in which a schedule is run.
    pub enum Arm as "arm" {
        /// The resource ignores fencing tokens.
        Unfenced = "unfenced",
        /// The resource refuses stale fencing tokens.
        Fenced = "fenced",
    }
}

/// The names of both.
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
    /// What the resource does about tokens.
    pub fn fencing(self) -> Fencing {
        match self {
            Self::Unfenced => Fencing::Off,
            Self::Fenced => Fencing::On,
        }
    }

    /// The arms that the schedule has expectations of, the unfenced one first; both if it has none.
    pub fn of(expect: &crate::sim::Expect) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|arm| expect.runs(arm.name()))
    }
}
