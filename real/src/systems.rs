//! The lock systems that a command can use, and the backend of each.

use std::time::Duration;

use clap::ValueEnum;
use dlock::etcd::{Etcd, EtcdOptions};
use dlock::redis::{Redis, RedisOptions};
use dlock::redlock::{Redlock, RedlockOptions};
use dlock::zookeeper::{ZooKeeper, ZooKeeperOptions};
use dlock::{AnyBackend, SetupError};
use serde::{Deserialize, Serialize};

use dlock::TokioRuntime;

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
}

/// Returns a backend of `system` on the servers at the addresses `servers`.
///
/// If a lease is tied to the client's session (etcd, ZooKeeper), `ttl` is also the session's timeout, so that
/// a dead holder blocks others for no longer than its lease.
///
/// # Errors
///
/// [`SystemError`] if the number of servers does not fit the system, or an address is invalid.
pub fn backend(
    system: System,
    servers: &[String],
    ttl: Duration,
    runtime: TokioRuntime,
) -> Result<AnyBackend<TokioRuntime>, SystemError> {
    let wanted = |wanted| SystemError::Servers { system, wanted, given: servers.len() };
    Ok(match (system, servers) {
        (System::Redis, [server]) => AnyBackend::new(Redis::new(runtime, server, RedisOptions::default())?),
        (System::Redis, _) => return Err(wanted("one server")),
        (System::Redlock, _) => AnyBackend::new(Redlock::new(runtime, servers, RedlockOptions::default())?),
        (System::Etcd, _) => AnyBackend::new(Etcd::new(runtime, servers, EtcdOptions::new(ttl))?),
        (System::Zookeeper, []) => return Err(wanted("at least one server")),
        (System::Zookeeper, _) => {
            AnyBackend::new(ZooKeeper::new(runtime, servers, ZooKeeperOptions::new(ttl))?)
        }
    })
}
