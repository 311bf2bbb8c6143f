//! The lock systems of the laboratory, one file each with one row here: its servers, its rules, its random
//! options, and its lock.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use history::Name;
use sim::entropy::Site;
use sim::servers::host::Host;
use sim::{FieldPath, Invalid, Sim, Span};

use super::fault_class::FaultClass;
use super::options::Options;
use super::point::ProcessKind;
use super::rounds::{apart, work};
use super::seat::Seat;
use super::servers::Redis as RedisServers;
use super::system::System;

mod etcd;
mod redis;
mod redlock;
mod toy;
mod zookeeper;

impl System {
    /// Returns the definition of the system.
    pub(super) fn get(self) -> &'static dyn LockSystem {
        match self {
            Self::Redis => &redis::One,
            Self::Redlock => &redlock::Majority,
            Self::Etcd => &etcd::Cluster,
            Self::ZooKeeper => &zookeeper::Ensemble,
            Self::Toy => &toy::Toy,
        }
    }
}

/// A lock system of the laboratory.
pub(super) trait LockSystem: Sync {
    /// Returns the lock servers with their kinds, in order.
    fn servers(&self, options: &Options) -> Vec<(String, ProcessKind)>;

    /// Returns the servers as hosts, in the same order.
    fn hosts(&self, options: &Options) -> Vec<(String, Arc<dyn Host>)>;

    /// Returns the addresses of the lock servers for this worker.
    fn addresses(&self, seat: &Seat<'_>) -> Vec<String>;

    /// Works all rounds of a worker that holds the lock while it writes.
    fn work<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        if let Some(rounds) = seat.given_rounds(|| self.addresses(&seat)) {
            return rounds;
        }
        match seat.given_lock(|| self.addresses(&seat)) {
            Some(lock) => apart(work(seat, lock)),
            None => self.work_with_own(seat),
        }
    }

    /// Works all rounds with the system's own lock.
    fn work_with_own<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()>;

    /// Returns the name of the cluster in the history, with the kind of its members; `None` if the servers
    /// are no cluster.
    fn cluster(&self) -> Option<(&'static str, ProcessKind)> {
        None
    }

    /// Adds to the world what it needs beyond the servers, such as other names for them.
    fn prepare(&self, sim: &mut Sim) {
        let _ = sim;
    }

    /// Checks the options of the servers. Refuses one that does not apply to the system.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the option.
    fn check(&self, options: &Options) -> Result<(), Invalid>;

    /// Checks the TTL at `path`, beyond what the library demands.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if no lease can have this TTL.
    fn check_ttl(&self, path: &FieldPath, ttl: Span) -> Result<(), Invalid> {
        let _ = (path, ttl);
        Ok(())
    }

    /// Returns true if workers may release by GET and DEL.
    fn has_get_del(&self) -> bool {
        false
    }

    /// Returns true if the servers may lose a key by eviction.
    fn evicts(&self) -> bool {
        false
    }

    /// Returns the servers of which a majority is enough; none if all are needed.
    fn quorum(&self, options: &Options) -> Vec<String> {
        let _ = options;
        Vec::new()
    }

    /// Returns true if the servers talk to each other.
    fn has_links(&self) -> bool {
        true
    }

    /// Returns true if the server extends single leases, rather than sessions.
    fn extends_leases(&self) -> bool {
        true
    }

    /// Returns the names under which servers pass points: one for each server, or one for a cluster.
    fn speakers(&self, options: &Options) -> Vec<String>;

    /// Returns the servers whose keys decide who holds the lock, by their names in the history; empty if the
    /// keys don't name their owners.
    fn voters(&self, options: &Options) -> Vec<Name> {
        self.speakers(options).iter().map(|name| Name::from(name.as_str())).collect()
    }

    /// Returns true if the lock promises first come, first served.
    fn is_fair(&self, options: &Options) -> bool {
        let _ = options;
        false
    }

    /// Returns the longest delay until the servers drop an expired key.
    fn key_grace(&self) -> Duration;

    /// Returns true if the system can have faults of the class.
    fn has_class(&self, class: FaultClass) -> bool {
        !matches!(class, FaultClass::Failover | FaultClass::LeaderChange)
    }

    /// Returns its weight when a system is drawn, relative to the others.
    fn weight(&self) -> usize {
        1
    }

    /// Returns the TTLs that are drawn, in milliseconds.
    fn ttls_millis(&self) -> &'static [u64];

    /// Draws the options of the servers. `redis` has the drawn options of a single Redis.
    fn draw(&self, site: &mut Site, redis: RedisServers, options: &mut Options) {
        let _ = (site, redis, options);
    }
}

/// Returns `prefix-1` to `prefix-count`, each of this kind.
fn numbered(prefix: &str, count: u32, kind: ProcessKind) -> Vec<(String, ProcessKind)> {
    (1..=count).map(|number| (format!("{prefix}-{number}"), kind)).collect()
}

/// Returns the names of the servers.
fn names(servers: &[(String, ProcessKind)]) -> Vec<String> {
    servers.iter().map(|(name, _)| name.clone()).collect()
}

/// Number of members of an etcd cluster or a ZooKeeper ensemble.
const MEMBERS: u32 = 3;

/// Longest delay until a cluster drops an expired key: etcd checks every 500 ms, ZooKeeper at whole ticks of
/// 500 ms. The keepalives of a live client also restart the TTL of its session.
const SESSION_GRACE: Duration = Duration::from_millis(1500);
