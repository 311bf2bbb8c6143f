//! The load: acquisitions at a fixed rate, whatever the lock makes of them.
//!
//! The model is open: attempt `i` is due at `i / rate`, whether those before it were served or not, and its latency counts
//! from when it was due. So a lock that stalls is charged for all who would have come meanwhile, and not only for those
//! who had come already ("coordinated omission", Tene, "How NOT to Measure Latency", 2015). The contenders are a pool:
//! an attempt that finds none free waits for one, and is charged for that too. Attempts that are not served at the end, or
//! fail before, count with the time they have waited by then, which is less than they would have.
//!
//! tokio's timer counts whole milliseconds, so an attempt begins up to 1 ms after it was due. Where locks are free at once
//! that is most of its latency: there, read the latency from the call. The work is as long as it should be (`timer.rs`).

mod conditional;
mod report;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dlock::redis::{Redis, RedisOptions, Waiting};
use dlock::{AcquireError, Backend, Instant, KeyError, Lock, LockKey, Options, OptionsError, Runtime};
use hdrhistogram::RecordError;
use serde::Serialize;
use tokio::task::JoinSet;

use self::report::fairness;
pub use self::report::{Latencies, Report};
use crate::runtime::TokioRuntime;
use crate::systems::{self, System, SystemError};
use crate::timer;

/// What decides who may work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arm {
    /// A lock.
    #[default]
    Lock,
    /// No lock: the version column of a row in PostgreSQL, read before the work and compared by the write after it.
    Version,
    /// No lock: the status column of a job in PostgreSQL, which a conditional update sets.
    Jobs,
}

/// What is offered to a lock.
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    /// What decides who may work. Where it is not a lock, `servers` has the address of a PostgreSQL, and `system` means
    /// nothing.
    pub arm: Arm,
    /// The lock server.
    pub system: System,
    /// Its addresses.
    #[serde(skip)]
    pub servers: Vec<String>,
    /// How long a lease lives.
    pub ttl: Duration,
    /// How long a lease is held.
    pub work: Duration,
    /// How many can wait or hold at a time.
    pub contenders: u64,
    /// What the keys are called.
    pub key: String,
    /// How many keys there are; attempt `i` is for key `i` modulo so many.
    pub keys: u64,
    /// How many attempts a second.
    pub rate: f64,
    /// For how long.
    pub lasts: Duration,
    /// Whether those who wait on a single Redis only ask from time to time, and are not called when the lock is given up.
    pub polled: bool,
}

/// A load that can't be offered.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Nothing would happen.
    #[error("{0} must be above zero")]
    Zero(&'static str),
    /// Too much to keep account of.
    #[error("{0} attempts are too many for one run: lower --rate or --for")]
    TooMany(f64),
    /// The keys' name.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The TTL.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The servers.
    #[error(transparent)]
    System(#[from] SystemError),
    /// The PostgreSQL that decides in place of a lock.
    #[error("PostgreSQL failed: {0}; check that it runs and lets this user create tables")]
    Postgres(String),
    /// No such, or several.
    #[error("without a lock one PostgreSQL decides: give its address, postgresql://user@host:port/database")]
    NoPostgres,
    /// A contender failed by a mistake of ours.
    #[error("a contender panicked: {0}")]
    Panicked(#[from] tokio::task::JoinError),
    /// A latency beyond what the histogram was made for.
    #[error("a latency can't be recorded: {0}")]
    Histogram(#[from] RecordError),
}

/// More attempts than any machine of ours serves in an hour.
const ATTEMPTS_MAX: f64 = 1e9;

/// Offers `load` and waits until it is over.
///
/// # Errors
///
/// [`LoadError`]; attempts that fail are counted and are none.
pub async fn contend(load: Load, runtime: TokioRuntime) -> Result<Report, LoadError> {
    let zero = |zero: bool, what| if zero { Err(LoadError::Zero(what)) } else { Ok(()) };
    zero(load.contenders == 0, "--contenders")?;
    zero(load.keys == 0, "--keys")?;
    zero(load.lasts.is_zero(), "--for")?;
    zero(!(load.rate.is_finite() && load.rate > 0.0), "--rate")?;
    let attempts = (load.rate * load.lasts.as_secs_f64()).ceil();
    if attempts > ATTEMPTS_MAX {
        return Err(LoadError::TooMany(attempts));
    }
    // It is at most a billion, and whole.
    let offer = Offer { load, attempts: attempts as u64 };
    let Load { system, ttl, polled, ref servers, .. } = offer.load;
    let servers = servers.clone();
    if offer.load.arm != Arm::Lock {
        let [url] = servers.as_slice() else { return Err(LoadError::NoPostgres) };
        return conditional::contend(offer, url, runtime).await;
    }
    if let (System::Redis, true, [server]) = (system, polled, servers.as_slice()) {
        let mut options = RedisOptions::default();
        options.waiting = Waiting::Polled;
        return offer.run(Redis::new(runtime, server, options).map_err(SystemError::from)?).await;
    }
    offer.run(systems::backend(system, &servers, ttl, runtime)?).await
}

struct Offer {
    load: Load,
    attempts: u64,
}

impl Offer {
    async fn run<B: Backend<Runtime = TokioRuntime>>(self, backend: B) -> Result<Report, LoadError> {
        let runtime = backend.runtime().clone();
        let lock = Lock::new(backend, Options::new(self.load.ttl))?;
        warm_up(&lock, &self.load).await?;
        let book = Arc::new(Book::open(self, &runtime));
        let mut contenders = JoinSet::new();
        for _ in 0..book.contenders() {
            contenders.spawn(serve_attempts(lock.clone(), Arc::clone(&book)));
        }
        while let Some(ended) = contenders.join_next().await {
            ended??;
        }
        book.report()
    }
}

/// The connection is opened and the scripts are loaded before the clock runs. What fails here fails again, and is told then.
async fn warm_up<B: Backend>(lock: &Lock<B>, load: &Load) -> Result<(), LoadError> {
    let key = LockKey::new(&load.key, "warm-up")?;
    if let Ok(handle) = lock.try_acquire(&key).await {
        drop(handle.release().await);
    }
    Ok(())
}

/// What the contenders share.
struct Book {
    offer: Offer,
    start: Instant,
    end: Instant,
    next: AtomicU64,
    tally: Mutex<Tally>,
}

#[derive(Default)]
struct Tally {
    served: Vec<Duration>,
    calls: Vec<Duration>,
    unserved: Vec<Duration>,
    release: Vec<Duration>,
    /// Conditional updates that found another state.
    conflicts: u64,
    /// Key and attempt, in the order of the grants.
    grants: Vec<(u64, u64)>,
    /// How long those had waited that failed.
    failed: Vec<Duration>,
    /// Why, and how many.
    failures: BTreeMap<String, u64>,
}

async fn serve_attempts<B: Backend>(lock: Lock<B>, book: Arc<Book>) -> Result<(), LoadError> {
    let runtime = lock.backend().runtime().clone();
    let load = &book.offer.load;
    while let Some((attempt, due)) = book.next(&runtime).await {
        let key = LockKey::new(&load.key, &(attempt % load.keys).to_string())?;
        let called = runtime.now();
        let handle = match lock.acquire(&key, book.end).await {
            Ok(handle) => handle,
            Err(error) => {
                book.not_served(&Unserved { due, called, error }, &lock);
                continue;
            }
        };
        book.granted(attempt, runtime.now(), called);
        timer::sleep(load.work).await;
        let before = runtime.now();
        if handle.release().await.is_ok() {
            book.released(runtime.now().saturating_since(before));
        }
    }
    Ok(())
}

/// An attempt that got no lock.
struct Unserved {
    due: Instant,
    called: Instant,
    error: AcquireError,
}

impl Unserved {
    /// Whether it was only waiting when the `end` came. A question that was not answered by then counts as one that the end has
    /// cut off, unless it had been left without an answer for as long as a request may take: then something is wrong.
    fn waited(&self, end: Instant, request_timeout: Duration) -> bool {
        match self.error {
            AcquireError::Contended { .. } | AcquireError::DeadlinePassed => true,
            AcquireError::Unavailable(dlock::BackendError::NoAnswer) => {
                end.saturating_since(self.called) < request_timeout
            }
            _ => false,
        }
    }
}

impl Book {
    /// The clock starts now.
    fn open(offer: Offer, runtime: &TokioRuntime) -> Self {
        let start = runtime.now();
        let end = start + offer.load.lasts;
        Self { offer, start, end, next: AtomicU64::new(0), tally: Mutex::default() }
    }

    /// How many contenders there is something to do for.
    fn contenders(&self) -> u64 {
        self.offer.load.contenders.min(self.offer.attempts)
    }

    /// Waits until the next attempt is due, and hands it out; `None` when there are no more. Those that come after the end are
    /// not served.
    async fn next(&self, runtime: &impl Runtime) -> Option<(u64, Instant)> {
        loop {
            let attempt = self.next.fetch_add(1, Ordering::Relaxed);
            if attempt >= self.offer.attempts {
                return None;
            }
            let due = self.due(attempt);
            if runtime.now() < self.end {
                runtime.sleep_until(due).await;
                return Some((attempt, due));
            }
            self.unserved(due);
        }
    }

    fn unserved(&self, due: Instant) {
        self.tally().unserved.push(self.end.saturating_since(due));
    }

    fn released(&self, took: Duration) {
        self.tally().release.push(took);
    }

    fn conflict(&self) {
        self.tally().conflicts += 1;
    }

    fn due(&self, attempt: u64) -> Instant {
        self.start + Duration::from_secs_f64(attempt as f64 / self.offer.load.rate)
    }

    fn granted(&self, attempt: u64, now: Instant, called: Instant) {
        let mut tally = self.tally();
        tally.served.push(now.saturating_since(self.due(attempt)));
        tally.calls.push(now.saturating_since(called));
        tally.grants.push((attempt % self.offer.load.keys, attempt));
    }

    fn not_served<B: Backend>(&self, attempt: &Unserved, lock: &Lock<B>) {
        if attempt.waited(self.end, lock.options().request_timeout) {
            return self.unserved(attempt.due);
        }
        let waited = lock.backend().runtime().now().saturating_since(attempt.due);
        let mut tally = self.tally();
        tally.failed.push(waited);
        *tally.failures.entry(attempt.error.to_string()).or_default() += 1;
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self) -> Result<Report, LoadError> {
        let tally = self.tally();
        let load = self.offer.load.clone();
        let all = tally.served.iter().chain(&tally.unserved).chain(&tally.failed);
        Ok(Report {
            offered: self.offer.attempts,
            served: tally.served.len() as u64,
            unserved: tally.unserved.len() as u64,
            failed: tally.failed.len() as u64,
            failures: tally.failures.clone(),
            conflicts: tally.conflicts,
            served_per_second: tally.served.len() as f64 / load.lasts.as_secs_f64(),
            acquire_served: Latencies::of(&tally.served)?,
            acquire_from_call: Latencies::of(&tally.calls)?,
            acquire_all: Latencies::of(all)?,
            release: Latencies::of(&tally.release)?,
            fairness: fairness(&tally.grants),
            // Both were noted at each grant.
            grants: tally
                .grants
                .iter()
                .zip(&tally.served)
                .map(|((_, attempt), wait)| (*attempt, *wait))
                .collect(),
            load,
        })
    }
}
