//! The steps of a run that a fault touches.

use std::collections::BTreeSet;

use crate::Sim;
use crate::faults::{Link, Reach, Role};
use crate::sim::{Group, Step};

/// The reach of a fault in one world.
#[derive(Clone, Debug)]
pub(super) struct Touched {
    reach: Reach,
    /// The processes whose turns or clocks it touches, if any.
    members: Members,
}

/// Processes, by name and by number.
#[derive(Clone, Debug, Default)]
struct Members {
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

impl Touched {
    pub(super) fn of(sim: &Sim, reach: Reach) -> Self {
        let is_server = |process: &str| sim.scene().role(process) == Some(Role::Server);
        let reach = match reach {
            // A server also sets timers by its clock, and these are no readings.
            Reach::WallClock(process) if is_server(&process) => Reach::Turns(process),
            reach => reach,
        };
        let members = match &reach {
            Reach::Turns(process) | Reach::Life(process) => Members::with_peers(sim, process),
            Reach::Servers => Members::servers(sim),
            Reach::WallClock(process) => Members::of(sim, BTreeSet::from([process.clone()])),
            Reach::Everything | Reach::Links(_) | Reach::Connections(_) => Members::default(),
        };
        Self { reach, members }
    }

    /// Returns true if the fault touches the step, or anything since the step before.
    pub(super) fn contains(&self, step: &Step) -> bool {
        let (process, members) = (step.process.as_str(), &self.members);
        match &self.reach {
            Reach::Everything => true,
            Reach::Turns(_) | Reach::Servers => step.ran.meets(members.group),
            Reach::Life(_) => {
                let is_member = |name: &str| members.names.contains(name);
                step.ran.meets(members.group) || is_member(process) || step.peer().is_some_and(is_member)
            }
            Reach::Links(links) => {
                let is_link = |peer: &str| links.iter().any(|link| link.from == process && link.to == peer);
                is_sent(step) && step.peer().is_some_and(is_link)
            }
            Reach::Connections(Link { from, to }) => step
                .peer()
                .is_some_and(|peer| (process == from && peer == to) || (process == to && peer == from)),
            Reach::WallClock(_) => step.read_wall.meets(members.group),
        }
    }

    /// Returns true if the fault may have an effect after the last step: it may cause new steps.
    pub(super) fn outlasts(&self) -> bool {
        !matches!(self.reach, Reach::Links(_))
    }
}

/// Returns true if the step sends something to its peer.
fn is_sent(step: &Step) -> bool {
    let point = step.point.as_str();
    ["opens to ", "accepts from ", "sends to ", "closes to "].iter().any(|verb| point.starts_with(verb))
}
