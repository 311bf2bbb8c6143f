//! Contenders that update one row of PostgreSQL, each again as soon as it is done.
//!
//! Both ways read the version of the row, work, and write if the version is still the same: the row decides
//! in either. What differs is that a contender with a lock waits before it reads.

use std::error::Error;

use deadpool_postgres::Pool;
use dlock::redis::Waiting;
use dlock::{
    AcquireError, AnyBackend, Backend, Backoff, Instant, Lock, LockKey, Options, Runtime, TokioRuntime,
};
use tokio::runtime::{Builder, Handle};
use tokio::task::{JoinSet, spawn_blocking};

use super::{Configuration, Way, Work};
use crate::clock::thread_time;
use crate::contend::postgres_pool;
use crate::place::Place;
use crate::timer;

/// The error that stopped a measurement.
type Stopped = Box<dyn Error + Send + Sync>;

const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS crossing (row_id text PRIMARY KEY, version bigint NOT NULL DEFAULT 0)";
const INSERT: &str = "INSERT INTO crossing (row_id) VALUES ($1)";
const READ: &str = "SELECT version FROM crossing WHERE row_id = $1";
const WRITE: &str = "UPDATE crossing SET version = version + 1 WHERE row_id = $1 AND version = $2";

/// The updates of all contenders until the end of a run.
#[derive(Debug, Default)]
pub(super) struct Updates {
    /// From the begin of an update to its success, in milliseconds, and whether it was done. What was not
    /// done by the end counts with the time until then.
    pub(super) times_ms: Vec<(f64, bool)>,
    pub(super) done: u64,
    /// Works whose result was thrown away, since the row had changed.
    pub(super) in_vain: u64,
    /// Contenders that had no success.
    pub(super) unserved: u64,
}

/// The load of one run.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) way: Way,
    pub(super) work: Work,
    pub(super) contenders: u64,
    /// The number of the run: each updates a row of its own.
    pub(super) run: u32,
}

/// Runs contenders that all update one row in the PostgreSQL at `url`, with the Redis at `redis` for the
/// lock.
pub(super) fn offer(
    configuration: &Configuration,
    load: Load,
    (url, redis): (&str, &Place),
) -> Result<Updates, Stopped> {
    let Load { way, work, contenders, run } = load;
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let (pool, runtime) = (postgres_pool(url)?, TokioRuntime::new(Handle::current()));
        let row = format!("{}-{contenders}-{}-{run}", <&str>::from(way), work.name());
        let client = pool.get().await?;
        client.batch_execute(TABLE).await?;
        client.execute(INSERT, &[&row]).await?;
        drop(client);
        let ttl = configuration.ttl.0;
        let lock = Lock::new(redis.backend(ttl, Waiting::default(), runtime.clone())?, Options::new(ttl))?;
        let key = LockKey::new("row", &row)?;
        // Opens the connection and loads the scripts.
        lock.acquire(&key, runtime.now() + ttl).await?.release().await?;
        let ends = runtime.now() + configuration.lasts.0;
        let contender = Contender { way, work, row, pool, lock, key, ends };
        let mut running = JoinSet::new();
        for _ in 0..contenders {
            let contender = contender.clone();
            running.spawn(async move { contender.update().await });
        }
        let mut all = Updates::default();
        while let Some(ended) = running.join_next().await {
            let Updates { times_ms, done, in_vain, .. } = ended??;
            all.times_ms.extend(times_ms);
            all.done += done;
            all.in_vain += in_vain;
            all.unserved += u64::from(done == 0);
        }
        Ok(all)
    })
}

#[derive(Clone)]
struct Contender {
    way: Way,
    work: Work,
    row: String,
    pool: Pool,
    lock: Lock<AnyBackend<TokioRuntime>>,
    key: LockKey,
    ends: Instant,
}

impl Contender {
    /// Updates the row until the end.
    async fn update(&self) -> Result<Updates, Stopped> {
        let mut updates = Updates::default();
        loop {
            let called = self.now();
            if called >= self.ends {
                return Ok(updates);
            }
            let is_done = match self.way {
                Way::Conditional => self.without_lock(&mut updates).await?,
                Way::Lock => self.with_lock(&mut updates).await?,
            };
            let until = self.now().min(self.ends);
            let is_done = is_done && until < self.ends;
            updates.times_ms.push((until.saturating_since(called).as_secs_f64() * 1e3, is_done));
            updates.done += u64::from(is_done);
        }
    }

    /// Tries again until it wins, or the end; returns true if it has won.
    async fn without_lock(&self, updates: &mut Updates) -> Result<bool, Stopped> {
        let mut retry = 0;
        while !self.try_once(updates).await? {
            self.back_off(retry).await;
            retry += 1;
            if self.now() >= self.ends {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits for the lock until the end, and tries once; returns true if it has won.
    async fn with_lock(&self, updates: &mut Updates) -> Result<bool, Stopped> {
        let handle = match self.lock.acquire(&self.key, self.ends).await {
            Ok(handle) => handle,
            Err(_) if self.now() >= self.ends => return Ok(false),
            Err(AcquireError::Taken { .. } | AcquireError::Late) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let has_won = self.try_once(updates).await?;
        handle.release().await?;
        Ok(has_won)
    }

    /// Reads the version, works, and writes if it is still the same. Keeps no connection while it works.
    async fn try_once(&self, updates: &mut Updates) -> Result<bool, Stopped> {
        let version: i64 = {
            let client = self.pool.get().await?;
            let read = client.prepare_cached(READ).await?;
            client.query_one(&read, &[&self.row]).await?.try_get(0)?
        };
        self.work.run().await?;
        let client = self.pool.get().await?;
        let write = client.prepare_cached(WRITE).await?;
        let has_won = client.execute(&write, &[&self.row, &version]).await? > 0;
        updates.in_vain += u64::from(!has_won);
        Ok(has_won)
    }

    /// Waits with the backoff of the lock library.
    async fn back_off(&self, retry: u32) {
        let runtime = self.lock.backend().runtime();
        let mut random = [0; 8];
        runtime.fill_random(&mut random);
        let wake = runtime.now() + Backoff::default().wait(retry, random);
        runtime.sleep_until(wake.min(self.ends)).await;
    }

    fn now(&self) -> Instant {
        self.lock.backend().runtime().now()
    }
}

impl Work {
    #[allow(clippy::disallowed_methods, reason = "it measures live servers: their work needs a processor")]
    async fn run(self) -> Result<(), Stopped> {
        let takes = self.takes.0;
        if self.computes {
            // So much time of a processor, however long the thread waits for one.
            let compute = move || {
                let ends = thread_time() + takes;
                while thread_time() < ends {
                    std::hint::spin_loop();
                }
            };
            spawn_blocking(compute).await?;
        } else {
            timer::sleep(takes).await;
        }
        Ok(())
    }
}
