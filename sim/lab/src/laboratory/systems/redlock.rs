//! Redlock: a majority of several independent Redis servers.

use std::sync::Arc;
use std::time::Duration;

use dlock::AnyBackend;
use dlock::redlock::{Redlock, RedlockOptions};
use futures_util::future::BoxFuture;
use sim::entropy::Site;
use sim::servers::host::Host;
use sim::servers::redis::{PORT, RedisHost};
use sim::world::machine::Machine;
use sim::world::runtime::SimRuntime;
use sim::{FieldPath, Invalid};

use super::super::given::{Correct, StoredLock, Workplace};
use super::super::options::Options;
use super::super::point::ProcessKind;
use super::super::rounds::apart;
use super::super::seat::Seat;
use super::super::servers::{Durability, Persistence, Redis as Servers, Tokens};
use super::super::system::System;
use super::super::wider::Wider;
use super::redis::{
    FIRST_TOKENS, KEY_GRACE, NEWER_SERVERS, TOKENS_BY_TIME, TTLS_MILLIS, durability, host, simpler, tokens,
};
use super::{LockSystem, names, numbered, tls, work_with};

impl System {
    /// A majority of several independent Redis servers.
    pub const REDLOCK: Self = Self("redlock");
}

/// The system `redlock`.
pub(super) struct Majority;

impl LockSystem for Majority {
    fn name(&self) -> System {
        System::REDLOCK
    }

    fn title(&self) -> &'static str {
        "Redlock, three nodes"
    }

    fn servers(&self, options: &Options) -> Vec<(String, ProcessKind)> {
        numbered("redis", options.redis.nodes, ProcessKind::Redis)
    }

    fn hosts(&self, options: &Options, stored: &[(StoredLock, &str)]) -> Vec<(String, Arc<dyn Host>)> {
        match options.tls {
            false => tls::plain(machines(options, stored)),
            true => tls::secured(machines(options, stored), &[]),
        }
    }

    fn addresses(&self, seat: &Seat<'_>) -> Vec<String> {
        names(&self.servers(seat.options)).iter().map(|name| format!("{name}:{PORT}")).collect()
    }

    fn work_with_own<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        apart(work_with::<Redlock<SimRuntime>>(seat, self.addresses(&seat)))
    }

    fn tls_scheme(&self) -> Option<&'static str> {
        Some("rediss")
    }

    fn library_lock(&self, place: &Workplace<'_>) -> Option<AnyBackend<SimRuntime>> {
        Some(AnyBackend::new(Redlock::at(place)?))
    }

    fn table(&self) -> Option<&'static str> {
        Some("redis")
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
        if options.redis.tokens == Tokens::Shared {
            let problem = "`tokens = \"shared\"` does not apply to `redlock`: its nodes count for each key";
            return Err(redis.key("tokens").says(problem));
        }
        Ok(())
    }

    fn durability(&self, options: &Options) -> Durability {
        durability(options)
    }

    fn expires_keys(&self) -> bool {
        true
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

    fn key_grace(&self, _: &Options) -> Duration {
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

    fn simpler(&self, options: &Options) -> Vec<Options> {
        simpler(options)
    }

    fn wider(&self) -> &'static [Wider] {
        const { &[TOKENS_BY_TIME, FIRST_TOKENS, NEWER_SERVERS] }
    }

    fn small(&self, options: &mut Options) {
        options.redis = Servers { nodes: 3, persistence: Persistence::Always, ..Servers::default() };
    }
}

/// Makes the servers with their names.
fn machines<M: Machine>(options: &Options, stored: &[(StoredLock, &str)]) -> Vec<(String, RedisHost<M>)> {
    let host = |(name, _)| (name, host(options, stored));
    Majority.servers(options).into_iter().map(host).collect()
}

impl Correct for Redlock<SimRuntime> {
    fn at(place: &Workplace<'_>) -> Option<Self> {
        let mut options = RedlockOptions::default();
        options.tokens = tokens(place.options);
        Self::new(place.runtime.clone(), &place.servers, options).ok()
    }
}
