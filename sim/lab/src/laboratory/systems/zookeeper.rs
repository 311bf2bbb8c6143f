//! A ZooKeeper ensemble of three.

use std::sync::Arc;
use std::time::Duration;

use dlock::zookeeper::{ZooKeeper, ZooKeeperOptions};
use futures_util::future::BoxFuture;
use sim::servers::host::Host;
use sim::servers::zookeeper;
use sim::{FieldPath, Invalid, Span};

use super::super::fault_class::FaultClass;
use super::super::options::Options;
use super::super::point::ProcessKind;
use super::super::rounds::{apart, work};
use super::super::seat::Seat;
use super::redis::{without_etcd, without_redis};
use super::{LockSystem, MEMBERS, SESSION_GRACE, names, numbered};

/// The ensemble's name in the history.
const NAME: &str = "zookeeper";

/// ZooKeeper's `tickTime` in a run: sessions of 1 to 10 s, which expire at whole ticks.
const TICK: Duration = Duration::from_millis(500);

/// The system `zookeeper`.
pub(super) struct Ensemble;

impl LockSystem for Ensemble {
    fn servers(&self, _: &Options) -> Vec<(String, ProcessKind)> {
        numbered(NAME, MEMBERS, ProcessKind::ZooKeeper)
    }

    fn hosts(&self, options: &Options) -> Vec<(String, Arc<dyn Host>)> {
        let mut setup = zookeeper::EnsembleOptions::new(names(&self.servers(options)));
        setup.tick = TICK;
        let ensemble = zookeeper::Ensemble::new(setup);
        let host = |name: String| {
            let member = ensemble.member(&name)?;
            Some((name, Arc::new(member) as Arc<dyn Host>))
        };
        names(&self.servers(options)).into_iter().filter_map(host).collect()
    }

    fn addresses(&self, seat: &Seat<'_>) -> Vec<String> {
        seat.members(&names(&self.servers(seat.options)), 2181)
    }

    fn work_with_own<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        apart(lock(seat))
    }

    fn cluster(&self) -> Option<(&'static str, ProcessKind)> {
        Some((NAME, ProcessKind::ZooKeeper))
    }

    fn check(&self, options: &Options) -> Result<(), Invalid> {
        without_etcd(options)?;
        without_redis(options)
    }

    fn check_ttl(&self, path: &FieldPath, ttl: Span) -> Result<(), Invalid> {
        if (Span::from_secs(1)..=Span::from_secs(10)).contains(&ttl) {
            return Ok(());
        }
        let rule = "ZooKeeper's sessions live for 2 to 20 ticks of 500ms: from 1s to 10s";
        Err(path.says(format!("`ttl` = {ttl}: {rule}")))
    }

    fn extends_leases(&self) -> bool {
        false
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

    fn key_grace(&self) -> Duration {
        SESSION_GRACE
    }

    fn has_class(&self, class: FaultClass) -> bool {
        class != FaultClass::Failover
    }

    fn ttls_millis(&self) -> &'static [u64] {
        &[1000, 2000, 4000]
    }
}

async fn lock(seat: Seat<'_>) {
    let options = ZooKeeperOptions::new(seat.options.ttl_of(seat.spec).duration());
    // The schedule was validated, so the members and the TTL are valid.
    if let Ok(zookeeper) = ZooKeeper::new(seat.process.runtime(), &Ensemble.addresses(&seat), options) {
        work(seat, zookeeper).await;
    }
}
