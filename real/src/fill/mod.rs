//! Locks by the million: what a Redis holds when every account has one.
//!
//! All is drawn from a seed, batch by batch, so that the same seed fills two servers alike, whatever the number of
//! connections. [`etcd`] is the same for an etcd. The keys are those that [`dlock::redis`] uses: a lock that is filled in is held.

pub mod etcd;

use std::io;
use std::time::Duration;

use dlock::{KeyError, LockKey, Runtime};
use futures_util::future::try_join_all;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, InfoDict, Pipeline, RedisConnectionInfo, RedisError};
use serde::{Deserialize, Serialize};

use crate::runtime::TokioRuntime;

/// How many locks go into one pipeline: some 50 KB, which neither side has to wait for.
const BATCH: u64 = 500;
/// How many pipelines are under way: one is written while the server works on another.
const CONNECTIONS: u64 = 2;

/// How many locks were filled in: a metric.
pub(crate) const FILLED: &str = "lock_generator_locks_total";

/// What to fill a Redis with.
#[derive(Clone, Debug, Serialize)]
pub struct Fill {
    /// Its address.
    pub server: String,
    /// How many locks.
    pub keys: u64,
    /// What they are called: NAME:0 and so on.
    pub key: String,
    /// What owner tokens and TTLs are drawn from.
    pub seed: u64,
    /// The shortest TTL.
    pub ttl: Duration,
    /// How much longer the longest is.
    pub spread: Duration,
    /// How grants are counted.
    pub counters: Counters,
}

/// Where the fencing tokens of the locks are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counters {
    /// Nowhere: what the owners alone cost.
    None,
    /// In a counter for each key, as the lock does.
    Key,
    /// In so many counters, shared by the keys that fall to them.
    Shards(u64),
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Filled {
    /// What was asked for.
    pub fill: Fill,
    /// How many keys the server holds more than before, counters included.
    pub keys_added: u64,
    /// How many bytes it uses more than before (`used_memory`).
    pub bytes_added: u64,
    /// How long it took.
    pub took: Duration,
}

/// The server could not be filled.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// No connection.
    #[error(
        "no connection to the Redis at {server}: {source}; check that it runs, or start one by `real up redis`"
    )]
    Connect {
        /// Its address.
        server: String,
        /// What the system said.
        source: io::Error,
    },
    /// The server refused, or went away.
    #[error("the Redis failed: {0}; with too little memory it refuses: give it more, or fewer --keys")]
    Redis(#[from] RedisError),
    /// The keys' name.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Nothing to do, or nothing that lasts.
    #[error("{0} must be above zero")]
    Zero(&'static str),
}

/// Fills the server, and tells after each batch how many locks it held.
///
/// # Errors
///
/// [`FillError`]; what is filled in by then stays.
pub async fn fill(runtime: &TokioRuntime, fill: Fill, tell: impl Fn(u64)) -> Result<Filled, FillError> {
    if fill.ttl.as_millis() == 0 {
        return Err(FillError::Zero("--ttl"));
    }
    if fill.counters == Counters::Shards(0) {
        return Err(FillError::Zero("the number of shards"));
    }
    metrics::describe_counter!(FILLED, "Locks that were filled in");
    let mut asking = connect(runtime, &fill.server).await?;
    let before = census(&mut asking).await?;
    let begun = runtime.now();
    let connections = (0..CONNECTIONS).map(|first| fill_batches(runtime, &fill, first, &tell));
    try_join_all(connections).await?;
    let took = runtime.now().saturating_since(begun);
    let after = census(&mut asking).await?;
    let (keys_added, bytes_added) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
    Ok(Filled { fill, keys_added, bytes_added, took })
}

/// Every second batch, or whatever share one of the connections has.
async fn fill_batches(
    runtime: &TokioRuntime,
    fill: &Fill,
    first: u64,
    tell: &impl Fn(u64),
) -> Result<(), FillError> {
    let mut connection = connect(runtime, &fill.server).await?;
    let mut batch = first;
    while batch * BATCH < fill.keys {
        let (pipeline, locks) = compose(fill, batch)?;
        pipeline.exec_async(&mut connection).await?;
        metrics::counter!(FILLED).increment(locks);
        tell(locks);
        batch += CONNECTIONS;
    }
    Ok(())
}

/// The commands of a batch, and how many locks they make.
fn compose(fill: &Fill, batch: u64) -> Result<(Pipeline, u64), KeyError> {
    let mut random = ChaCha8Rng::seed_from_u64(fill.seed);
    // A stream of its own, so that a batch does not depend on those before it.
    random.set_stream(batch);
    let mut pipeline = Pipeline::with_capacity(2 * BATCH as usize);
    let end = fill.keys.min((batch + 1) * BATCH);
    for number in batch * BATCH..end {
        let key = LockKey::new(&fill.key, &number.to_string())?;
        let owner = format!("{:016x}{:016x}", random.next_u64(), random.next_u64());
        let spread = u64::try_from(fill.spread.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        let ttl = fill.ttl.as_millis() + u128::from(random.next_u64() % spread);
        let ttl = ttl.to_string();
        pipeline.cmd("SET").arg(key.owner_key()).arg(owner).arg("NX").arg("PX").arg(ttl).ignore();
        match fill.counters {
            Counters::None => {}
            Counters::Key => drop(pipeline.cmd("INCR").arg(key.fence_key()).ignore()),
            Counters::Shards(shards) => {
                let shard = LockKey::new(&fill.key, &format!("shard-{}", number % shards))?;
                pipeline.cmd("INCR").arg(shard.fence_key()).ignore();
            }
        }
    }
    Ok((pipeline, end - batch * BATCH))
}

/// How many keys there are, and how much memory is used.
async fn census(connection: &mut MultiplexedConnection) -> Result<(u64, u64), FillError> {
    let keys = redis::cmd("DBSIZE").query_async(connection).await?;
    let info: InfoDict = redis::cmd("INFO").arg("memory").query_async(connection).await?;
    Ok((keys, info.get("used_memory").unwrap_or(0)))
}

async fn connect(runtime: &TokioRuntime, server: &str) -> Result<MultiplexedConnection, FillError> {
    let stream = runtime.connect(server).await;
    let stream = stream.map_err(|source| FillError::Connect { server: server.to_owned(), source })?;
    // A Redis that grows a hash table of millions is silent for a while.
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let info = RedisConnectionInfo::default().set_skip_set_lib_name();
    let (connection, driver) = MultiplexedConnection::new_with_config(&info, stream, config).await?;
    runtime.spawn(driver);
    Ok(connection)
}

impl Filled {
    /// How many bytes a lock takes, its share of the counters included.
    pub fn bytes_per_lock(&self) -> f64 {
        self.bytes_added as f64 / self.fill.keys.max(1) as f64
    }

    /// How many locks were filled in a second.
    pub fn per_second(&self) -> f64 {
        self.fill.keys as f64 / self.took.as_secs_f64().max(f64::EPSILON)
    }
}
