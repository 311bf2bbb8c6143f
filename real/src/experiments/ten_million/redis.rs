//! Ten million locks on Redis: their memory, and their expiry.

use std::cell::RefCell;
use std::time::Duration;

use dlock::{Instant, LockKey, Runtime};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle};

use super::Configuration;
use crate::experiments::ExperimentError;
use crate::fill::{Counters, Fill, Filled, Way, fill};
use crate::servers::{Persistence, Redis, Stage, ask};
use dlock::TokioRuntime;

/// The prefix of the keys.
const KEY: &str = "account";
/// The number of expired locks that are read.
const ASKED: u64 = 1000;

/// The cost of locks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Memory {
    pub(super) counters: Counters,
    pub(super) way: Way,
    pub(super) locks: u64,
    /// Keys of the server, counters included.
    pub(super) keys: u64,
    /// Growth of `used_memory`.
    pub(super) bytes_per_lock: f64,
    /// `MEMORY USAGE` of the first lock's owner key.
    pub(super) memory_usage_bytes: u64,
    pub(super) per_second: f64,
}

/// A run in which all locks expire.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Curve {
    /// True if active expiry is always on; false if it is on only after all locks have expired.
    pub(super) active: bool,
    pub(super) locks: u64,
    pub(super) samples: Vec<Sample>,
    /// Without active expiry: the state when all locks have expired.
    pub(super) idle: Option<Sample>,
    /// The number of expired locks read then, and the decrease of the number of keys.
    pub(super) asked: u64,
    pub(super) removed_by_asking: u64,
    /// The time from the last expiry (or from the start of active expiry, if later) until no key was left.
    pub(super) reclaimed_after_s: Option<f64>,
}

/// The state of the server at one time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Sample {
    /// Since the last lock was set.
    pub(super) at_s: f64,
    /// Locks whose TTL has not passed.
    pub(super) live: u64,
    pub(super) dbsize: u64,
    pub(super) used_memory: u64,
}

impl Curve {
    pub(super) fn name(&self) -> &'static str {
        if self.active { "active" } else { "lazy, then active" }
    }

    pub(super) fn overstated_max(&self) -> u64 {
        let all = self.samples.iter().chain(&self.idle);
        all.map(|sample| sample.dbsize.saturating_sub(sample.live)).max().unwrap_or(0)
    }
}

/// Fills a server and measures the cost.
pub(super) fn memory(
    configuration: &Configuration,
    counters: Counters,
    way: Way,
) -> Result<Memory, ExperimentError> {
    let stage = Stage::new()?;
    let redis = Redis::start(&stage, "redis", Persistence::None)?;
    let (filled, _) = block_on(async {
        let runtime = TokioRuntime::new(Handle::current());
        fill_with(&runtime, &redis, configuration, (counters, way), configuration.ttl.0).await
    })?;
    let first = LockKey::new(KEY, "0").map_err(|error| failed(&error))?;
    let usage = number(&redis, &format!("MEMORY USAGE {}", first.owner_key()))?;
    Ok(Memory {
        counters,
        way,
        locks: configuration.keys,
        keys: filled.keys_added,
        bytes_per_lock: filled.bytes_per_lock(),
        memory_usage_bytes: usage,
        per_second: filled.per_second(),
    })
}

/// The number of locks set, at points in time.
type Progress = Vec<(Instant, u64)>;

async fn fill_with(
    runtime: &TokioRuntime,
    redis: &Redis,
    configuration: &Configuration,
    (counters, way): (Counters, Way),
    ttl: Duration,
) -> Result<(Filled, Progress), ExperimentError> {
    let order = Fill {
        server: redis.address(),
        keys: configuration.keys,
        key: KEY.to_owned(),
        seed: configuration.seed,
        ttl,
        spread: Duration::ZERO,
        counters,
        way,
    };
    let progress = RefCell::new(Progress::new());
    let on_batch = |locks| {
        let mut progress = progress.borrow_mut();
        let before = progress.last().map_or(0, |(_, sum)| *sum);
        progress.push((runtime.now(), before + locks));
    };
    let filled = fill(runtime, order, on_batch).await.map_err(|error| failed(&error))?;
    Ok((filled, progress.into_inner()))
}

/// Fills a server with locks that expire, and samples it.
pub(super) fn expire(configuration: &Configuration, active: bool) -> Result<Curve, ExperimentError> {
    let stage = Stage::new()?;
    let redis = Redis::start(&stage, "redis", Persistence::None)?;
    block_on(async {
        let runtime = TokioRuntime::new(Handle::current());
        if !active {
            order(&redis, "DEBUG SET-ACTIVE-EXPIRE 0")?;
        }
        let ttl = configuration.expiry_ttl.0;
        let (_, progress) =
            fill_with(&runtime, &redis, configuration, (Counters::None, Way::Commands), ttl).await?;
        Watch { redis: &redis, runtime, configuration, progress }.curve(active).await
    })
}

struct Watch<'a> {
    redis: &'a Redis,
    runtime: TokioRuntime,
    configuration: &'a Configuration,
    progress: Progress,
}

impl Watch<'_> {
    async fn curve(&self, active: bool) -> Result<Curve, ExperimentError> {
        let mut curve = Curve {
            active,
            locks: self.configuration.keys,
            samples: Vec::new(),
            idle: None,
            asked: 0,
            removed_by_asking: 0,
            reclaimed_after_s: None,
        };
        let mut from = self.last_set() + self.configuration.expiry_ttl.0;
        if !active {
            self.sample_until(&mut curve, from + self.configuration.every.0).await?;
            curve.idle = curve.samples.last().cloned();
            (curve.asked, curve.removed_by_asking) = self.ask_for_expired()?;
            order(self.redis, "DEBUG SET-ACTIVE-EXPIRE 1")?;
            from = self.runtime.now();
        }
        self.sample_until(&mut curve, from + self.configuration.expiry_timeout.0).await?;
        if curve.samples.last().is_some_and(|sample| sample.dbsize == 0) {
            let after = self.runtime.now().saturating_since(from);
            curve.reclaimed_after_s = Some(after.as_secs_f64());
        }
        Ok(curve)
    }

    /// Samples the server until `deadline`, or until no lock is left.
    async fn sample_until(&self, curve: &mut Curve, deadline: Instant) -> Result<(), ExperimentError> {
        loop {
            let sample = self.sample()?;
            let is_over = sample.dbsize == 0 || self.runtime.now() >= deadline;
            curve.samples.push(sample);
            if is_over {
                return Ok(());
            }
            self.runtime.sleep_until(self.runtime.now() + self.configuration.every.0).await;
        }
    }

    fn sample(&self) -> Result<Sample, ExperimentError> {
        let dbsize = number(self.redis, "DBSIZE")?;
        let now = self.runtime.now();
        let memory = text(self.redis, "INFO memory", |answer| answer.contains("used_memory_human"))?;
        let used = memory.lines().find_map(|line| line.strip_prefix("used_memory:")?.trim().parse().ok());
        Ok(Sample {
            at_s: now.saturating_since(self.last_set()).as_secs_f64(),
            live: self.live(now),
            dbsize,
            used_memory: used.unwrap_or(0),
        })
    }

    /// Returns the number of locks set less than a TTL ago.
    fn live(&self, now: Instant) -> u64 {
        let ttl = self.configuration.expiry_ttl.0;
        let expired = self.progress.partition_point(|(at, _)| *at + ttl <= now);
        let ended = expired.checked_sub(1).map_or(0, |last| self.progress[last].1);
        self.configuration.keys.saturating_sub(ended)
    }

    fn last_set(&self) -> Instant {
        // There is at least one lock.
        self.progress.last().map_or(self.runtime.now(), |(at, _)| *at)
    }

    /// Reads some expired locks one by one; returns their number, and the decrease of the number of keys.
    fn ask_for_expired(&self) -> Result<(u64, u64), ExperimentError> {
        let asked = ASKED.min(self.configuration.keys);
        let before = number(self.redis, "DBSIZE")?;
        for lock in 0..asked {
            let key = LockKey::new(KEY, &lock.to_string()).map_err(|error| failed(&error))?;
            text(self.redis, &format!("GET {}", key.owner_key()), |answer| answer.ends_with("\r\n"))?;
        }
        Ok((asked, before.saturating_sub(number(self.redis, "DBSIZE")?)))
    }
}

fn block_on<T>(work: impl Future<Output = Result<T, ExperimentError>>) -> Result<T, ExperimentError> {
    Builder::new_current_thread().enable_all().build().map_err(|error| failed(&error))?.block_on(work)
}

fn order(redis: &Redis, command: &str) -> Result<(), ExperimentError> {
    let answer = text(redis, command, |answer| answer.ends_with("\r\n"))?;
    if answer.starts_with("+OK") {
        return Ok(());
    }
    Err(ExperimentError::Failed(format!("the Redis refused `{command}`: {}", answer.trim())))
}

fn number(redis: &Redis, command: &str) -> Result<u64, ExperimentError> {
    let answer = text(redis, command, |answer| answer.ends_with("\r\n"))?;
    let number = answer.strip_prefix(':').and_then(|number| number.trim().parse().ok());
    number.ok_or_else(|| {
        ExperimentError::Failed(format!("the Redis answered {:?} to {command}", answer.trim()))
    })
}

fn text(redis: &Redis, command: &str, whole: impl Fn(&str) -> bool) -> Result<String, ExperimentError> {
    let told = ask(redis.port(), &format!("{command}\r\n"), whole);
    told.map_err(|error| ExperimentError::Failed(format!("the Redis did not answer {command}: {error}")))
}

fn failed(error: &dyn std::error::Error) -> ExperimentError {
    ExperimentError::Failed(error.to_string())
}
