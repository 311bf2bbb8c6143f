//! A ZooKeeper ensemble of three.

use std::sync::Arc;
use std::time::Duration;

use dlock::AnyBackend;
use dlock::zookeeper::{ZooKeeper, ZooKeeperOptions};
use futures_util::future::BoxFuture;
use sim::servers::host::Host;
use sim::servers::zookeeper;
use sim::world::machine::Machine;
use sim::world::runtime::SimRuntime;
use sim::{FieldPath, Invalid, Schedule, Span};

use super::super::given::{Correct, StoredLock, Workplace};
use super::super::options::Options;
use super::super::point::{Point, ProcessKind};
use super::super::rounds::apart;
use super::super::seat::Seat;
use super::super::system::System;
use super::{LockSystem, MEMBERS, SESSION_GRACE, names, numbered, semaphores, tls, work_with};

/// The ensemble's name in the history.
const NAME: &str = "zookeeper";

/// ZooKeeper's `tickTime` in a run: sessions of 1 to 10 s, which expire at whole ticks.
const TICK: Duration = Duration::from_millis(500);

impl System {
    /// A ZooKeeper ensemble of three.
    pub const ZOOKEEPER: Self = Self(NAME);
}

/// The system `zookeeper`.
pub(super) struct Ensemble;

impl LockSystem for Ensemble {
    fn name(&self) -> System {
        System::ZOOKEEPER
    }

    fn title(&self) -> &'static str {
        "ZooKeeper, three members"
    }

    fn servers(&self, _: &Options) -> Vec<(String, ProcessKind)> {
        numbered(NAME, MEMBERS, ProcessKind::ZooKeeper)
    }

    fn has_queues(&self) -> bool {
        true
    }

    fn hosts(&self, options: &Options, stored: &[(StoredLock, &str)]) -> Vec<(String, Arc<dyn Host>)> {
        match options.tls {
            false => tls::plain(machines(options, stored)),
            true => tls::secured(machines(options, stored), &[]),
        }
    }

    fn addresses(&self, seat: &Seat<'_>) -> Vec<String> {
        seat.members(&names(&self.servers(seat.options)), zookeeper::PORT)
    }

    fn work_with_own<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        apart(work_with::<ZooKeeper<SimRuntime>>(seat, self.addresses(&seat)))
    }

    fn has_permits(&self) -> bool {
        true
    }

    fn tls_scheme(&self) -> Option<&'static str> {
        Some("zookeepers")
    }

    fn library_lock(&self, place: &Workplace<'_>) -> Option<AnyBackend<SimRuntime>> {
        Some(AnyBackend::new(ZooKeeper::at(place)?))
    }

    fn cluster(&self) -> Option<(&'static str, ProcessKind)> {
        Some((NAME, ProcessKind::ZooKeeper))
    }

    fn actions(&self) -> &'static [(&'static str, ProcessKind)] {
        &[("lead", ProcessKind::ZooKeeper)]
    }

    /// Leaves events of the lock to the ensemble, regardless of the member that carries out the request.
    fn never_passes(&self, _: &Schedule<Options>, server: &str, point: Point) -> Option<&'static str> {
        match point {
            _ if server != NAME => Some("the ensemble does, as `zookeeper`"),
            Point::Extended => Some("ZooKeeper extends sessions, not locks"),
            _ => None,
        }
    }

    fn check_ttl(&self, path: &FieldPath, ttl: Span) -> Result<(), Invalid> {
        if (Span::from_secs(1)..=Span::from_secs(10)).contains(&ttl) {
            return Ok(());
        }
        let rule = "ZooKeeper's sessions live for 2 to 20 ticks of 500ms: from 1s to 10s";
        Err(path.says(format!("`ttl` = {ttl}: {rule}")))
    }

    fn speakers(&self, _: &Options) -> Vec<String> {
        vec![NAME.to_owned()]
    }

    fn is_fair(&self, _: &Options) -> bool {
        true
    }

    fn quorum(&self, options: &Options) -> Vec<String> {
        names(&self.servers(options))
    }

    fn key_grace(&self, _: &Options) -> Duration {
        SESSION_GRACE
    }

    fn ttls_millis(&self) -> &'static [u64] {
        &[1000, 2000, 4000]
    }
}

/// Makes the servers with their names.
fn machines<M: Machine>(
    options: &Options,
    stored: &[(StoredLock, &str)],
) -> Vec<(String, zookeeper::ZooKeeperHost<M>)> {
    let mut setup = zookeeper::EnsembleOptions::new(names(&Ensemble.servers(options)));
    setup.tick = TICK;
    let ensemble = zookeeper::Ensemble::new(setup);
    let host = |(number, name): (usize, String)| {
        // The whole ensemble knows them from its first member.
        let stored = if number == 0 { stored } else { &[] };
        let member = stored.iter().fold(ensemble.member(&name)?, |member, (stored, lock)| match stored {
            StoredLock::Key(path) => member.lock_key(path, lock),
            StoredLock::Queue(parent) => member.lock_queue(parent, lock),
            StoredLock::Apart { key, waiters } => member.lock_key(key, lock).lock_waiters(waiters, lock),
        });
        let locks = semaphores(options).take(if number == 0 { usize::MAX } else { 0 });
        let member = locks.fold(member, |member, (lock, permits)| member.permits(lock.name(), permits));
        Some((name, member))
    };
    names(&Ensemble.servers(options)).into_iter().enumerate().filter_map(host).collect()
}

impl Correct for ZooKeeper<SimRuntime> {
    fn at(place: &Workplace<'_>) -> Option<Self> {
        Self::new(place.runtime.clone(), &place.servers, ZooKeeperOptions::new(place.lock.ttl)).ok()
    }
}
