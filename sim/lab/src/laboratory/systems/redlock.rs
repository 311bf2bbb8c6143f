//! Redlock: a majority of several independent Redis servers.

use std::sync::Arc;
use std::time::Duration;

use dlock::redlock::{Redlock, RedlockOptions};
use futures_util::future::BoxFuture;
use sim::entropy::Site;
use sim::servers::host::Host;
use sim::{FieldPath, Invalid};

use super::super::options::Options;
use super::super::point::ProcessKind;
use super::super::rounds::{apart, work};
use super::super::seat::Seat;
use super::super::servers::Redis as Servers;
use super::redis::{KEY_GRACE, TTLS_MILLIS, host, tokens, without_etcd};
use super::{LockSystem, names, numbered};

/// The system `redlock`.
pub(super) struct Majority;

impl LockSystem for Majority {
    fn servers(&self, options: &Options) -> Vec<(String, ProcessKind)> {
        numbered("redis", options.redis.nodes, ProcessKind::Redis)
    }

    fn hosts(&self, options: &Options) -> Vec<(String, Arc<dyn Host>)> {
        let host = |(name, _)| (name, Arc::new(host(options)) as Arc<dyn Host>);
        self.servers(options).into_iter().map(host).collect()
    }

    fn addresses(&self, seat: &Seat<'_>) -> Vec<String> {
        names(&self.servers(seat.options)).iter().map(|name| format!("{name}:6379")).collect()
    }

    fn work_with_own<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        apart(lock(seat))
    }

    fn check(&self, options: &Options) -> Result<(), Invalid> {
        let redis = FieldPath::top("redis");
        if options.redis.nodes < 3 {
            let problem = format!("`nodes` = {}: `redlock` needs at least 3", options.redis.nodes);
            return Err(redis.key("nodes").says(problem));
        }
        if options.redis.replica {
            let problem = "`replica` does not apply to `redlock`: its nodes are on their own";
            return Err(redis.key("replica").says(problem));
        }
        without_etcd(options)
    }

    fn evicts(&self) -> bool {
        true
    }

    fn has_links(&self) -> bool {
        false
    }

    fn speakers(&self, options: &Options) -> Vec<String> {
        names(&self.servers(options))
    }

    fn quorum(&self, options: &Options) -> Vec<String> {
        names(&self.servers(options))
    }

    fn key_grace(&self) -> Duration {
        KEY_GRACE
    }

    fn weight(&self) -> usize {
        2
    }

    fn ttls_millis(&self) -> &'static [u64] {
        TTLS_MILLIS
    }

    fn draw(&self, site: &mut Site, redis: Servers, options: &mut Options) {
        options.redis = Servers { nodes: [3, 5][site.below(2) as usize], replica: false, ..redis };
    }
}

async fn lock(seat: Seat<'_>) {
    let mut options = RedlockOptions::default();
    options.tokens = tokens(seat.options);
    // The schedule was validated, so there are enough nodes, each named once.
    if let Ok(redlock) = Redlock::new(seat.process.runtime(), &Majority.addresses(&seat), options) {
        work(seat, redlock).await;
    }
}
