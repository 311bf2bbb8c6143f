//! What a fault touches: the steps of a run whose outcome it may change.

use std::collections::BTreeSet;

use crate::Sim;
use crate::faults::Role;
use crate::sim::Step;

/// The steps that a fault touches. Those of another step, and their order, it changes only through these.
#[derive(Clone, Debug)]
pub(super) enum Reach {
    /// All that these processes do: the beginning of each turn of theirs, and each use of the network.
    Running(BTreeSet<String>),
    /// The same, with all that happens on their connections.
    Life(BTreeSet<String>),
    /// What is sent on these directed links.
    Links(BTreeSet<(String, String)>),
    /// What happens on the connections of these two processes.
    Connections(String, String),
    /// The steps of this process that follow a look at its wall clock.
    WallClock(String),
}

impl Reach {
    /// A fault that stops the process.
    pub(super) fn running(sim: &Sim, process: &str) -> Self {
        Self::Running(peers(sim, process))
    }

    /// A fault that ends the process and its connections.
    pub(super) fn life(sim: &Sim, process: &str) -> Self {
        Self::Life(peers(sim, process))
    }

    /// A fault of all servers.
    pub(super) fn servers(sim: &Sim) -> Self {
        Self::Running(servers(sim))
    }

    /// A fault of the process's wall clock. A server reads it, and sets timers by it, unseen.
    pub(super) fn wall_clock(sim: &Sim, process: &str) -> Self {
        match sim.scene().role(process) {
            Some(Role::Server) => Self::running(sim, process),
            _ => Self::WallClock(process.to_owned()),
        }
    }

    /// A fault of what `from` sends to `to`.
    pub(super) fn one_way(from: &str, to: &str) -> Self {
        Self::Links(BTreeSet::from([(from.to_owned(), to.to_owned())]))
    }

    /// A fault of the connections between two processes.
    pub(super) fn connections(one: &str, other: &str) -> Self {
        Self::Connections(one.to_owned(), other.to_owned())
    }

    /// Returns whether the fault touches the step at `index`.
    pub(super) fn touches(&self, steps: &[Step], index: usize) -> bool {
        let step = &steps[index];
        let process = step.process.as_str();
        match self {
            Self::Running(names) => names.contains(process) && begins_a_turn(steps, index),
            Self::Life(names) => {
                names.contains(process) || step.peer().is_some_and(|peer| names.contains(peer))
            }
            Self::Links(links) => {
                let is_link = |peer: &str| links.contains(&(process.to_owned(), peer.to_owned()));
                is_sent(step) && step.peer().is_some_and(is_link)
            }
            Self::Connections(one, other) => step
                .peer()
                .is_some_and(|peer| (process == one && peer == other) || (process == other && peer == one)),
            Self::WallClock(name) => process == name && step.reads_wall,
        }
    }

    /// Returns whether the fault may have an effect although no step is left: it may cause new ones.
    pub(super) fn outlasts(&self) -> bool {
        !matches!(self, Self::Links(_))
    }

    /// Returns whether the fault is about one of these processes alone.
    pub(super) fn names(&self, process: &str) -> bool {
        match self {
            Self::Running(names) | Self::Life(names) => names.len() == 1 && names.contains(process),
            Self::Links(links) => links.iter().any(|(from, to)| from == process || to == process),
            Self::Connections(one, other) => one == process || other == process,
            Self::WallClock(name) => name == process,
        }
    }
}

/// Returns the process alone, or all members of its cluster: they ask each other unseen.
fn peers(sim: &Sim, process: &str) -> BTreeSet<String> {
    let is_member = !sim.clusters().is_empty() && sim.scene().role(process) == Some(Role::Server);
    if is_member { servers(sim) } else { BTreeSet::from([process.to_owned()]) }
}

fn servers(sim: &Sim) -> BTreeSet<String> {
    sim.scene().with_role(Role::Server).into_iter().chain(sim.clusters().iter().cloned()).collect()
}

/// Returns whether a fault between the process's step before and this one can take hold: there is an await
/// between them. Every turn of a task takes some time, and a use of the network is an await.
fn begins_a_turn(steps: &[Step], index: usize) -> bool {
    let step = &steps[index];
    let before = steps[..index].iter().rev().find(|other| other.process == step.process);
    step.peer().is_some() || before.is_none_or(|before| before.at < step.at)
}

/// Returns whether something enters the link from the step's process to its peer.
fn is_sent(step: &Step) -> bool {
    let point = step.point.as_str();
    ["opens to ", "accepts from ", "sends to ", "closes to "].iter().any(|verb| point.starts_with(verb))
}
