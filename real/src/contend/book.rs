//! The book of a load: which attempt is due next, and what became of each.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use dlock::{AcquireError, Backend, Instant, Lock, Released, Runtime};

use super::held::NotHeld;
use super::report::{Latencies, Report, fairness};
use super::{LoadError, Offer};
use dlock::TokioRuntime;

/// State shared by the contenders.
pub(super) struct Book {
    pub(super) offer: Offer,
    start: Instant,
    /// When the load is over, unless it was stopped before.
    pub(super) end: Instant,
    /// When it was stopped.
    pub(super) stopped: OnceLock<Instant>,
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

/// An attempt that was not granted the lock.
pub(super) struct Unserved {
    pub(super) due: Instant,
    pub(super) called: Instant,
    pub(super) error: NotHeld,
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
    pub(super) fn open(offer: Offer, runtime: &TokioRuntime) -> Self {
        let start = runtime.now();
        let end = start + offer.load.lasts;
        Self { offer, start, end, stopped: OnceLock::new(), next: AtomicU64::new(0), tally: Mutex::default() }
    }

    /// Returns the number of contenders that have something to do.
    pub(super) fn contenders(&self) -> u64 {
        self.offer.load.contenders.min(self.offer.attempts)
    }

    /// Waits until the next attempt is due and returns it; `None` after the last one, or after the end.
    pub(super) async fn next(&self, runtime: &impl Runtime) -> Option<(u64, Instant)> {
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
    pub(super) async fn or_stop<F: Future>(&self, runtime: &impl Runtime, future: F) -> Option<F::Output> {
        let output = self.offer.stop.or(future).await;
        if output.is_none() {
            self.stopped.get_or_init(|| runtime.now());
        }
        output
    }

    /// Returns when the load ends, or has ended.
    pub(super) fn end(&self) -> Instant {
        self.stopped.get().map_or(self.end, |stopped| self.end.min(*stopped))
    }

    pub(super) fn unserved(&self, due: Instant) {
        self.tally().unserved.push(self.end().saturating_since(due));
    }

    pub(super) fn released(&self, released: Released, took: Duration) {
        let mut tally = self.tally();
        tally.release.push(took);
        tally.lost += u64::from(released == Released::NotOwner);
    }

    pub(super) fn conflict(&self) {
        self.tally().conflicts += 1;
    }

    fn due(&self, attempt: u64) -> Instant {
        self.start + Duration::from_secs_f64(attempt as f64 / self.offer.load.rate)
    }

    pub(super) fn granted(&self, attempt: u64, now: Instant, called: Instant) {
        let mut tally = self.tally();
        tally.served.push(now.saturating_since(self.due(attempt)));
        tally.calls.push(now.saturating_since(called));
        tally.grants.push((attempt % self.offer.load.keys, attempt));
    }

    pub(super) fn not_served<B: Backend>(&self, attempt: &Unserved, lock: &Lock<B>) {
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

    pub(super) fn report(&self) -> Result<Report, LoadError> {
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
