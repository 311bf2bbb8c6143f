//! Fills a Redis with millions of locks.
//!
//! All values are drawn from a seed, batch by batch, so that one seed gives the same locks with any number of
//! connections. [`etcd`] does the same for etcd. The keys are those of [`dlock::redis`]: each lock made here
//! is held.

mod by_lock;
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

use dlock::TokioRuntime;

/// Locks in a pipeline: some 50 KB, which fit the socket buffers.
const BATCH: u64 = 500;
/// Pipelines in flight: one is written while the server works on the other.
const CONNECTIONS: u64 = 2;

/// The metric that counts the locks made.
pub(crate) const FILLED: &str = "lock_generator_locks_total";

/// The order to fill a Redis.
#[derive(Clone, Debug, Serialize)]
pub struct Fill {
    /// Its address.
    pub server: String,
    /// The number of locks.
    pub keys: u64,
    /// The prefix of the keys: NAME:0 and so on.
    pub key: String,
    /// The seed of the owner tokens and TTLs.
    pub seed: u64,
    /// The shortest TTL.
    pub ttl: Duration,
    /// The difference between the longest and the shortest TTL.
    pub spread: Duration,
    /// The fencing counters to make.
    pub counters: Counters,
    /// Who makes the locks.
    pub way: Way,
}

/// Who makes the locks of a fill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// The commands of an acquire, in pipelines: as many as the server can take, with the owner tokens of the
    /// seed.
    #[default]
    Commands,
    /// The lock itself, by its script. It draws the owner tokens.
    Lock,
}

/// The fencing counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counters {
    /// No counters: measures the cost of the owner keys alone.
    None,
    /// A counter for each key, as the lock has.
    Key,
    /// This number of counters, shared by all keys.
    Shards(u64),
    /// A counter for each hash slot: those of [`TokenSource::Shared`].
    ///
    /// [`TokenSource::Shared`]: dlock::redis::TokenSource::Shared
    Slots,
}

impl Way {
    /// Returns its name, as `--way` takes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Commands => "commands",
            Self::Lock => "lock",
        }
    }
}

/// The result.
#[derive(Debug, Serialize)]
pub struct Filled {
    /// The order.
    pub fill: Fill,
    /// Growth of the number of keys, counters included.
    pub keys_added: u64,
    /// Growth of the memory in use (`used_memory`), in bytes.
    pub bytes_added: u64,
    /// The duration.
    pub took: Duration,
}

/// Why the server could not be filled.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// The connection failed.
    #[error(
        "no connection to the Redis at {server}: {source}; check that it runs, or start one by `real up \
         redis`"
    )]
    Connect {
        /// Its address.
        server: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The server refused a command, or is gone.
    #[error("the Redis failed: {0}; if it is out of memory, raise its limit or lower --keys")]
    Redis(#[from] RedisError),
    /// The prefix is no valid key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A number is zero.
    #[error("{0} is zero: set it above zero")]
    Zero(&'static str),
    /// The lock has no such counters, or only the lock has them.
    #[error("--way {} can't make these counters: {help}", way.as_str())]
    Counters {
        /// Who makes the locks.
        way: Way,
        /// What to do.
        help: &'static str,
    },
    /// The lock was not acquired.
    #[error("a lock was not made: {0}")]
    Acquire(#[from] dlock::AcquireError),
    /// The server's address or the TTL is invalid.
    #[error(transparent)]
    Setup(#[from] dlock::SetupError),
    /// The TTL is invalid.
    #[error(transparent)]
    Options(#[from] dlock::OptionsError),
}

/// Fills the server and calls `on_batch` after each batch with the number of its locks.
///
/// # Errors
///
/// [`FillError`]. Locks made until then stay.
pub async fn fill(runtime: &TokioRuntime, fill: Fill, on_batch: impl Fn(u64)) -> Result<Filled, FillError> {
    if fill.ttl.as_millis() == 0 {
        return Err(FillError::Zero("--ttl"));
    }
    if fill.counters == Counters::Shards(0) {
        return Err(FillError::Zero("the number of shards"));
    }
    match (fill.way, fill.counters) {
        (way @ Way::Commands, Counters::Slots) => {
            return Err(FillError::Counters { way, help: "give --way lock for a counter each slot" });
        }
        (way @ Way::Lock, Counters::Shards(_)) => {
            return Err(FillError::Counters { way, help: "give --counters slots for shared ones" });
        }
        _ => {}
    }
    metrics::describe_counter!(FILLED, "Locks that were filled in");
    let mut asking = connect(runtime, &fill.server).await?;
    let before = census(&mut asking).await?;
    let begun = runtime.now();
    match fill.way {
        Way::Commands => {
            let connections = (0..CONNECTIONS).map(|first| fill_batches(runtime, &fill, first, &on_batch));
            try_join_all(connections).await?;
        }
        Way::Lock => by_lock::fill(runtime, &fill, &on_batch).await?,
    }
    let took = runtime.now().saturating_since(begun);
    let after = census(&mut asking).await?;
    let (keys_added, bytes_added) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
    Ok(Filled { fill, keys_added, bytes_added, took })
}

/// Sends the batches of one connection.
async fn fill_batches(
    runtime: &TokioRuntime,
    fill: &Fill,
    first: u64,
    on_batch: &impl Fn(u64),
) -> Result<(), FillError> {
    let mut connection = connect(runtime, &fill.server).await?;
    let mut batch = first;
    while batch * BATCH < fill.keys {
        let (pipeline, locks) = compose(fill, batch)?;
        pipeline.exec_async(&mut connection).await?;
        metrics::counter!(FILLED).increment(locks);
        on_batch(locks);
        batch += CONNECTIONS;
    }
    Ok(())
}

/// Returns the commands of a batch, and the number of its locks.
fn compose(fill: &Fill, batch: u64) -> Result<(Pipeline, u64), KeyError> {
    let mut random = ChaCha8Rng::seed_from_u64(fill.seed);
    // A random stream for each batch, so that it does not depend on the batches before it.
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
            // Slots are the lock's own.
            Counters::None | Counters::Slots => {}
            Counters::Key => drop(pipeline.cmd("INCR").arg(key.fence_key()).ignore()),
            Counters::Shards(shards) => {
                let shard = LockKey::new(&fill.key, &format!("shard-{}", number % shards))?;
                pipeline.cmd("INCR").arg(shard.fence_key()).ignore();
            }
        }
    }
    Ok((pipeline, end - batch * BATCH))
}

/// Returns the number of keys and the memory in use.
async fn census(connection: &mut MultiplexedConnection) -> Result<(u64, u64), FillError> {
    let keys = redis::cmd("DBSIZE").query_async(connection).await?;
    let info: InfoDict = redis::cmd("INFO").arg("memory").query_async(connection).await?;
    Ok((keys, info.get("used_memory").unwrap_or(0)))
}

async fn connect(runtime: &TokioRuntime, server: &str) -> Result<MultiplexedConnection, FillError> {
    let stream = runtime.connect(server).await;
    let stream = stream.map_err(|source| FillError::Connect { server: server.to_owned(), source })?;
    // No timeout: a Redis that resizes a hash table of millions does not answer for a while.
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let info = RedisConnectionInfo::default().set_skip_set_lib_name();
    let (connection, driver) = MultiplexedConnection::new_with_config(&info, stream, config).await?;
    runtime.spawn(driver);
    Ok(connection)
}

impl Filled {
    /// Returns the bytes for each lock, its share of the counters included.
    pub fn bytes_per_lock(&self) -> f64 {
        self.bytes_added as f64 / self.fill.keys.max(1) as f64
    }

    /// Returns the locks made a second.
    pub fn per_second(&self) -> f64 {
        self.fill.keys as f64 / self.took.as_secs_f64().max(f64::EPSILON)
    }
}
