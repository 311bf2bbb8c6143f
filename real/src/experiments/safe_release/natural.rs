//! The race at its natural timing: the holder releases when its lease is about to expire; no step is held up.
#![allow(clippy::disallowed_methods, reason = "two clients race in real time, each on a thread of its own")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dlock::{Backend, Lock, LockKey, Options, Released, Runtime};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle};

use super::Configuration;
use super::failed;
use super::release::{Release, Releasing};
use crate::experiments::ExperimentError;
use crate::servers::{Persistence, Redis, Stage};
use dlock::TokioRuntime;

/// The range of the moments of release; most of it lies before the end of the lease.
const SPREAD: Duration = Duration::from_millis(3);
/// The part of the range after the end of the lease.
const AFTER: Duration = Duration::from_millis(1);
/// The other client's TTL: its lease never expires here.
const LONG: Duration = Duration::from_secs(60);
/// The time for which the other client holds the lock, so that the holder's DEL can delete it.
const HOLDS: Duration = Duration::from_millis(3);
/// The value of `round` after the last round.
const OVER: u32 = u32::MAX;

/// The counts over all rounds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Natural {
    pub(super) release: Release,
    pub(super) rounds: u32,
    /// Releases confirmed as in time.
    pub(super) in_time: u32,
    /// Locks of the other client that were gone before its release, long before they would expire.
    pub(super) struck: u32,
}

/// Runs all rounds on a Redis of its own.
pub(super) fn play(release: Release, configuration: &Configuration) -> Result<Natural, ExperimentError> {
    let stage = Stage::new()?;
    let redis = Redis::start(&stage, "redis", Persistence::None)?;
    let race = Race { redis: redis.address(), configuration, round: AtomicU32::new(0) };
    thread::scope(|scope| {
        let other = scope.spawn(|| race.on_this_thread(Release::Script, LONG, Race::take));
        let holder = race.on_this_thread(release, configuration.race_ttl.0, Race::hold);
        race.round.store(OVER, Ordering::Release);
        let struck = match other.join() {
            Ok(struck) => struck,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        Ok(Natural { release, rounds: configuration.rounds, in_time: holder?, struck: struck? })
    })
}

struct Race<'a> {
    redis: String,
    configuration: &'a Configuration,
    /// The round in which the holder holds the lock.
    round: AtomicU32,
}

type Client = Lock<Releasing<()>>;

impl Race<'_> {
    fn on_this_thread(
        &self,
        release: Release,
        ttl: Duration,
        act: impl AsyncFnOnce(&Self, Client, LockKey) -> Result<u32, ExperimentError>,
    ) -> Result<u32, ExperimentError> {
        let executor = Builder::new_current_thread().enable_all().build().map_err(|error| failed(&error))?;
        executor.block_on(async {
            let runtime = TokioRuntime::new(Handle::current());
            let backend = Releasing::connect(runtime, &self.redis, "client", release, ()).await;
            let lock = Lock::new(backend.map_err(|error| failed(&error))?, Options::new(ttl));
            let key = LockKey::new("race", "0").map_err(|error| failed(&error))?;
            act(self, lock.map_err(|error| failed(&error))?, key).await
        })
    }

    /// Acquires and releases in each round; returns the number of releases that were confirmed as in time.
    async fn hold(&self, lock: Client, key: LockKey) -> Result<u32, ExperimentError> {
        let Configuration { rounds, race_ttl, .. } = *self.configuration;
        let mut in_time = 0;
        for round in 1..=rounds {
            let deadline = lock.backend().runtime().now() + LONG;
            let handle = lock.acquire(&key, deadline).await.map_err(|error| failed(&error))?;
            let granted = Instant::now();
            self.round.store(round, Ordering::Release);
            let until = race_ttl.0 + AFTER - SPREAD.mul_f64(f64::from(round) / f64::from(rounds));
            // Accurate to a tenth of a millisecond, unlike tokio's timer.
            thread::sleep(until.saturating_sub(granted.elapsed()));
            let released = handle.release().await.map_err(|error| failed(&error))?;
            in_time += u32::from(released == Released::Done);
        }
        Ok(in_time)
    }

    /// Polls without a pause while the holder holds the lock, holds it briefly, and releases by the script.
    /// Returns the number of times that the lock was gone by then.
    async fn take(&self, lock: Client, key: LockKey) -> Result<u32, ExperimentError> {
        let (mut struck, mut last) = (0, 0);
        loop {
            match self.round.load(Ordering::Acquire) {
                OVER => return Ok(struck),
                round if round == last => thread::yield_now(),
                round => {
                    if let Ok(handle) = lock.try_acquire(&key).await {
                        thread::sleep(HOLDS);
                        let released = handle.release().await.map_err(|error| failed(&error))?;
                        struck += u32::from(released == Released::NotOwner);
                        last = round;
                    }
                }
            }
        }
    }
}
