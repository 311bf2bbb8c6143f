//! Which lock server a command uses: the one place that knows them all.

use std::time::Duration;

use clap::ValueEnum;
use dlock::etcd::{Etcd, EtcdOptions};
use dlock::redis::{Redis, RedisOptions};
use dlock::redlock::{Redlock, RedlockOptions};
use dlock::zookeeper::{ZooKeeper, ZooKeeperOptions};
use dlock::{AnyBackend, SetupError};
use serde::{Deserialize, Serialize};

use crate::runtime::TokioRuntime;

/// A kind of lock server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    /// One Redis.
    Redis,
    /// Several independent Redis, by majority.
    Redlock,
    /// An etcd cluster: a queue, and leases that live as long as the client's session.
    Etcd,
    /// A ZooKeeper ensemble: likewise.
    Zookeeper,
}

impl BackendKind {
    /// Its name, as the flag `--backend` has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Redlock => "redlock",
            Self::Etcd => "etcd",
            Self::Zookeeper => "zookeeper",
        }
    }
}

/// No such lock server can be made of what was given.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The number of servers does not fit the kind.
    #[error("{kind} wants {wanted}, and was given {given}: give as many to --servers, or start them by `real up`", kind = .kind.as_str())]
    Servers {
        /// The kind.
        kind: BackendKind,
        /// How many it wants.
        wanted: &'static str,
        /// How many there were.
        given: usize,
    },
    /// The addresses, or the session, can't be used.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

/// Returns the lock server of that kind at the addresses `servers`. `ttl` is that of its leases: where a lease is tied to
/// the client's session, the session lives as long, so that a holder that is gone blocks others for no longer.
///
/// # Errors
///
/// [`BackendError`] if the kind of server can't be made of those addresses.
pub fn backend(
    kind: BackendKind,
    servers: &[String],
    ttl: Duration,
    runtime: TokioRuntime,
) -> Result<AnyBackend<TokioRuntime>, BackendError> {
    let wanted = |wanted| BackendError::Servers { kind, wanted, given: servers.len() };
    Ok(match (kind, servers) {
        (BackendKind::Redis, [server]) => {
            AnyBackend::new(Redis::new(runtime, server, RedisOptions::default())?)
        }
        (BackendKind::Redis, _) => return Err(wanted("one server")),
        (BackendKind::Redlock, _) => {
            AnyBackend::new(Redlock::new(runtime, servers, RedlockOptions::default())?)
        }
        (BackendKind::Etcd, _) => AnyBackend::new(Etcd::new(runtime, servers, EtcdOptions::new(ttl))?),
        (BackendKind::Zookeeper, []) => return Err(wanted("at least one server")),
        (BackendKind::Zookeeper, _) => {
            AnyBackend::new(ZooKeeper::new(runtime, servers, ZooKeeperOptions::new(ttl))?)
        }
    })
}
