//! The lock systems of the laboratory, one file each with one row here: its servers, its rules, what is
//! drawn for it, and how a worker locks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use resource::audit::Name;

use super::fault_class::FaultClass;
use super::options::Options;
use super::point::Kind;
use super::rounds::{apart, work};
use super::seat::Seat;
use super::servers::Redis as RedisServers;
use super::system::System;
use crate::entropy::Site;
use crate::place::{Invalid, Place};
use crate::servers::host::Host;
use crate::sim::Sim;
use crate::span::Span;

mod etcd;
mod redis;
mod redlock;
mod toy;
mod zookeeper;

impl System {
    /// What the system is.
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
    /// The lock servers with what they are, in order.
    fn servers(&self, options: &Options) -> Vec<(String, Kind)>;

    /// The servers as hosts, in the same order.
    fn hosts(&self, options: &Options) -> Vec<(String, Arc<dyn Host>)>;

    /// Where the worker reaches the lock servers.
    fn addresses(&self, seat: &Seat<'_>) -> Vec<String>;

    /// All rounds of a worker that holds the lock while it writes.
    fn work<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        if let Some(rounds) = seat.given_rounds(|| self.addresses(&seat)) {
            return rounds;
        }
        match seat.given_lock(|| self.addresses(&seat)) {
            Some(lock) => apart(work(seat, lock)),
            None => self.work_with_own(seat),
        }
    }

    /// The same, with the system's own lock.
    fn work_with_own<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()>;

    /// The name under which the history knows the servers as a whole, with what each is, where they are
    /// members of one.
    fn cluster(&self) -> Option<(&'static str, Kind)> {
        None
    }

    /// Adds what the world needs beyond the servers.
    fn prepare(&self, sim: &mut Sim) {
        let _ = sim;
    }

    /// Checks the options of the servers: what does not apply to the system is refused.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the option.
    fn check(&self, options: &Options) -> Result<(), Invalid>;

    /// Checks the TTL at `place`, beyond what the library demands.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if no lease can live for so long.
    fn check_ttl(&self, place: &Place, ttl: Span) -> Result<(), Invalid> {
        let _ = (place, ttl);
        Ok(())
    }

    /// Whether workers may release by GET and DEL.
    fn has_get_del(&self) -> bool {
        false
    }

    /// Whether the servers may lose a key by eviction.
    fn evicts(&self) -> bool {
        false
    }

    /// Whether the servers talk to each other.
    fn has_links(&self) -> bool {
        true
    }

    /// Whether a lease can be extended on the server, rather than a session.
    fn extends_leases(&self) -> bool {
        true
    }

    /// The names under which the servers' points are passed: each its own, or one for a whole cluster.
    fn speakers(&self, options: &Options) -> Vec<String>;

    /// The servers whose word counts, as the history calls them; empty if their keys don't say whose they
    /// are.
    fn voters(&self, options: &Options) -> Vec<Name> {
        self.speakers(options).iter().map(|name| Name::from(name.as_str())).collect()
    }

    /// Whether the lock promises first come, first served.
    fn is_fair(&self, options: &Options) -> bool {
        let _ = options;
        false
    }

    /// How much later than its time to live a key may be dropped.
    fn key_grace(&self) -> Duration;

    /// Whether it can have faults of the class.
    fn has_class(&self, class: FaultClass) -> bool {
        !matches!(class, FaultClass::Failover | FaultClass::LeaderChange)
    }

    /// How often it is drawn, against the others.
    fn weight(&self) -> usize {
        1
    }

    /// The TTLs that are drawn, in milliseconds.
    fn ttls_millis(&self) -> &'static [u64];

    /// Draws the options of the servers. `redis` is what one Redis would have.
    fn draw(&self, site: &mut Site, redis: RedisServers, options: &mut Options) {
        let _ = (site, redis, options);
    }
}

/// `prefix-1` to `prefix-count`, each of this kind.
fn numbered(prefix: &str, count: u32, kind: Kind) -> Vec<(String, Kind)> {
    (1..=count).map(|number| (format!("{prefix}-{number}"), kind)).collect()
}

/// The names alone.
fn names(servers: &[(String, Kind)]) -> Vec<String> {
    servers.iter().map(|(name, _)| name.clone()).collect()
}

/// The members of an etcd cluster or a ZooKeeper ensemble.
const MEMBERS: u32 = 3;

/// How much later an ensemble may drop a key: etcd looks every 500 ms, ZooKeeper at whole ticks of 500 ms;
/// and the keepalives of a session begin its time to live anew while the client lives.
const SESSION_GRACE: Duration = Duration::from_millis(1500);
