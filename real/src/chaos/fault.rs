//! What can fail in a long run, as data.

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

use crate::systems::System;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
#[value(rename_all = "kebab-case")]
pub enum FaultKind {
    /// SIGSTOP on a worker, SIGCONT later.
    PauseWorker,
    /// SIGKILL on a worker, and a new one under its name later.
    KillWorker,
    /// SIGSTOP on a lock server (one that leads, if any does), SIGCONT later.
    PauseServer,
    /// SIGKILL on a lock server, and a restart with its data.
    KillServer,
    /// SIGKILL on a Redis, and a restart without its data.
    LoseData,
    /// Another member of the cluster leads.
    MoveLeader,
    /// The primary dies, its replica takes over, having lagged.
    Failover,
    /// The wall clock of a Redis is set, and set right later.
    StepClock,
    /// A worker's link to a lock server or to the resource holds back requests, answers, or both.
    CutLink,
    /// A worker's link to a lock server or to the resource is slow.
    SlowLink,
    /// A worker's connections to a lock server or to the resource are reset.
    ResetLink,
    /// A lock server is cut off from all workers.
    IsolateServer,
    /// SIGKILL on the resource, and a restart with its data.
    KillResource,
}

impl FaultKind {
    /// Whether locks on such servers can meet it.
    pub fn strikes(self, system: System) -> bool {
        use System::{Etcd, Redis, Redlock};
        match self {
            Self::LoseData | Self::StepClock => matches!(system, Redis | Redlock),
            Self::Failover => system == Redis,
            Self::MoveLeader => system == Etcd,
            _ => true,
        }
    }

    /// Its name, as the flag `--faults` has it.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// One fault: its kind, and whom it strikes. Workers and servers count from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Fault {
    /// See [`FaultKind::PauseWorker`].
    PauseWorker {
        /// Which.
        worker: usize,
    },
    /// See [`FaultKind::KillWorker`].
    KillWorker {
        /// Which.
        worker: usize,
    },
    /// See [`FaultKind::PauseServer`].
    PauseServer {
        /// Which.
        server: Server,
    },
    /// See [`FaultKind::KillServer`].
    KillServer {
        /// Which.
        server: Server,
    },
    /// See [`FaultKind::LoseData`].
    LoseData {
        /// Which.
        server: Server,
    },
    /// See [`FaultKind::MoveLeader`].
    MoveLeader {
        /// The member that is to lead.
        to: usize,
    },
    /// See [`FaultKind::Failover`].
    Failover {
        /// For how long the replica has heard nothing when it takes over.
        lag_ms: u64,
    },
    /// See [`FaultKind::StepClock`].
    StepClock {
        /// Whose.
        server: Server,
        /// By how much; back if negative.
        by_ms: i64,
    },
    /// See [`FaultKind::CutLink`].
    CutLink {
        /// The worker at one end.
        worker: usize,
        /// The other end.
        to: End,
        /// What is held back.
        holds: Holds,
    },
    /// See [`FaultKind::SlowLink`].
    SlowLink {
        /// The worker at one end.
        worker: usize,
        /// The other end.
        to: End,
        /// By how much, in each direction.
        by_ms: u64,
    },
    /// See [`FaultKind::ResetLink`].
    ResetLink {
        /// The worker at one end.
        worker: usize,
        /// The other end.
        to: End,
    },
    /// See [`FaultKind::IsolateServer`].
    IsolateServer {
        /// Which.
        server: Server,
    },
    /// See [`FaultKind::KillResource`].
    KillResource,
}

/// A lock server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Server {
    /// The one that leads, or the primary, when the fault strikes.
    Leader,
    /// This one.
    Number(usize),
}

/// The far end of a worker's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// A lock server, by the place that the worker knows it by.
    Server(usize),
    /// The resource.
    Resource,
}

/// What a cut link holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// What the worker sends.
    Requests,
    /// What it is sent.
    Answers,
    /// All.
    Both,
}

impl Fault {
    /// Its kind.
    pub const fn kind(self) -> FaultKind {
        match self {
            Self::PauseWorker { .. } => FaultKind::PauseWorker,
            Self::KillWorker { .. } => FaultKind::KillWorker,
            Self::PauseServer { .. } => FaultKind::PauseServer,
            Self::KillServer { .. } => FaultKind::KillServer,
            Self::LoseData { .. } => FaultKind::LoseData,
            Self::MoveLeader { .. } => FaultKind::MoveLeader,
            Self::Failover { .. } => FaultKind::Failover,
            Self::StepClock { .. } => FaultKind::StepClock,
            Self::CutLink { .. } => FaultKind::CutLink,
            Self::SlowLink { .. } => FaultKind::SlowLink,
            Self::ResetLink { .. } => FaultKind::ResetLink,
            Self::IsolateServer { .. } => FaultKind::IsolateServer,
            Self::KillResource => FaultKind::KillResource,
        }
    }

    /// Whether it is over as soon as it has struck.
    pub const fn is_instant(self) -> bool {
        matches!(self, Self::MoveLeader { .. } | Self::ResetLink { .. })
    }

    /// The worker that it can be aimed at: one that is in its critical section.
    pub const fn worker(self) -> Option<usize> {
        match self {
            Self::PauseWorker { worker }
            | Self::KillWorker { worker }
            | Self::CutLink { worker, to: End::Resource, .. }
            | Self::SlowLink { worker, to: End::Resource, .. }
            | Self::ResetLink { worker, to: End::Resource } => Some(worker),
            _ => None,
        }
    }

    /// The same fault on the server that leads now, if it was aimed at whichever does.
    pub(super) fn on(self, leader: usize) -> Self {
        let fix = |server| match server {
            Server::Leader => Server::Number(leader),
            Server::Number(_) => server,
        };
        match self {
            Self::PauseServer { server } => Self::PauseServer { server: fix(server) },
            Self::KillServer { server } => Self::KillServer { server: fix(server) },
            Self::LoseData { server } => Self::LoseData { server: fix(server) },
            Self::StepClock { server, by_ms } => Self::StepClock { server: fix(server), by_ms },
            Self::IsolateServer { server } => Self::IsolateServer { server: fix(server) },
            other => other,
        }
    }
}

/// What the history calls a worker: `a`, `b` and so on.
pub(super) fn worker_name(number: usize) -> String {
    let letter = u8::try_from(number).ok().map(|number| b'a'.saturating_add(number));
    letter
        .filter(u8::is_ascii_lowercase)
        .map_or(format!("w{number}"), |letter| char::from(letter).to_string())
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |worker: &usize| worker_name(*worker);
        match self {
            Self::PauseWorker { worker } => write!(f, "{} stopped by SIGSTOP", name(worker)),
            Self::KillWorker { worker } => write!(f, "{} killed", name(worker)),
            Self::PauseServer { server } => write!(f, "{server} stopped by SIGSTOP"),
            Self::KillServer { server } => write!(f, "{server} killed"),
            Self::LoseData { server } => write!(f, "{server} killed, its data lost"),
            Self::MoveLeader { to } => write!(f, "{} made the leader", Server::Number(*to)),
            Self::Failover { lag_ms } => {
                write!(f, "the primary killed, its replica promoted, {lag_ms} ms behind")
            }
            Self::StepClock { server, by_ms } => write!(f, "the wall clock of {server} set by {by_ms:+} ms"),
            Self::CutLink { worker, to, holds } => {
                let arrow = match holds {
                    Holds::Requests => "→",
                    Holds::Answers => "←",
                    Holds::Both => "↔",
                };
                write!(f, "{} {arrow} {to} cut", name(worker))
            }
            Self::SlowLink { worker, to, by_ms } => {
                write!(f, "{} ↔ {to} slower by {by_ms} ms each way", name(worker))
            }
            Self::ResetLink { worker, to } => write!(f, "{} ↔ {to} reset", name(worker)),
            Self::IsolateServer { server } => write!(f, "{server} cut off from all workers"),
            Self::KillResource => f.write_str("the resource killed"),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leader => f.write_str("the server that leads"),
            Self::Number(number) => write!(f, "server {}", number + 1),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(number) => Server::Number(*number).fmt(f),
            Self::Resource => f.write_str("the resource"),
        }
    }
}
