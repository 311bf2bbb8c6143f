//! One Redis, with a replica or without.

use std::sync::Arc;
use std::time::Duration;

use dlock::AnyBackend;
use dlock::redis::{self, Redis, RedisOptions, TokenSource};
use futures_util::future::BoxFuture;
use history::Name;
use sim::entropy::Site;
use sim::faults::{Fault, Promote};
use sim::servers::host::Host;
use sim::servers::redis::{self as server, PORT, RedisHost};
use sim::world::machine::Machine;
use sim::world::runtime::SimRuntime;
use sim::{FieldPath, Invalid, Schedule, Sim};

use super::super::get_then_del::GetThenDel;
use super::super::given::{Correct, StoredLock, Workplace};
use super::super::options::Options;
use super::super::point::{Point, ProcessKind};
use super::super::rounds::{apart, work};
use super::super::seat::{Seat, lock_key};
use super::super::servers::{Durability, Persistence, Redis as Servers, Tokens, Version, Waiting};
use super::super::system::System;
use super::super::wider::Wider;
use super::super::worker::ReleaseMode;
use super::{LockSystem, numbered, tls, work_with};

/// The host name of the current primary: `redis-1`, or its replica once that is promoted.
const LOCK_NAME: &str = "redis";

/// The name of the replica, where there is one.
const REPLICA: &str = "replica-1";

/// The name of the first primary.
const PRIMARY: &str = "redis-1";

/// Longest delay until Redis drops an expired key: it checks every 100 ms.
pub(super) const KEY_GRACE: Duration = Duration::from_millis(250);

/// The TTLs that are drawn for systems without sessions, in milliseconds.
pub(super) const TTLS_MILLIS: &[u64] = &[500, 1000, 2000, 4000];

impl System {
    /// One Redis, with a replica or without.
    pub const REDIS: Self = Self("redis");
}

/// The system `redis`.
pub(super) struct One;

impl LockSystem for One {
    fn name(&self) -> System {
        System::REDIS
    }

    fn title(&self) -> &'static str {
        "Redis"
    }

    fn servers(&self, options: &Options) -> Vec<(String, ProcessKind)> {
        let mut servers = numbered("redis", options.redis.nodes, ProcessKind::Redis);
        servers.extend(options.redis.replica.then(|| (REPLICA.to_owned(), ProcessKind::Replica)));
        servers
    }

    fn hosts(&self, options: &Options, stored: &[(StoredLock, &str)]) -> Vec<(String, Arc<dyn Host>)> {
        match options.tls {
            false => tls::plain(machines(options, stored)),
            true => tls::secured(machines(options, stored), &[]),
        }
    }

    fn addresses(&self, _: &Seat<'_>) -> Vec<String> {
        vec![address()]
    }

    fn work_with_own<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        match seat.spec.release {
            ReleaseMode::GetDel => apart(release_by_get_and_del(seat)),
            ReleaseMode::Script | ReleaseMode::None => {
                apart(work_with::<Redis<SimRuntime>>(seat, self.addresses(&seat)))
            }
        }
    }

    fn has_permits(&self) -> bool {
        true
    }

    fn tls_scheme(&self) -> Option<&'static str> {
        Some("rediss")
    }

    fn library_lock(&self, place: &Workplace<'_>) -> Option<AnyBackend<SimRuntime>> {
        Some(AnyBackend::new(Redis::at(place)?))
    }

    fn prepare(&self, sim: &mut Sim) {
        sim.alias(LOCK_NAME, PRIMARY);
    }

    fn table(&self) -> Option<&'static str> {
        Some("redis")
    }

    fn check(&self, options: &Options) -> Result<(), Invalid> {
        if options.redis.nodes != 1 {
            let problem = format!("`nodes` = {}: `redis` has one, `redlock` several", options.redis.nodes);
            return Err(FieldPath::top("redis").key("nodes").says(problem));
        }
        Ok(())
    }

    fn actions(&self) -> &'static [(&'static str, ProcessKind)] {
        &[("promote", ProcessKind::Replica)]
    }

    fn deploy_for(&self, action: Option<&str>, options: &mut Options) {
        options.redis.replica = action == Some("promote");
    }

    fn durability(&self, options: &Options) -> Durability {
        durability(options)
    }

    fn expires_keys(&self) -> bool {
        true
    }

    fn never_passes(&self, schedule: &Schedule<Options>, server: &str, _: Point) -> Option<&'static str> {
        let promotes = |fault: &Fault| {
            fault.what.downcast_ref::<Promote>().is_some_and(|promote| promote.replica == server)
        };
        let is_idle = server == REPLICA && !schedule.faults.iter().any(promotes);
        is_idle.then_some("it serves nobody until a `promote`")
    }

    fn has_get_del(&self) -> bool {
        true
    }

    fn evicts(&self) -> bool {
        true
    }

    /// Leaves the replica out: it serves no client at first.
    fn speakers(&self, _: &Options) -> Vec<String> {
        vec![PRIMARY.to_owned()]
    }

    fn voters(&self, _: &Options) -> Vec<Name> {
        vec![Name::from(PRIMARY)]
    }

    fn key_grace(&self, _: &Options) -> Duration {
        KEY_GRACE
    }

    /// The server keeps a queue if it has a limit.
    fn is_fair(&self, options: &Options) -> bool {
        options.waiters_max.is_some()
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

    fn simpler(&self, options: &Options) -> Vec<Options> {
        simpler(options)
    }

    fn wider(&self) -> &'static [Wider] {
        const { &[TOKENS_BY_TIME, SHARED_TOKENS, CALLED_WAITERS, FIRST_TOKENS, NEWER_SERVERS] }
    }

    fn small(&self, options: &mut Options) {
        options.redis.persistence = Persistence::Always;
    }
}

/// Makes the servers with their names.
fn machines<M: Machine>(options: &Options, stored: &[(StoredLock, &str)]) -> Vec<(String, RedisHost<M>)> {
    let host = |(name, kind): (String, ProcessKind)| {
        let host = host(options, stored).primary_name(LOCK_NAME);
        let is_replica = kind == ProcessKind::Replica;
        let host = if is_replica {
            let upgraded = options.redis.upgrade.unwrap_or(options.redis.version);
            host.replica_of(format!("{PRIMARY}:{PORT}")).version(upgraded.simulated())
        } else {
            host
        };
        (name, host)
    };
    One.servers(options).into_iter().map(host).collect()
}

impl Correct for Redis<SimRuntime> {
    fn at(place: &Workplace<'_>) -> Option<Self> {
        Self::new(place.runtime.clone(), place.servers.first()?, place.options.redis_lock()).ok()
    }
}

/// Returns the address of the current primary.
fn address() -> String {
    format!("{LOCK_NAME}:{PORT}")
}

async fn release_by_get_and_del(seat: Seat<'_>) {
    let address = address();
    let redis = Redis::at(&seat.workplace(vec![address.clone()]));
    if let Some(redis) = redis {
        work(seat, GetThenDel::new(redis, &address)).await;
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
        Tokens::Shared => TokenSource::Shared,
    }
}

/// Creates a Redis server from the options, with the initial values of the fence counters.
pub(super) fn host<M: Machine>(options: &Options, stored: &[(StoredLock, &str)]) -> RedisHost<M> {
    let host = RedisHost::new().persistence(match options.redis.persistence {
        Persistence::None => server::Persistence::None,
        Persistence::EverySec => server::Persistence::EverySecond,
        Persistence::Always => server::Persistence::Always,
    });
    let upgraded = options.redis.upgrade.unwrap_or(options.redis.version);
    let host = host.version(options.redis.version.simulated()).version_after_restart(upgraded.simulated());
    let host = stored.iter().fold(host, |host, (stored, lock)| match stored {
        StoredLock::Key(key) => host.lock_key(key.as_str(), *lock),
        // Refused before: Redis has no queues.
        StoredLock::Queue(_) | StoredLock::Apart { .. } => host,
    });
    if options.redis.fence_start == 0 {
        return host;
    }
    let start = options.redis.fence_start.to_string();
    let keys = options.keys.iter().filter_map(|key| lock_key(key).ok());
    keys.fold(host, |host, key| host.preset(key.fence_key(), start.as_str()))
}

impl Version {
    /// Returns the version as the simulated server knows it.
    pub(crate) fn simulated(self) -> server::Version {
        match self {
            Self::Redis7 => server::Version::Redis7,
            Self::Redis84 => server::Version::Redis84,
            Self::Valkey9 => server::Version::Valkey9,
        }
    }
}

/// Returns the data that a Redis server keeps when its process ends.
pub(super) fn durability(options: &Options) -> Durability {
    match options.redis.persistence {
        Persistence::None => Durability::None("redis.persistence = \"none\""),
        Persistence::EverySec => Durability::Written,
        Persistence::Always => Durability::Acknowledged,
    }
}

/// Takes tokens from the clocks of the servers.
pub(super) const TOKENS_BY_TIME: Wider =
    Wider::new("tokens by time", 0.15, |options, _| options.redis.tokens = Tokens::Time);

/// Takes tokens from counters that keys share.
const SHARED_TOKENS: Wider =
    Wider::new("shared tokens", 0.1, |options, _| options.redis.tokens = Tokens::Shared);

/// Makes the servers newer ones, or upgrades them when they restart; a few go back to the older version.
pub(super) const NEWER_SERVERS: Wider = Wider::new("newer servers", 0.3, |options, site| {
    options.redis.version = site.one_of(Version::ALL);
    options.redis.upgrade = Some(site.one_of(Version::ALL)).filter(|later| *later != options.redis.version);
});

const CALLED_WAITERS: Wider =
    Wider::new("called waiters", 0.25, |options, _| options.redis.waiting = Waiting::Called);

/// The last tokens before a boundary at which tokens are compared wrongly as text, in 32 bits or as
/// floating-point numbers.
const BOUNDARIES: [u64; 4] = [9, 99, (1 << 32) - 1, 1 << 53];

/// Starts the counters at a boundary, or up to two tokens before it.
pub(super) const FIRST_TOKENS: Wider = Wider::new("first tokens", 0.1, |options, site| {
    // Redlock and tokens by time count in Lua, which fails at the last boundary.
    let counts_in_lua = options.redis.nodes > 1 || options.redis.tokens == Tokens::Time;
    let boundaries = &BOUNDARIES[..BOUNDARIES.len() - usize::from(counts_in_lua)];
    options.redis.fence_start = site.one_of(boundaries) - site.below(3);
});

/// Returns simpler options of the servers.
pub(super) fn simpler(options: &Options) -> Vec<Options> {
    let redis = options.redis;
    let plain = Servers::default();
    let servers = [
        Servers { nodes: redis.nodes.saturating_sub(2).max(1), ..redis },
        Servers { nodes: redis.nodes.saturating_sub(1).max(1), ..redis },
        Servers { replica: plain.replica, ..redis },
        Servers { persistence: plain.persistence, ..redis },
        Servers { fence_start: plain.fence_start, ..redis },
        Servers { tokens: plain.tokens, ..redis },
        Servers { waiting: plain.waiting, ..redis },
        Servers { upgrade: plain.upgrade, ..redis },
        Servers { version: plain.version, ..redis },
    ];
    servers.into_iter().map(|redis| Options { redis, ..options.clone() }).collect()
}
