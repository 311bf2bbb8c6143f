//! The load: acquisitions at a fixed rate, whatever the lock makes of them.
//!
//! The model is open: attempt `i` is due at `i / rate`, whether those before it were served or not, and its latency counts
//! from when it was due. So a lock that stalls is charged for all who would have come meanwhile, and not only for those
//! who had come already ("coordinated omission", Tene, "How NOT to Measure Latency", 2015). The contenders are a pool:
//! an attempt that finds none free waits for one, and is charged for that too. Attempts that are not served at the end
//! count with the time they have waited by then, which is less than they would have.
//!
//! tokio's timer counts whole milliseconds, so an attempt begins up to 1 ms after it was due. Where locks are free at once
//! that is most of its latency: there, read the latency from the call.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dlock::{AcquireError, Backend, Instant, KeyError, Lock, LockKey, Options, OptionsError, Runtime};
use hdrhistogram::{Histogram, RecordError};
use resource::audit::{Event, Fairness, Kind, Name, Nanos};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::backends::{BackendError, BackendKind, OnBackend, on_backend};
use crate::runtime::TokioRuntime;

/// Latencies are kept to three digits.
const DIGITS: u8 = 3;
/// The quantiles that a report shows.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];

/// What is offered to a lock.
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    /// The lock server.
    pub backend: BackendKind,
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
}

/// What became of it.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What was offered.
    pub load: Load,
    /// How many attempts were due.
    pub offered: u64,
    /// How many got the lock.
    pub served: u64,
    /// How many were still waiting at the end.
    pub unserved: u64,
    /// How many failed otherwise, and with what.
    pub failed: u64,
    /// The last failure.
    pub failure: Option<String>,
    /// Critical sections a second.
    pub served_per_second: f64,
    /// From when an attempt was due to its grant, over those that were served.
    pub acquire_served: Latencies,
    /// From the call to the grant, over those that were served: blind to those who could not call.
    pub acquire_from_call: Latencies,
    /// From when an attempt was due, over all, where those not served count with the time that they have waited.
    pub acquire_all: Latencies,
    /// From the call of release to its answer.
    pub release: Latencies,
    /// Order of arrival against order of grant.
    pub fairness: Fairness,
}

/// Quantiles, in microseconds.
#[derive(Debug, Serialize)]
pub struct Latencies {
    /// How many there were.
    pub count: u64,
    /// Quantile and latency.
    pub quantiles: Vec<(f64, u64)>,
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
    Backend(#[from] BackendError),
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
    let Load { backend, ttl, ref servers, .. } = offer.load;
    let servers = servers.clone();
    on_backend(backend, &servers, ttl, runtime, offer).await?
}

struct Offer {
    load: Load,
    attempts: u64,
}

impl OnBackend for Offer {
    type Output = Result<Report, LoadError>;

    async fn run<B: Backend<Runtime = TokioRuntime>>(self, backend: B) -> Self::Output {
        let runtime = backend.runtime().clone();
        let lock = Lock::new(backend, Options::new(self.load.ttl))?;
        warm_up(&lock, &self.load).await?;
        let start = runtime.now();
        let book = Arc::new(Book {
            start,
            end: start + self.load.lasts,
            next: AtomicU64::new(0),
            tally: Mutex::new(Tally::default()),
            offer: self,
        });
        let mut contenders = JoinSet::new();
        for _ in 0..book.offer.load.contenders.min(book.offer.attempts) {
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
    /// Key and attempt, in the order of the grants.
    grants: Vec<(u64, u64)>,
    failed: u64,
    failure: Option<String>,
}

async fn serve_attempts<B: Backend>(lock: Lock<B>, book: Arc<Book>) -> Result<(), LoadError> {
    let runtime = lock.backend().runtime().clone();
    let load = &book.offer.load;
    loop {
        let attempt = book.next.fetch_add(1, Ordering::Relaxed);
        if attempt >= book.offer.attempts {
            return Ok(());
        }
        let due = book.due(attempt);
        if runtime.now() >= book.end {
            book.tally().unserved.push(book.end.saturating_since(due));
            continue;
        }
        runtime.sleep_until(due).await;
        let key = LockKey::new(&load.key, &(attempt % load.keys).to_string())?;
        let called = runtime.now();
        let handle = match lock.acquire(&key, book.end).await {
            Ok(handle) => handle,
            Err(error) => {
                book.not_served(due, &error);
                continue;
            }
        };
        book.granted(attempt, runtime.now(), called);
        if !load.work.is_zero() {
            runtime.sleep_until(runtime.now() + load.work).await;
        }
        let before = runtime.now();
        if handle.release().await.is_ok() {
            book.tally().release.push(runtime.now().saturating_since(before));
        }
    }
}

impl Book {
    fn due(&self, attempt: u64) -> Instant {
        self.start + Duration::from_secs_f64(attempt as f64 / self.offer.load.rate)
    }

    fn granted(&self, attempt: u64, now: Instant, called: Instant) {
        let mut tally = self.tally();
        tally.served.push(now.saturating_since(self.due(attempt)));
        tally.calls.push(now.saturating_since(called));
        tally.grants.push((attempt % self.offer.load.keys, attempt));
    }

    fn not_served(&self, due: Instant, error: &AcquireError) {
        let mut tally = self.tally();
        match error {
            AcquireError::Contended { .. } | AcquireError::DeadlinePassed => {
                tally.unserved.push(self.end.saturating_since(due));
            }
            error => {
                tally.failed += 1;
                tally.failure = Some(error.to_string());
            }
        }
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self) -> Result<Report, LoadError> {
        let tally = self.tally();
        let load = self.offer.load.clone();
        let all = tally.served.iter().chain(&tally.unserved);
        Ok(Report {
            offered: self.offer.attempts,
            served: tally.served.len() as u64,
            unserved: tally.unserved.len() as u64,
            failed: tally.failed,
            failure: tally.failure.clone(),
            served_per_second: tally.served.len() as f64 / load.lasts.as_secs_f64(),
            acquire_served: Latencies::of(&tally.served)?,
            acquire_from_call: Latencies::of(&tally.calls)?,
            acquire_all: Latencies::of(all)?,
            release: Latencies::of(&tally.release)?,
            fairness: fairness(&tally.grants),
            load,
        })
    }
}

impl Latencies {
    fn of<'a>(durations: impl IntoIterator<Item = &'a Duration>) -> Result<Self, LoadError> {
        // Up to an hour, in microseconds.
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 3_600_000_000, DIGITS)
            .map_err(|_| RecordError::ValueOutOfRangeResizeDisabled)?;
        for duration in durations {
            histogram.record(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).max(1))?;
        }
        let quantile = |quantile| (quantile, histogram.value_at_quantile(quantile));
        Ok(Self { count: histogram.len(), quantiles: QUANTILES.map(quantile).to_vec() })
    }
}

/// By the audit's own measure: attempts arrive in their order, and are served in that of the grants.
fn fairness(grants: &[(u64, u64)]) -> Fairness {
    let name = |number: u64| Name::from(number.to_string().as_str());
    let event = |kind| Event { at: Nanos(0), process: Name::from("contend"), kind };
    let mut arrivals = grants.to_vec();
    arrivals.sort_unstable_by_key(|(_, attempt)| *attempt);
    let requested = |(key, attempt): &(u64, u64)| {
        event(Kind::LeaseRequested { key: name(*key), owner: name(*attempt), ttl_millis: None })
    };
    let acquired = |(key, attempt): &(u64, u64)| {
        let (key, owner) = (name(*key), name(*attempt));
        event(Kind::LeaseAcquired { key, owner, token: attempt + 1, ttl_millis: None, valid_micros: None })
    };
    let history: Vec<_> = arrivals.iter().map(requested).chain(grants.iter().map(acquired)).collect();
    Fairness::of(&history)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Load { backend, contenders, keys, rate, ttl, work, .. } = &self.load;
        writeln!(
            f,
            "{}: {contenders} contenders, {keys} keys, {rate}/s offered, TTL {ttl:?}, work {work:?}",
            backend.as_str()
        )?;
        writeln!(
            f,
            "{} attempts: {} served ({:.1}/s), {} still waiting at the end, {} failed",
            self.offered, self.served, self.served_per_second, self.unserved, self.failed
        )?;
        writeln!(
            f,
            "{:24} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "milliseconds", "p50", "p90", "p99", "p99.9", "max"
        )?;
        for (name, latencies) in [
            ("acquire, those served", &self.acquire_served),
            ("acquire, all who came", &self.acquire_all),
            ("acquire, from the call", &self.acquire_from_call),
            ("release", &self.release),
        ] {
            write!(f, "{name:24}")?;
            for (_, micros) in &latencies.quantiles {
                write!(f, " {:>10.3}", *micros as f64 / 1000.0)?;
            }
            writeln!(f)?;
        }
        let Fairness { inversions, overtaken_max, .. } = self.fairness;
        writeln!(f, "order: {inversions} overtakings, at most {overtaken_max} of one attempt")?;
        if let Some(failure) = &self.failure {
            writeln!(f, "the last failure: {failure}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_counts_who_was_served_before_an_earlier_attempt() {
        assert_eq!(fairness(&[(0, 0), (0, 1), (0, 2)]).inversions, 0);
        let last_first = fairness(&[(0, 2), (0, 0), (0, 1)]);
        assert_eq!((last_first.inversions, last_first.overtaken_max), (2, 1));
        // Different keys do not compete.
        assert_eq!(fairness(&[(1, 1), (0, 0)]).inversions, 0);
    }

    #[test]
    fn a_quantile_is_kept_to_three_digits() {
        let durations: Vec<_> = (1..=1000).map(Duration::from_millis).collect();
        let latencies = Latencies::of(&durations).unwrap();
        let (_, median) = latencies.quantiles[0];
        assert!((499_000..=501_000).contains(&median), "{median}");
        assert_eq!(latencies.count, 1000);
    }
}
