//! The lock systems that a command can use.

use clap::ValueEnum;
use dlock::{ConnectError, SetupError};
use serde::{Deserialize, Serialize};

use crate::judgement::Queue;

/// A lock system: the kind of server that keeps the locks, and the protocol used with it.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    ValueEnum,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum System {
    /// One Redis.
    Redis,
    /// Several independent Redis servers, by majority.
    Redlock,
    /// An etcd cluster: waiters queue, and a lease lives as long as the client's session.
    Etcd,
    /// A ZooKeeper ensemble: waiters queue, and a lease lives as long as the client's session.
    Zookeeper,
}

impl System {
    /// Returns its name, as the flag `--system` takes it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the order in which it serves its waiters.
    pub fn queue(self) -> Queue {
        match self {
            Self::Redis | Self::Redlock => Queue::Unknown,
            Self::Etcd | Self::Zookeeper => Queue::TokensArePlaces,
        }
    }
}

/// No backend can be made for a system with the given servers.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// The number of servers does not fit the system.
    #[error(
        "{system} needs {wanted}, but --servers lists {given}: list as many there, or start them with `real \
         up {system}`",
        system = .system.as_str()
    )]
    Servers {
        /// The system.
        system: System,
        /// The number of servers that it needs.
        wanted: &'static str,
        /// The number of servers listed.
        given: usize,
    },
    /// An address or an option is invalid.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The servers can't be reached so, or the certificates can't be used.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}
