//! The faults of a long run, as data.

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

use crate::record::Record;
use crate::systems::System;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
#[value(rename_all = "kebab-case")]
pub enum FaultKind {
    /// Stops a worker by SIGSTOP, and continues it later by SIGCONT.
    PauseWorker,
    /// Kills a worker by SIGKILL, and starts a new one under its name later.
    KillWorker,
    /// Stops a lock server (the leader, if there is one) by SIGSTOP, and continues it later.
    PauseServer,
    /// Kills a lock server by SIGKILL, and restarts it with its data.
    KillServer,
    /// Kills a Redis by SIGKILL, and restarts it without its data.
    LoseData,
    /// Makes another member of the cluster the leader.
    MoveLeader,
    /// Kills the primary and promotes its replica, which lags behind.
    Failover,
    /// Steps the wall clock of a Redis, and later steps it back.
    StepClock,
    /// Holds back requests, answers or both on a worker's link to a lock server or to the resource.
    CutLink,
    /// Slows down a worker's link to a lock server or to the resource.
    SlowLink,
    /// Resets a worker's connections to a lock server or to the resource.
    ResetLink,
    /// Cuts a lock server off from all workers.
    IsolateServer,
    /// Kills the resource by SIGKILL, and restarts it with its data.
    KillResource,
    /// Stops the PostgreSQL that keeps ticks and jobs by SIGSTOP, and continues it later.
    PausePostgres,
    /// Kills that PostgreSQL by SIGKILL, and restarts it: it recovers from its log.
    KillPostgres,
}

impl FaultKind {
    /// Returns whether this fault can strike servers of `system`, or the guarded side `record`; `None` is no
    /// lock server.
    pub fn strikes(self, system: Option<System>, record: Record) -> bool {
        use System::{Etcd, Redis, Redlock};
        match self {
            Self::LoseData | Self::StepClock => matches!(system, Some(Redis | Redlock)),
            Self::Failover => system == Some(Redis),
            Self::MoveLeader => system == Some(Etcd),
            Self::PauseServer | Self::KillServer | Self::IsolateServer => system.is_some(),
            Self::KillResource => record == Record::Resource,
            Self::PausePostgres | Self::KillPostgres => record == Record::Postgres,
            _ => true,
        }
    }

    /// Returns its name, as the flag `--faults` takes it.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// One fault: its kind and its victim. Workers and servers count from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Fault {
    /// See [`FaultKind::PauseWorker`].
    PauseWorker {
        /// The worker.
        worker: usize,
    },
    /// See [`FaultKind::KillWorker`].
    KillWorker {
        /// The worker.
        worker: usize,
    },
    /// See [`FaultKind::PauseServer`].
    PauseServer {
        /// The server.
        server: Server,
    },
    /// See [`FaultKind::KillServer`].
    KillServer {
        /// The server.
        server: Server,
    },
    /// See [`FaultKind::LoseData`].
    LoseData {
        /// The server.
        server: Server,
    },
    /// See [`FaultKind::MoveLeader`].
    MoveLeader {
        /// The member that becomes the leader.
        to: usize,
    },
    /// See [`FaultKind::Failover`].
    Failover {
        /// The time for which the replica has received nothing when it is promoted, in milliseconds.
        lag_ms: u64,
    },
    /// See [`FaultKind::StepClock`].
    StepClock {
        /// The server whose clock steps.
        server: Server,
        /// The size of the step in milliseconds; negative steps back.
        by_ms: i64,
    },
    /// See [`FaultKind::CutLink`].
    CutLink {
        /// The worker at one end.
        worker: usize,
        /// The other end.
        to: End,
        /// The direction that is held back.
        holds: Holds,
    },
    /// See [`FaultKind::SlowLink`].
    SlowLink {
        /// The worker at one end.
        worker: usize,
        /// The other end.
        to: End,
        /// The delay in each direction, in milliseconds.
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
        /// The server.
        server: Server,
    },
    /// See [`FaultKind::KillResource`].
    KillResource,
    /// See [`FaultKind::PausePostgres`].
    PausePostgres,
    /// See [`FaultKind::KillPostgres`].
    KillPostgres,
}

/// The lock server that a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Server {
    /// The leader, or the primary, at the moment of the fault.
    Leader,
    /// The server with this number.
    Number(usize),
}

/// The far end of a worker's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The lock server at this place in the worker's list of addresses.
    Server(usize),
    /// The resource.
    Resource,
    /// The PostgreSQL that keeps ticks and jobs.
    Postgres,
}

impl End {
    /// Returns the guarded side.
    pub(super) const fn of(record: Record) -> Self {
        match record {
            Record::Resource => Self::Resource,
            Record::Postgres => Self::Postgres,
        }
    }
}

/// The traffic that a cut link holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// The worker's requests.
    Requests,
    /// The answers to the worker.
    Answers,
    /// Both directions.
    Both,
}

impl Fault {
    /// Returns its kind.
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
            Self::PausePostgres => FaultKind::PausePostgres,
            Self::KillPostgres => FaultKind::KillPostgres,
        }
    }

    /// Returns whether it needs no healing: it is over as soon as it strikes.
    pub const fn is_instant(self) -> bool {
        matches!(self, Self::MoveLeader { .. } | Self::ResetLink { .. })
    }

    /// Returns the worker that the fault can be aimed at, inside its critical section.
    pub const fn worker(self) -> Option<usize> {
        match self {
            Self::PauseWorker { worker }
            | Self::KillWorker { worker }
            | Self::CutLink { worker, to: End::Resource | End::Postgres, .. }
            | Self::SlowLink { worker, to: End::Resource | End::Postgres, .. }
            | Self::ResetLink { worker, to: End::Resource | End::Postgres } => Some(worker),
            _ => None,
        }
    }

    /// Returns the same fault with [`Server::Leader`] replaced by the current leader.
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

/// Returns the worker's name in the history: `a`, `b` and so on.
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
            Self::PausePostgres => f.write_str("PostgreSQL stopped by SIGSTOP"),
            Self::KillPostgres => f.write_str("PostgreSQL killed"),
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
            Self::Postgres => f.write_str("PostgreSQL"),
        }
    }
}
