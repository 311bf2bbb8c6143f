//! What a schedule must give: for each arm, the verdicts and the writes that the resource took and refused.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::names::names;

pub use resource::audit::{VerdictKind as Verdict, WriteBy as Write};

names! {
    /// One of the two ways in which a schedule is run.
    pub enum Arm as "arm" {
        /// The resource ignores fencing tokens.
        Unfenced = "unfenced",
        /// The resource refuses stale fencing tokens.
        Fenced = "fenced",
    }
}

/// What each arm must give. An arm that is left out is not run, unless both are: then nothing is expected, and both run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// With a resource that ignores tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfenced: Option<Outcome>,
    /// With a resource that refuses stale tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fenced: Option<Outcome>,
}

/// What one arm must give. A list that is left out is not compared; an empty one says that there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// All verdicts, each named once however often it was given.
    pub verdicts: BTreeSet<Verdict>,
    /// The writes that the resource accepted, in order; a repeated one is not accepted again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Vec<Write>>,
    /// The writes that it refused, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Vec<Write>>,
    /// The fenced reads that it refused, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_reads: Option<Vec<Write>>,
    /// The retries that it recognised as writes accepted before, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated: Option<Vec<Write>>,
    /// How many leases workers got; a grant whose reply never reached its worker is not among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grants: Option<u32>,
    /// How many updates workers with `mode = "cas"` made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updates: Option<u32>,
}

impl Expect {
    /// Whether nothing is expected.
    pub fn is_empty(&self) -> bool {
        self.unfenced.is_none() && self.fenced.is_none()
    }

    /// What the arm must give, if the schedule says.
    pub fn of(&self, arm: Arm) -> Option<&Outcome> {
        match arm {
            Arm::Unfenced => self.unfenced.as_ref(),
            Arm::Fenced => self.fenced.as_ref(),
        }
    }

    /// The arms to run, the unfenced one first.
    pub fn arms(&self) -> impl Iterator<Item = Arm> {
        Arm::ALL.iter().copied().filter(|arm| self.is_empty() || self.of(*arm).is_some())
    }
}
