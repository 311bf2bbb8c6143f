//! The kinds of faults that an exhaustive search places, with their durations.

use std::fmt;
use std::sync::Arc;

use super::reach::Reach;
use crate::Sim;
use crate::faults::{
    Action, Call, Cancel, ClockStep, Crash, Cut, Delay, Lead, Link, Partition, Pause, Promote, Reset, Role,
    Scene, Stop,
};
use crate::span::{Shift, Span};

/// The time for which a link delays messages that enter it: one message, and others right after it.
const DELAYED: Span = Span::from_millis(1);

/// A kind of fault, with its duration. It is placed on all processes or links that suit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Pauses a process for this long.
    Pause(Span),
    /// Kills a process, and restarts it after this time. Power is lost if it is a server with a disk. A
    /// resource without a disk is spared: it could not keep its promise.
    Crash(Span),
    /// Shuts down a server that has a disk, and restarts it after this time.
    Stop(Span),
    /// Cuts the link between a client and another process in both directions for this long.
    Cut(Span),
    /// Cuts one direction of such a link for this long.
    CutOneWay(Span),
    /// Cuts a client off from all servers for this long, if there are several servers.
    Isolate(Span),
    /// Resets the connections between a client and another process.
    Reset,
    /// Delays by this time everything that one end of such a link sends within a millisecond.
    Delay(Span),
    /// Steps the wall clock of a process by this shift.
    Step(Shift),
    /// Makes a member of a cluster its leader.
    Lead,
    /// Makes a replica the primary.
    Promote,
    /// Drops a call of a client.
    Cancel(Call),
}

impl Kind {
    /// Returns the default kinds: all but [`Kind::Cancel`], since a client may have no such call. Their
    /// durations are 0.5 and 1.5 times `scale`, the TTL of leases.
    pub fn all(scale: Span) -> Vec<Self> {
        let (half, longer) = (part(scale, 1), part(scale, 3));
        let shift = i64::try_from(longer.as_nanos()).unwrap_or(i64::MAX);
        vec![
            Self::Pause(half),
            Self::Pause(longer),
            Self::Crash(half),
            Self::Stop(half),
            Self::Cut(longer),
            Self::CutOneWay(longer),
            Self::Isolate(longer),
            Self::Reset,
            Self::Delay(longer),
            Self::Step(Shift::from_nanos(shift)),
            Self::Step(Shift::from_nanos(-shift)),
            Self::Lead,
            Self::Promote,
        ]
    }

    /// Returns the word that names the fault in schedule files.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Pause(_) => "pause",
            Self::Crash(_) => "crash",
            Self::Stop(_) => "stop",
            Self::Cut(_) | Self::CutOneWay(_) => "cut",
            Self::Isolate(_) => "partition",
            Self::Reset => "reset",
            Self::Delay(_) => "delay",
            Self::Step(_) => "step",
            Self::Lead => "lead",
            Self::Promote => "promote",
            Self::Cancel(_) => "cancel",
        }
    }

    /// Returns the faults of this kind in the world; the subject may refuse some. `links` are the pairs of
    /// processes that have connections.
    pub(super) fn faults(self, sim: &Sim, links: &[(String, String)]) -> Vec<Candidate> {
        let scene = sim.scene();
        match self {
            Self::Pause(lasts) => self.on_each(scene.processes(), |process| {
                let pause = Pause { process: process.to_owned(), lasts: Some(lasts) };
                (Arc::new(pause), Reach::running(sim, process))
            }),
            Self::Crash(after) => self.on_each(mortal(scene), |process| {
                let power_loss = scene.role(process) != Some(Role::Client) && scene.may_lose_power(process);
                let crash = Crash { process: process.to_owned(), power_loss, restart_after: Some(after) };
                (Arc::new(crash), Reach::life(sim, process))
            }),
            Self::Stop(after) => {
                let has_disk = |name: &String| scene.disk(name).is_ok();
                let servers = scene.with_role(Role::Server).into_iter().filter(has_disk).collect();
                self.on_each(servers, |process| {
                    let stop = Stop { process: process.to_owned(), restart_after: Some(after) };
                    (Arc::new(stop), Reach::life(sim, process))
                })
            }
            Self::Step(by) => self.on_each(scene.processes(), |process| {
                (Arc::new(ClockStep::of(process, by)), Reach::wall_clock(sim, process))
            }),
            Self::Lead => self.on_each(with_action(scene, "lead"), |member| {
                (Arc::new(Lead { member: member.to_owned() }), Reach::servers(sim))
            }),
            Self::Promote => self.on_each(with_action(scene, "promote"), |replica| {
                (Arc::new(Promote { replica: replica.to_owned() }), Reach::servers(sim))
            }),
            Self::Cancel(call) => {
                let makes = |name: &String| scene.calls(name, call).is_ok();
                let clients = scene.with_role(Role::Client).into_iter().filter(makes).collect();
                self.on_each(clients, |client| {
                    let cancel = Cancel { worker: client.to_owned(), call };
                    (Arc::new(cancel), Reach::running(sim, client))
                })
            }
            Self::Isolate(lasts) => self.isolations(sim, lasts),
            Self::Cut(_) | Self::CutOneWay(_) | Self::Reset | Self::Delay(_) => self.on_links(links),
        }
    }

    fn on_each(
        self,
        processes: Vec<String>,
        fault: impl Fn(&str) -> (Arc<dyn Action>, Reach),
    ) -> Vec<Candidate> {
        let candidate = |process: String| {
            let (what, reach) = fault(&process);
            Candidate { kind: self, what, reach }
        };
        processes.into_iter().map(candidate).collect()
    }

    fn isolations(self, sim: &Sim, lasts: Span) -> Vec<Candidate> {
        let servers = sim.scene().with_role(Role::Server);
        if servers.len() < 2 {
            return Vec::new();
        }
        self.on_each(sim.scene().with_role(Role::Client), |client| {
            let groups = vec![vec![client.to_owned()], servers.clone()];
            let links = servers.iter().flat_map(|server| both(client, server));
            (Arc::new(Partition { groups, lasts: Some(lasts) }), Reach::Links(links.collect()))
        })
    }

    fn on_links(self, links: &[(String, String)]) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        let mut add = |what: Arc<dyn Action>, reach| candidates.push(Candidate { kind: self, what, reach });
        for (one, other) in links {
            let (there, back) = ((one, other), (other, one));
            match self {
                Self::Cut(lasts) => {
                    let cut = Cut { lasts: Some(lasts), ..Cut::between(one, other) };
                    add(Arc::new(cut), Reach::Links(both(one, other).into()));
                }
                Self::Reset => {
                    add(Arc::new(Reset { link: Link::new(one, other) }), Reach::connections(one, other));
                }
                Self::CutOneWay(lasts) => {
                    for (from, to) in [there, back] {
                        let cut = Cut { lasts: Some(lasts), ..Cut::one_way(from, to) };
                        add(Arc::new(cut), Reach::one_way(from, to));
                    }
                }
                Self::Delay(by) => {
                    for (from, to) in [there, back] {
                        let delay = Delay { lasts: Some(DELAYED), ..Delay::one_way(from, to, by) };
                        add(Arc::new(delay), Reach::one_way(from, to));
                    }
                }
                _ => {}
            }
        }
        candidates
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pause(lasts) => write!(f, "pause of a process for {lasts}"),
            Self::Crash(after) => write!(f, "crash of a process, restarted after {after}"),
            Self::Stop(after) => write!(f, "clean stop of a server with a disk, restarted after {after}"),
            Self::Cut(lasts) => write!(f, "cut of a client's link in both directions for {lasts}"),
            Self::CutOneWay(lasts) => write!(f, "cut of a client's link in one direction for {lasts}"),
            Self::Isolate(lasts) => write!(f, "partition of a client from all servers for {lasts}"),
            Self::Reset => write!(f, "reset of a client's connections, which loses the data in flight"),
            Self::Delay(by) => write!(f, "delay by {by} of all that enters a client's link within {DELAYED}"),
            Self::Step(by) => write!(f, "step of a wall clock by {by}"),
            Self::Lead => write!(f, "change of a cluster's leader"),
            Self::Promote => write!(f, "promotion of a replica"),
            Self::Cancel(call) => write!(f, "drop of a client's {call}"),
        }
    }
}

/// A fault that can be placed.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) kind: Kind,
    pub(super) what: Arc<dyn Action>,
    /// The steps that it touches.
    pub(super) reach: Reach,
}

impl Candidate {
    /// Returns the target of the fault: a process or a link.
    pub(super) fn target(&self) -> String {
        let arrow = match self.kind {
            Kind::CutOneWay(_) | Kind::Delay(_) => " → ",
            Kind::Isolate(_) => {
                return self.what.processes().first().map(|name| (*name).to_owned()).unwrap_or_default();
            }
            _ => " ↔ ",
        };
        self.what.processes().join(arrow)
    }
}

/// Returns this number of halves of a time.
fn part(scale: Span, halves: u64) -> Span {
    Span::from_nanos(scale.as_nanos() / 2 * halves)
}

fn both(one: &str, other: &str) -> [(String, String); 2] {
    [(one.to_owned(), other.to_owned()), (other.to_owned(), one.to_owned())]
}

/// Returns the processes that may crash.
fn mortal(scene: &dyn Scene) -> Vec<String> {
    let mut processes = scene.processes();
    processes.retain(|name| scene.role(name) != Some(Role::Resource) || scene.disk(name).is_ok());
    processes
}

fn with_action(scene: &dyn Scene, action: &str) -> Vec<String> {
    let mut processes = scene.processes();
    processes.retain(|name| scene.action(name, action).is_ok());
    processes
}
