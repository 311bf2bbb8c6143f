//! The report of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use history::text::{self, Names, holder};
use history::{Event, Kind, Message, Name, Summary, Verdict, VerdictKind, WriteBy};
use serde::{Deserialize, Serialize};

use super::check::Finding;
use super::steps::Step;
use crate::probes::Probes;
use crate::world::capture::Capture;

/// The requests to one simulated server in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Served {
    /// The server's name in the world.
    pub name: String,
    /// The number of requests that it carried out, including those within Lua scripts.
    pub commands: u64,
    /// The number of times that it refused a command as unknown, by the command.
    pub unknown: BTreeMap<String, u64>,
}

/// The report of one run.
///
/// # Example
///
/// ```
/// use sim::{Process, Sim};
/// use std::time::Duration;
///
/// let report = Sim::new(7)
///     .process("a", |process: Process| async move { process.sleep(Duration::from_secs(1)).await })
///     .run()?;
/// assert!(report.verdicts.is_empty() && report.findings.is_empty());
/// // An hour would take no longer: only the simulated time passes.
/// assert!(report.simulated >= Duration::from_secs(1));
/// # Ok::<(), sim::RunError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// The seed of its randomness.
    pub seed: u64,
    /// The verdicts of the audit, in order of time.
    pub verdicts: Vec<Verdict>,
    /// The checks that did not hold, in the order in which they were added.
    pub findings: Vec<Finding>,
    /// The hash of the history: equal hashes mean equal histories, byte for byte.
    pub hash: u64,
    /// The history, in order of true time.
    pub events: Vec<Event>,
    /// The names of the run's locks and resources.
    pub names: Names,
    /// The lock servers whose majority decides ([`Rules::servers`](history::Rules::servers)).
    pub servers: Vec<Name>,
    /// The time that passed in the simulated world.
    pub simulated: Duration,
    /// The number of requests that the simulated servers carried out, including those within Lua scripts.
    pub commands: u64,
    /// The names of the locks under which processes entered sections by
    /// [`Process::section`](crate::Process::section).
    pub sections: BTreeSet<String>,
    /// The hosts that code on tokio's interface looked up, each behind the name of the process.
    pub(crate) look_ups: BTreeSet<(String, String)>,
    /// The requests to each simulated server, in the order in which the servers were added.
    pub served: Vec<Served>,
    /// True for each fault that struck, in the order in which the faults were added.
    pub struck: Vec<bool>,
    /// The points that processes passed, if the run recorded them
    /// ([`Sim::record_steps`](crate::Sim::record_steps)).
    pub steps: Vec<Step>,
    /// The messages that processes sent each other, if the run recorded them
    /// ([`Sim::record_messages`](crate::Sim::record_messages)): in the order of their sending.
    pub messages: Vec<Message>,
    /// The bytes of all connections, if the run recorded its messages.
    pub capture: Option<Capture>,
    /// The results of the probes. They are no part of the history, nor of its hash.
    pub probes: Probes,
}

impl Report {
    /// Returns the trace as text, one line per event.
    pub fn trace(&self) -> String {
        text::trace(&self.events, &self.names)
    }

    /// Returns the writes by worker, and the numbers of leases that were granted and ended.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.events)
    }

    /// Returns the kinds of the verdicts.
    pub fn kinds(&self) -> BTreeSet<VerdictKind> {
        self.verdicts.iter().map(|verdict| verdict.kind).collect()
    }

    /// Returns the number of faults that struck.
    pub fn faults_struck(&self) -> usize {
        self.struck.iter().filter(|struck| **struck).count()
    }

    /// Returns the retries that the resource recognised.
    pub fn repeated(&self) -> Vec<WriteBy> {
        let repeated = |event: &Event| match &event.kind {
            Kind::WriteRepeated { owner, token, .. } => {
                Some(WriteBy { worker: Name::from(holder(owner.as_ref())), token: *token })
            }
            _ => None,
        };
        self.events.iter().filter_map(repeated).collect()
    }
}
