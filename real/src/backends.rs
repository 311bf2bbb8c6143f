//! Which lock server a command uses: the one place that knows them all.

use std::future::Future;
use std::time::Duration;

use clap::ValueEnum;
use dlock::Backend;
use dlock::etcd::{Etcd, EtcdOptions, EtcdOptionsError};
use dlock::redis::Redis;
use dlock::redlock::{Redlock, RedlockError, RedlockOptions};
use dlock::zookeeper::ZooKeeper;
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

/// Something to do with a lock server, whichever it is.
pub trait OnBackend {
    /// What comes of it.
    type Output;

    /// Does it.
    fn run<B: Backend<Runtime = TokioRuntime>>(self, backend: B) -> impl Future<Output = Self::Output>;
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
    /// The servers that a majority is made of.
    #[error(transparent)]
    Redlock(#[from] RedlockError),
    /// The members of an etcd cluster, or its session.
    #[error(transparent)]
    Etcd(#[from] EtcdOptionsError),
}

/// Does `job` with the lock server of that kind at the addresses `servers`. `ttl` is that of its leases: where a lease is
/// tied to the client's session, the session lives as long, so that a holder that is gone blocks others for no longer.
///
/// # Errors
///
/// [`BackendError`] if the kind of server can't be made of those addresses.
pub async fn on_backend<J: OnBackend>(
    kind: BackendKind,
    servers: &[String],
    ttl: Duration,
    runtime: TokioRuntime,
    job: J,
) -> Result<J::Output, BackendError> {
    match (kind, servers) {
        (BackendKind::Redis, [server]) => Ok(job.run(Redis::new(runtime, server)).await),
        (BackendKind::Redis, _) => {
            Err(BackendError::Servers { kind, wanted: "one server", given: servers.len() })
        }
        (BackendKind::Redlock, servers) => {
            Ok(job.run(Redlock::new(runtime, servers, RedlockOptions::default())?).await)
        }
        (BackendKind::Etcd, servers) => {
            Ok(job.run(Etcd::new(runtime, servers, &EtcdOptions::new(ttl))?).await)
        }
        (BackendKind::Zookeeper, []) => {
            Err(BackendError::Servers { kind, wanted: "at least one server", given: 0 })
        }
        (BackendKind::Zookeeper, servers) => {
            Ok(job.run(ZooKeeper::new(runtime, servers.iter().cloned(), ttl)).await)
        }
    }
}
