//! An etcd cluster of three.

use std::sync::Arc;
use std::time::Duration;

use dlock::AnyBackend;
use dlock::etcd::{Etcd, EtcdOptions};
use futures_util::future::BoxFuture;
use history::Name;
use sim::servers::etcd;
use sim::servers::host::Host;
use sim::world::machine::Machine;
use sim::world::runtime::SimRuntime;
use sim::{FieldPath, Invalid, Schedule, Span};

use super::super::given::{Correct, StoredLock, Workplace};
use super::super::options::Options;
use super::super::point::{Point, ProcessKind};
use super::super::rounds::{apart, work};
use super::super::seat::Seat;
use super::super::servers::{Etcd as Servers, Recipe};
use super::super::system::System;
use super::super::wider::Wider;
use super::{LockSystem, MEMBERS, SESSION_GRACE, names, numbered, semaphores, tls, work_with};
use crate::etcd_lock_service::EtcdLockService;

/// The cluster's name in the history.
const NAME: &str = "etcd";

impl System {
    /// An etcd cluster of three.
    pub const ETCD: Self = Self(NAME);
}

/// The system `etcd`.
pub(super) struct Cluster;

impl LockSystem for Cluster {
    fn name(&self) -> System {
        System::ETCD
    }

    fn title(&self) -> &'static str {
        "etcd, three members"
    }

    fn servers(&self, _: &Options) -> Vec<(String, ProcessKind)> {
        numbered(NAME, MEMBERS, ProcessKind::Etcd)
    }

    fn has_queues(&self) -> bool {
        true
    }

    fn hosts(&self, options: &Options, stored: &[(StoredLock, &str)]) -> Vec<(String, Arc<dyn Host>)> {
        match options.tls {
            false => tls::plain(machines(options, stored)),
            true => tls::secured(machines(options, stored), &["h2"]),
        }
    }

    fn addresses(&self, seat: &Seat<'_>) -> Vec<String> {
        seat.members(&names(&self.servers(seat.options)), etcd::PORT)
    }

    fn work_with_own<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        let members = self.addresses(&seat);
        match seat.options.etcd.recipe {
            Recipe::Queue => apart(work_with::<Etcd<SimRuntime>>(seat, members)),
            Recipe::Service => {
                let session = seat.options.ttl_of(seat.spec).duration();
                apart(work(seat, EtcdLockService::new(seat.process.runtime(), &members, session)))
            }
        }
    }

    fn has_permits(&self) -> bool {
        true
    }

    fn tls_scheme(&self) -> Option<&'static str> {
        Some("etcds")
    }

    fn library_lock(&self, place: &Workplace<'_>) -> Option<AnyBackend<SimRuntime>> {
        Some(AnyBackend::new(Etcd::at(place)?))
    }

    fn cluster(&self) -> Option<(&'static str, ProcessKind)> {
        Some((NAME, ProcessKind::Etcd))
    }

    fn actions(&self) -> &'static [(&'static str, ProcessKind)] {
        &[("lead", ProcessKind::Etcd)]
    }

    /// Leaves events of the lock to the cluster, regardless of the member that carries out the request.
    fn never_passes(&self, _: &Schedule<Options>, server: &str, _: Point) -> Option<&'static str> {
        (server != NAME).then_some("the cluster does, as `etcd`")
    }

    fn table(&self) -> Option<&'static str> {
        Some("etcd")
    }

    fn check(&self, options: &Options) -> Result<(), Invalid> {
        if options.etcd.trusts_waiters && options.etcd.recipe == Recipe::Queue {
            let problem = "`trusts_waiters` is the Lock service's: it needs recipe = \"service\"";
            return Err(FieldPath::top("etcd").key("trusts_waiters").says(problem));
        }
        Ok(())
    }

    fn check_ttl(&self, path: &FieldPath, ttl: Span) -> Result<(), Invalid> {
        let is_whole = ttl.as_nanos().is_multiple_of(1_000_000_000);
        if is_whole && ttl >= Span::from_secs(2) {
            return Ok(());
        }
        let rule = "etcd's leases live for whole seconds, 2s at least: one and a half election timeouts";
        Err(path.says(format!("`ttl` = {ttl}: {rule}")))
    }

    fn speakers(&self, _: &Options) -> Vec<String> {
        vec![NAME.to_owned()]
    }

    /// Returns no name for etcd's own Lock service: its keys don't name their owners.
    fn voters(&self, options: &Options) -> Vec<Name> {
        match options.etcd.recipe {
            Recipe::Queue => vec![Name::from(NAME)],
            Recipe::Service => Vec::new(),
        }
    }

    /// Returns false for etcd's Lock service: it is fair, too, but knows waiters by their leases only.
    fn is_fair(&self, options: &Options) -> bool {
        options.etcd.recipe == Recipe::Queue
    }

    fn quorum(&self, options: &Options) -> Vec<String> {
        names(&self.servers(options))
    }

    fn key_grace(&self, _: &Options) -> Duration {
        SESSION_GRACE
    }

    fn ttls_millis(&self) -> &'static [u64] {
        &[2000, 3000, 4000]
    }

    fn simpler(&self, options: &Options) -> Vec<Options> {
        vec![Options { etcd: Servers::default(), ..options.clone() }]
    }

    fn wider(&self) -> &'static [Wider] {
        const { &[Wider::new("Lock service", 0.15, |options, _| options.etcd.recipe = Recipe::Service)] }
    }
}

/// Makes the servers with their names.
fn machines<M: Machine>(
    options: &Options,
    stored: &[(StoredLock, &str)],
) -> Vec<(String, etcd::EtcdHost<M>)> {
    let mut setup = etcd::ClusterOptions::new(NAME, names(&Cluster.servers(options)));
    setup.rechecks_waiters = !options.etcd.trusts_waiters;
    let cluster = etcd::Cluster::new(setup);
    let host = |(number, name): (usize, String)| {
        // The whole cluster knows them from its first member.
        let stored = if number == 0 { stored } else { &[] };
        let member = stored.iter().fold(cluster.member(&name)?, |member, (stored, lock)| match stored {
            StoredLock::Key(key) => member.lock_key(key.as_str(), *lock),
            StoredLock::Queue(prefix) => member.lock_queue(prefix.as_str(), *lock),
            StoredLock::Apart { key, waiters } => {
                member.lock_key(key.as_str(), *lock).lock_waiters(waiters.as_str(), *lock)
            }
        });
        let locks = semaphores(options).take(if number == 0 { usize::MAX } else { 0 });
        let member = locks.fold(member, |member, (lock, permits)| member.permits(lock.name(), permits));
        Some((name, member))
    };
    names(&Cluster.servers(options)).into_iter().enumerate().filter_map(host).collect()
}

impl Correct for Etcd<SimRuntime> {
    fn at(place: &Workplace<'_>) -> Option<Self> {
        Self::new(place.runtime.clone(), &place.servers, EtcdOptions::new(place.lock.ttl)).ok()
    }
}
