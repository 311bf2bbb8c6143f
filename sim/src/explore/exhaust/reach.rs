//! The reach of a fault: the steps of a run that it may change.

use std::collections::BTreeSet;

use crate::Sim;
use crate::faults::Role;
use crate::sim::{Group, Step};

/// The steps that a fault touches. It changes other steps, and their order, only through these.
#[derive(Clone, Debug)]
pub(super) enum Reach {
    /// The turns of these processes.
    Running(Members),
    /// The turns of these processes, and all that happens on their connections.
    Life(Members),
    /// The bytes sent on these directed links.
    Links(BTreeSet<(String, String)>),
    /// All that happens on the connections of these two processes.
    Connections(String, String),
    /// The readings of this process's wall clock.
    WallClock(Members),
}

/// Processes, by name and by number.
#[derive(Clone, Debug)]
pub(super) struct Members {
    names: BTreeSet<String>,
    group: Group,
}

impl Members {
    fn of(sim: &Sim, names: BTreeSet<String>) -> Self {
        let mut group = Group::default();
        for (number, name) in sim.names().iter().enumerate() {
            if names.contains(name) {
                group.insert(number);
            }
        }
        Self { names, group }
    }

    /// Returns the process alone, or all members of its cluster, which exchange messages that are no steps.
    fn with_peers(sim: &Sim, process: &str) -> Self {
        let is_member = !sim.clusters().is_empty() && sim.scene().role(process) == Some(Role::Server);
        if is_member { Self::servers(sim) } else { Self::of(sim, BTreeSet::from([process.to_owned()])) }
    }

    fn servers(sim: &Sim) -> Self {
        let names = sim.scene().with_role(Role::Server).into_iter().chain(sim.clusters().iter().cloned());
        Self::of(sim, names.collect())
    }
}

impl Reach {
    /// Returns the reach of a fault that stops the process.
    pub(super) fn running(sim: &Sim, process: &str) -> Self {
        Self::Running(Members::with_peers(sim, process))
    }

    /// Returns the reach of a fault that ends the process and its connections.
    pub(super) fn life(sim: &Sim, process: &str) -> Self {
        Self::Life(Members::with_peers(sim, process))
    }

    /// Returns the reach of a fault of all servers.
    pub(super) fn servers(sim: &Sim) -> Self {
        Self::Running(Members::servers(sim))
    }

    /// Returns the reach of a fault of the process's wall clock. A server also sets timers by its clock, and
    /// these are no readings.
    pub(super) fn wall_clock(sim: &Sim, process: &str) -> Self {
        match sim.scene().role(process) {
            Some(Role::Server) => Self::running(sim, process),
            _ => Self::WallClock(Members::of(sim, BTreeSet::from([process.to_owned()]))),
        }
    }

    /// Returns the reach of a fault of the bytes that `from` sends to `to`.
    pub(super) fn one_way(from: &str, to: &str) -> Self {
        Self::Links(BTreeSet::from([(from.to_owned(), to.to_owned())]))
    }

    /// Returns the reach of a fault of the connections between two processes.
    pub(super) fn connections(one: &str, other: &str) -> Self {
        Self::Connections(one.to_owned(), other.to_owned())
    }

    /// Returns true if the fault touches the step, or anything since the step before.
    pub(super) fn touches(&self, step: &Step) -> bool {
        let process = step.process.as_str();
        match self {
            Self::Running(members) => step.ran.meets(members.group),
            Self::Life(members) => {
                let is_member = |name: &str| members.names.contains(name);
                step.ran.meets(members.group) || is_member(process) || step.peer().is_some_and(is_member)
            }
            Self::Links(links) => {
                let is_link = |peer: &str| links.contains(&(process.to_owned(), peer.to_owned()));
                is_sent(step) && step.peer().is_some_and(is_link)
            }
            Self::Connections(one, other) => step
                .peer()
                .is_some_and(|peer| (process == one && peer == other) || (process == other && peer == one)),
            Self::WallClock(members) => step.read_wall.meets(members.group),
        }
    }

    /// Returns true if the fault may have an effect after the last step: it may cause new steps.
    pub(super) fn outlasts(&self) -> bool {
        !matches!(self, Self::Links(_))
    }
}

/// Returns true if the step sends something to its peer.
fn is_sent(step: &Step) -> bool {
    let point = step.point.as_str();
    ["opens to ", "accepts from ", "sends to ", "closes to "].iter().any(|verb| point.starts_with(verb))
}
