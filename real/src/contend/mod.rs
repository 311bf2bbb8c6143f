//! The load: acquires at a fixed rate, however fast they are served.
//!
//! The load is open: attempt `i` is due at `i / rate`, whether those before it were served or not, and its
//! latency counts from the time at which it was due. A lock that stalls is thus charged for every attempt due
//! in the meantime, not only for those already sent ("coordinated omission", Tene, "How NOT to Measure
//! Latency", 2015). The contenders are a pool: an attempt that finds none free waits for one, and that wait
//! counts. An attempt that fails, or is not served by the end, counts with the time that it has waited until
//! then, which is a lower limit.
//!
//! tokio's timer counts whole milliseconds, so an attempt begins up to 1 ms after it is due. Where the lock
//! is free, that is most of its latency: read the latency from the call there. The duration of the work is
//! exact (`timer.rs`).

mod conditional;
mod error;
mod held;
mod report;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use dlock::redis::Waiting;
use dlock::{AcquireError, Backend, Instant, Lock, LockKey, Options, Released, Runtime};
use serde::{Serialize, Serializer};
use tokio::task::JoinSet;

pub use self::error::LoadError;
use self::held::{Held, NotHeld};
use self::report::fairness;
pub use self::report::{Latencies, Report};
use crate::acquire::{Acquire, WithToken, WithoutToken};
use crate::place::Place;
use crate::primitive::Primitive;
use crate::stop::Stop;
use crate::timer;
use dlock::TokioRuntime;

/// The mechanism that decides which contender may work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arm {
    /// A lock.
    #[default]
    Lock,
    /// No lock: the version column of a row in PostgreSQL, read before the work and compared by the write
    /// after it.
    Version,
    /// No lock: the status column of a job in PostgreSQL, which a conditional update sets.
    Jobs,
}

/// The load to offer.
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    /// The mechanism.
    pub arm: Arm,
    /// The lock servers. Without a lock, their only address is the URL of a PostgreSQL.
    #[serde(rename = "system", serialize_with = "as_system")]
    pub place: Place,
    /// The primitive.
    pub primitive: Primitive,
    /// The TTL of a lease.
    pub ttl: Duration,
    /// The time for which a lease is held.
    pub work: Duration,
    /// The time for which each holder stands still after its work, while its lease is not renewed.
    pub pause: Duration,
    /// The number of contenders, and so the largest number of attempts that wait or hold at a time.
    pub contenders: u64,
    /// The prefix of the keys.
    pub key: String,
    /// The number of keys; attempt `i` uses key `i` modulo this number.
    pub keys: u64,
    /// Attempts a second.
    pub rate: f64,
    /// The duration of the load.
    pub lasts: Duration,
    /// True if waiters on a single Redis only poll, and are not woken by a release.
    pub polled: bool,
    /// True if the acquires demand a fencing token. Only the lock of a single Redis grants without one.
    pub fenced: bool,
}

fn as_system<S: Serializer>(place: &Place, serializer: S) -> Result<S::Ok, S::Error> {
    place.system.serialize(serializer)
}

/// More attempts than a machine serves in an hour.
const ATTEMPTS_MAX: f64 = 1e9;

/// Offers `load` and waits until it is over.
///
/// # Errors
///
/// [`LoadError`]. Failed attempts are counted, and are not errors.
pub async fn contend(load: Load, runtime: TokioRuntime) -> Result<Report, LoadError> {
    contend_until(load, runtime, Stop::default()).await
}

/// Offers `load` as [`contend`] does, until it is over or `stop` is asked: then the locks that are held are
/// released, and the report is of the attempts that were due by then.
///
/// # Errors
///
/// As [`contend`].
pub async fn contend_until(load: Load, runtime: TokioRuntime, stop: Stop) -> Result<Report, LoadError> {
    let zero = |zero: bool, what| if zero { Err(LoadError::Zero(what)) } else { Ok(()) };
    zero(load.contenders == 0, "--contenders")?;
    zero(load.keys == 0, "--keys")?;
    zero(load.lasts.is_zero(), "--for")?;
    if !(load.rate.is_finite() && load.rate >= 0.0) {
        return Err(LoadError::Rate(load.rate));
    }
    zero(load.rate == 0.0, "--rate")?;
    if !load.primitive.is_lock() {
        return Err(LoadError::NoLock(load.primitive));
    }
    let wanted = load.primitive.keys();
    if u64::from(wanted) > load.keys {
        return Err(LoadError::FewKeys { wanted });
    }
    let attempts = (load.rate * load.lasts.as_secs_f64()).ceil();
    if attempts > ATTEMPTS_MAX {
        return Err(LoadError::TooMany(attempts));
    }
    // The value is whole and at most a billion.
    let offer = Offer { load, attempts: attempts as u64, stop };
    let Load { ttl, polled, ref place, .. } = offer.load;
    let place = place.clone();
    if offer.load.arm != Arm::Lock {
        let [url] = place.addresses.as_slice() else { return Err(LoadError::NoPostgres) };
        return conditional::contend(offer, url, runtime).await;
    }
    let waiting = if polled { Waiting::Polled } else { Waiting::Called };
    offer.run(place.backend(ttl, waiting, runtime)?).await
}

struct Offer {
    load: Load,
    attempts: u64,
    stop: Stop,
}

impl Offer {
    async fn run<B: Backend<Runtime = TokioRuntime>>(self, backend: B) -> Result<Report, LoadError> {
        let runtime = backend.runtime().clone();
        let mut options = Options::new(self.load.ttl);
        self.load.primitive.apply(&mut options);
        let lock = Lock::new(backend, options)?;
        warm_up(&lock, &self.load).await?;
        let book = Arc::new(Book::open(self, &runtime));
        let mut contenders = JoinSet::new();
        for _ in 0..book.contenders() {
            let (lock, book) = (lock.clone(), Arc::clone(&book));
            match book.offer.load.fenced {
                true => contenders.spawn(serve_attempts::<B, WithToken>(lock, book)),
                false => contenders.spawn(serve_attempts::<B, WithoutToken>(lock, book)),
            };
        }
        while let Some(ended) = contenders.join_next().await {
            ended??;
        }
        if book.stopped.get().is_some() {
            // Attempts that were waiting release in the background what they may have been granted.
            lock.cleaned_up(runtime.now() + lock.options().request_timeout).await;
        }
        book.report()
    }
}

/// Opens the connection and loads the scripts before the clock starts. An error is ignored: it recurs under
/// load and is counted there.
async fn warm_up<B: Backend>(lock: &Lock<B>, load: &Load) -> Result<(), LoadError> {
    let key = LockKey::new(&load.key, "warm-up")?;
    if let Ok(handle) = lock.try_acquire(&key).await {
        drop(handle.release().await);
    }
    Ok(())
}

/// State shared by the contenders.
struct Book {
    offer: Offer,
    start: Instant,
    /// When the load is over, unless it was stopped before.
    end: Instant,
    /// When it was stopped.
    stopped: OnceLock<Instant>,
    next: AtomicU64,
    tally: Mutex<Tally>,
}

#[derive(Default)]
struct Tally {
    served: Vec<Duration>,
    calls: Vec<Duration>,
    unserved: Vec<Duration>,
    release: Vec<Duration>,
    /// Conditional updates that found another version or status.
    conflicts: u64,
    /// Leases that had ended before their release.
    lost: u64,
    /// Key and attempt, in the order of the grants.
    grants: Vec<(u64, u64)>,
    /// The waits of failed attempts.
    failed: Vec<Duration>,
    /// The reasons of failures, with their counts.
    failures: BTreeMap<String, u64>,
}

async fn serve_attempts<B: Backend, A: Acquire<B>>(lock: Lock<B>, book: Arc<Book>) -> Result<(), LoadError> {
    let runtime = lock.backend().runtime().clone();
    let load = &book.offer.load;
    while let Some((attempt, due)) = book.next(&runtime).await {
        let called = runtime.now();
        let acquire = Held::acquire::<A>(&lock, load, attempt, book.end);
        let held = match book.or_stop(&runtime, acquire).await {
            None => {
                book.unserved(due);
                continue;
            }
            Some(Ok(held)) => held,
            Some(Err(error)) => {
                book.not_served(&Unserved { due, called, error }, &lock);
                continue;
            }
        };
        book.granted(attempt, runtime.now(), called);
        book.or_stop(&runtime, timer::sleep(load.work + load.pause)).await;
        let before = runtime.now();
        if let Some(released) = held.release().await {
            book.released(released, runtime.now().saturating_since(before));
        }
    }
    Ok(())
}

/// An attempt that was not granted the lock.
struct Unserved {
    due: Instant,
    called: Instant,
    error: NotHeld,
}

impl Unserved {
    /// Returns whether the attempt was merely waiting at the `end`. A request without an answer counts as cut
    /// off by the end, unless it was unanswered for the whole request timeout: then something is wrong.
    fn waited(&self, end: Instant, request_timeout: Duration) -> bool {
        match self.error.source {
            // A full queue is an answer, too.
            Some(
                AcquireError::Taken { .. } | AcquireError::DeadlinePassed | AcquireError::QueueFull { .. },
            ) => true,
            Some(AcquireError::Unavailable(dlock::BackendError::NoAnswer)) => {
                end.saturating_since(self.called) < request_timeout
            }
            _ => false,
        }
    }
}

impl Book {
    /// Starts the clock.
    fn open(offer: Offer, runtime: &TokioRuntime) -> Self {
        let start = runtime.now();
        let end = start + offer.load.lasts;
        Self { offer, start, end, stopped: OnceLock::new(), next: AtomicU64::new(0), tally: Mutex::default() }
    }

    /// Returns the number of contenders that have something to do.
    fn contenders(&self) -> u64 {
        self.offer.load.contenders.min(self.offer.attempts)
    }

    /// Waits until the next attempt is due and returns it; `None` after the last one, or after the end.
    async fn next(&self, runtime: &impl Runtime) -> Option<(u64, Instant)> {
        loop {
            let attempt = self.next.fetch_add(1, Ordering::Relaxed);
            if attempt >= self.offer.attempts {
                return None;
            }
            let due = self.due(attempt);
            let is_over = runtime.now() >= self.end();
            if !is_over && self.or_stop(runtime, runtime.sleep_until(due)).await.is_some() {
                return Some((attempt, due));
            }
            if self.stopped.get().is_some_and(|stopped| due > *stopped) {
                return None;
            }
            self.unserved(due);
        }
    }

    /// Runs `future`. If the load is stopped before, drops it, notes the time and returns `None`.
    async fn or_stop<F: Future>(&self, runtime: &impl Runtime, future: F) -> Option<F::Output> {
        let output = self.offer.stop.or(future).await;
        if output.is_none() {
            self.stopped.get_or_init(|| runtime.now());
        }
        output
    }

    /// Returns when the load ends, or has ended.
    fn end(&self) -> Instant {
        self.stopped.get().map_or(self.end, |stopped| self.end.min(*stopped))
    }

    fn unserved(&self, due: Instant) {
        self.tally().unserved.push(self.end().saturating_since(due));
    }

    fn released(&self, released: Released, took: Duration) {
        let mut tally = self.tally();
        tally.release.push(took);
        tally.lost += u64::from(released == Released::NotOwner);
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
        *tally.failures.entry(attempt.error.words.clone()).or_default() += 1;
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self) -> Result<Report, LoadError> {
        let tally = self.tally();
        let load = self.offer.load.clone();
        let all = tally.served.iter().chain(&tally.unserved).chain(&tally.failed);
        let due = (tally.served.len() + tally.unserved.len() + tally.failed.len()) as u64;
        let stopped_after = self.stopped.get().map(|at| at.saturating_since(self.start));
        let lasted = stopped_after.map_or(load.lasts, |stopped| load.lasts.min(stopped));
        Ok(Report {
            offered: stopped_after.map_or(self.offer.attempts, |_| due),
            stopped_after,
            served: tally.served.len() as u64,
            unserved: tally.unserved.len() as u64,
            failed: tally.failed.len() as u64,
            failures: tally.failures.clone(),
            conflicts: tally.conflicts,
            lost: tally.lost,
            served_per_second: tally.served.len() as f64 / lasted.as_secs_f64().max(1e-9),
            acquire_served: Latencies::of(&tally.served)?,
            acquire_from_call: Latencies::of(&tally.calls)?,
            acquire_all: Latencies::of(all)?,
            release: Latencies::of(&tally.release)?,
            fairness: fairness(&tally.grants),
            // Each grant records both.
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
