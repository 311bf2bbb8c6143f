//! What a schedule must give: for each arm, the verdicts and the writes that the resource took and refused.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::names::{as_text, names};

names! {
    /// A verdict of the audit (DESIGN §7).
    pub enum Verdict as "verdict" {
        /// Two holders were inside their critical sections at once.
        Overlap = "overlap",
        /// The resource accepted a write whose token is not above all it had accepted.
        StaleWrite = "stale_write",
        /// It accepted a write of an older grant after a newer holder had read or claimed the resource.
        LateWrite = "late_write",
        /// A read-modify-write was overwritten by one that had not seen it.
        LostUpdate = "lost_update",
        /// An acquire that began after an earlier grant had returned got a token that is not greater.
        TokenRegressed = "token_regressed",
        /// A client deleted or extended a lock that it did not own.
        ForeignRelease = "foreign_release",
        /// A waiter was not served within the bound, or a key stayed locked past its TTL.
        Stuck = "stuck",
        /// A FIFO lock served a later arrival first.
        Unfair = "unfair",
    }
}

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
}

/// A write, as expectations name it: `worker:token`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Write {
    /// The worker that sent it.
    pub worker: String,
    /// Its fencing token.
    pub token: u64,
}

/// A text that names no write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no write: give the worker and its fencing token, such as a:1")]
pub struct WriteError(String);

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

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.worker, self.token)
    }
}

impl FromStr for Write {
    type Err = WriteError;

    fn from_str(text: &str) -> Result<Self, WriteError> {
        let error = || WriteError(text.into());
        let (worker, token) = text.rsplit_once(':').ok_or_else(error)?;
        let token: dlock::FencingToken = token.parse().map_err(|_| error())?;
        if worker.is_empty() {
            return Err(error());
        }
        Ok(Self { worker: worker.into(), token: token.as_u64() })
    }
}

as_text!(Write, "a write, such as \"a:1\"");
