//! The correct locks, as a worker of the laboratory uses them. The museum's mistakes are made on them.

use dlock::etcd::{Etcd, EtcdOptions};
use dlock::redis::Redis;
use dlock::redlock::{Redlock, RedlockOptions};
use dlock::zookeeper::{ZooKeeper, ZooKeeperOptions};
use dlock::{AnyBackend, Backend};
use sim::world::runtime::SimRuntime;

use crate::{System, Workplace};

/// No mistake: the correct lock, worker or resource of the museum.
pub(super) struct Faultless;

/// A correct lock of one system.
pub(super) trait Correct: Backend<Runtime = SimRuntime> {
    /// Makes the lock of the worker at `place`. Returns `None` for servers that it can't use; no valid
    /// schedule has such servers.
    fn at(place: &Workplace<'_>) -> Option<Self>;
}

/// Makes the correct lock of the worker's system; `None` for a system without mistakes here.
pub(super) fn any(place: &Workplace<'_>) -> Option<AnyBackend<SimRuntime>> {
    Some(match place.options.system {
        System::Redis => AnyBackend::new(Redis::at(place)?),
        System::Redlock => AnyBackend::new(Redlock::at(place)?),
        System::Etcd => AnyBackend::new(Etcd::at(place)?),
        System::ZooKeeper => AnyBackend::new(ZooKeeper::at(place)?),
        System::Toy => return None,
    })
}

impl Correct for Redis<SimRuntime> {
    fn at(place: &Workplace<'_>) -> Option<Self> {
        Self::new(place.runtime.clone(), place.servers.first()?, place.options.redis_lock()).ok()
    }
}

impl Correct for Redlock<SimRuntime> {
    fn at(place: &Workplace<'_>) -> Option<Self> {
        let mut options = RedlockOptions::default();
        options.tokens = place.options.redis_lock().tokens;
        Self::new(place.runtime.clone(), &place.servers, options).ok()
    }
}

impl Correct for Etcd<SimRuntime> {
    fn at(place: &Workplace<'_>) -> Option<Self> {
        Self::new(place.runtime.clone(), &place.servers, EtcdOptions::new(place.lock.ttl)).ok()
    }
}

impl Correct for ZooKeeper<SimRuntime> {
    fn at(place: &Workplace<'_>) -> Option<Self> {
        Self::new(place.runtime.clone(), &place.servers, ZooKeeperOptions::new(place.lock.ttl)).ok()
    }
}
