//! One Redis, with a replica or without.

use std::sync::Arc;
use std::time::Duration;

use dlock::redis::{self, Redis, RedisOptions, TokenSource};
use futures_util::future::BoxFuture;
use history::Name;
use sim::entropy::Site;
use sim::servers::host::Host;
use sim::servers::redis::{self as server, RedisHost};
use sim::{FieldPath, Invalid, Sim};

use super::super::fault_class::FaultClass;
use super::super::get_then_del::GetThenDel;
use super::super::options::Options;
use super::super::point::ProcessKind;
use super::super::rounds::{apart, work};
use super::super::seat::{Seat, lock_key};
use super::super::servers::{Etcd, Persistence, Redis as Servers, Tokens, Waiting};
use super::super::worker::ReleaseMode;
use super::{LockSystem, numbered};

/// The host name of the current primary: `redis-1`, or its replica once that is promoted.
const LOCK_NAME: &str = "redis";

/// The name of the replica, where there is one.
const REPLICA: &str = "replica-1";

/// The address of the primary, for the replica.
const PRIMARY_ADDRESS: &str = "redis-1:6379";

/// Longest delay until Redis drops an expired key: it checks every 100 ms.
pub(super) const KEY_GRACE: Duration = Duration::from_millis(250);

/// The TTLs that are drawn for systems without sessions, in milliseconds.
pub(super) const TTLS_MILLIS: &[u64] = &[500, 1000, 2000, 4000];

/// The system `redis`.
pub(super) struct One;

impl LockSystem for One {
    fn servers(&self, options: &Options) -> Vec<(String, ProcessKind)> {
        let mut servers = numbered("redis", options.redis.nodes, ProcessKind::Redis);
        servers.extend(options.redis.replica.then(|| (REPLICA.to_owned(), ProcessKind::Replica)));
        servers
    }

    fn hosts(&self, options: &Options) -> Vec<(String, Arc<dyn Host>)> {
        let host = |(name, kind): (String, ProcessKind)| {
            let host = host(options).primary_name(LOCK_NAME);
            let host = if kind == ProcessKind::Replica { host.replica_of(PRIMARY_ADDRESS) } else { host };
            (name, Arc::new(host) as Arc<dyn Host>)
        };
        self.servers(options).into_iter().map(host).collect()
    }

    fn addresses(&self, _: &Seat<'_>) -> Vec<String> {
        vec![address()]
    }

    fn work_with_own<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        apart(lock(seat))
    }

    fn prepare(&self, sim: &mut Sim) {
        sim.alias(LOCK_NAME, "redis-1");
    }

    fn check(&self, options: &Options) -> Result<(), Invalid> {
        if options.redis.nodes != 1 {
            let problem = format!("`nodes` = {}: `redis` has one, `redlock` several", options.redis.nodes);
            return Err(FieldPath::top("redis").key("nodes").says(problem));
        }
        without_etcd(options)
    }

    fn has_get_del(&self) -> bool {
        true
    }

    fn evicts(&self) -> bool {
        true
    }

    /// Leaves the replica out: it serves no client at first.
    fn speakers(&self, _: &Options) -> Vec<String> {
        vec!["redis-1".to_owned()]
    }

    fn voters(&self, _: &Options) -> Vec<Name> {
        vec![Name::from("redis-1")]
    }

    fn key_grace(&self) -> Duration {
        KEY_GRACE
    }

    fn has_class(&self, class: FaultClass) -> bool {
        class != FaultClass::LeaderChange
    }

    fn weight(&self) -> usize {
        4
    }

    fn ttls_millis(&self) -> &'static [u64] {
        TTLS_MILLIS
    }

    fn draw(&self, _: &mut Site, redis: Servers, options: &mut Options) {
        options.redis = redis;
    }
}

/// Returns the address of the current primary.
fn address() -> String {
    [LOCK_NAME, ":6379"].concat()
}

async fn lock(seat: Seat<'_>) {
    let address = address();
    let Ok(redis) = Redis::new(seat.process.runtime(), &address, seat.options.redis_lock()) else { return };
    match seat.spec.release {
        ReleaseMode::GetDel => apart(work(seat, GetThenDel::new(redis, &address))).await,
        ReleaseMode::Script | ReleaseMode::None => work(seat, redis).await,
    }
}

impl Options {
    /// Returns the options of the lock on one Redis.
    pub fn redis_lock(&self) -> RedisOptions {
        let mut options = RedisOptions::default();
        options.tokens = tokens(self);
        options.waiting = match self.redis.waiting {
            Waiting::Polled => redis::Waiting::Polled,
            Waiting::Called => redis::Waiting::Called,
        };
        options
    }
}

pub(super) fn tokens(options: &Options) -> TokenSource {
    match options.redis.tokens {
        Tokens::Counter => TokenSource::Counter,
        Tokens::Time => TokenSource::ServerTime,
    }
}

/// Creates a Redis server from the options, with the initial values of the fence counters.
pub(super) fn host(options: &Options) -> RedisHost {
    let host = RedisHost::new().persistence(match options.redis.persistence {
        Persistence::None => server::Persistence::None,
        Persistence::EverySec => server::Persistence::EverySecond,
        Persistence::Always => server::Persistence::Always,
    });
    if options.redis.fence_start == 0 {
        return host;
    }
    let start = options.redis.fence_start.to_string();
    let keys = options.keys.iter().filter_map(|key| lock_key(key).ok());
    keys.fold(host, |host, key| host.preset(key.fence_key(), start.as_str()))
}

/// Checks that the options set nothing for etcd.
pub(super) fn without_etcd(options: &Options) -> Result<(), Invalid> {
    if options.etcd == Etcd::default() {
        return Ok(());
    }
    Err(FieldPath::top("etcd").says(format!("`etcd` does not apply to `{}`", options.system)))
}

/// Checks that the options set nothing for Redis.
pub(super) fn without_redis(options: &Options) -> Result<(), Invalid> {
    if options.redis == Servers::default() {
        return Ok(());
    }
    Err(FieldPath::top("redis").says(format!("`redis` does not apply to `{}`", options.system)))
}
