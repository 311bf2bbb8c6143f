//! The book of a load: which attempt is due next, and what became of each.

use std::collections::BTreeMap;
use std::future::Future;
use std::iter::Fuse;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use dlock::{AcquireError, Instant, Released, Runtime};

use super::arrivals::Due;
use super::held::NotHeld;
use super::report::{Latencies, Report, fairness};
use super::{Load, LoadError, Offer};
use dlock::TokioRuntime;

/// State shared by the contenders.
pub(super) struct Book {
    pub(super) offer: Offer,
    start: Instant,
    /// When the load is over, unless it was stopped before.
    pub(super) end: Instant,
    /// When it was stopped.
    pub(super) stopped: OnceLock<Instant>,
    due: Mutex<Fuse<Due>>,
    tally: Mutex<Tally>,
}

#[derive(Default)]
struct Tally {
    served: Vec<Duration>,
    calls: Vec<Duration>,
    /// The waits of attempts that were not served by the end, or gave up.
    unserved: Vec<Duration>,
    /// The number of attempts that gave up.
    abandoned: u64,
    /// The number of attempts that a full queue refused.
    refused: u64,
    /// The time since the start at which the first one gave up.
    first_abandoned: Option<Duration>,
    /// The grants in each third of the load.
    thirds: [u64; 3],
    release: Vec<Duration>,
    /// Conditional updates that found another version or status.
    conflicts: u64,
    /// Leases that had ended before their release.
    lost: u64,
    /// Attempts whose task another one had done.
    shared: u64,
    /// Key and attempt, in the order of the grants.
    grants: Vec<(u64, u64)>,
    /// The waits of failed attempts.
    failed: Vec<Duration>,
    /// The reasons of failures, with their counts.
    failures: BTreeMap<String, u64>,
}

/// An attempt: its number, and when it is due.
#[derive(Clone, Copy)]
pub(super) struct Attempt {
    pub(super) number: u64,
    pub(super) due: Instant,
}

/// An attempt that was not granted the lock.
pub(super) struct Unserved {
    pub(super) attempt: Attempt,
    pub(super) called: Instant,
    /// The deadline of its call.
    pub(super) deadline: Instant,
    pub(super) error: NotHeld,
}

impl Unserved {
    /// Returns whether the attempt was merely waiting at its deadline. A request without an answer counts as
    /// cut off by the deadline, unless it was unanswered for the whole request timeout: then something is
    /// wrong.
    fn waited(&self, request_timeout: Duration) -> bool {
        match self.error.source {
            Some(AcquireError::Taken { .. } | AcquireError::DeadlinePassed) => true,
            Some(AcquireError::Unavailable(dlock::BackendError::NoAnswer)) => {
                self.deadline.saturating_since(self.called) < request_timeout
            }
            _ => false,
        }
    }
}

impl Book {
    /// Starts the clock.
    pub(super) fn open(offer: Offer, runtime: &TokioRuntime) -> Self {
        let Load { arrivals, rate, lasts, .. } = offer.load;
        let start = runtime.now();
        let due = Mutex::new(Due::new(arrivals, rate, lasts).fuse());
        let (stopped, tally) = (OnceLock::new(), Mutex::default());
        Self { offer, start, end: start + lasts, stopped, due, tally }
    }

    /// Waits until the next attempt is due and returns it; `None` after the last one, or after the end.
    pub(super) async fn next(&self, runtime: &impl Runtime) -> Option<Attempt> {
        loop {
            let (number, due) = lock(&self.due).next()?;
            let attempt = Attempt { number, due: self.start + due };
            let is_over = runtime.now() >= self.end();
            if !is_over && self.or_stop(runtime, runtime.sleep_until(attempt.due)).await.is_some() {
                return Some(attempt);
            }
            if self.stopped.get().is_some_and(|stopped| attempt.due > *stopped) {
                return None;
            }
            self.given_up(attempt, self.end());
        }
    }

    /// Returns when an attempt gives up: after its patience, or at the end of the load.
    pub(super) fn deadline(&self, attempt: Attempt) -> Instant {
        self.offer.load.patience.map_or(self.end, |patience| self.end.min(attempt.due + patience))
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

    /// Notes an attempt that waits no longer: it gave up, or the load is over.
    pub(super) fn given_up(&self, attempt: Attempt, now: Instant) {
        // A contender may notice later that its attempt has given up.
        let until = self.end().min(self.deadline(attempt)).min(now);
        let waited = until.saturating_since(attempt.due);
        let mut tally = self.tally();
        tally.unserved.push(waited);
        if self.offer.load.patience.is_some_and(|patience| waited >= patience) {
            let at = until.saturating_since(self.start);
            tally.abandoned += 1;
            tally.first_abandoned = Some(tally.first_abandoned.map_or(at, |first| first.min(at)));
        }
    }

    pub(super) fn released(&self, released: Released, took: Duration) {
        let mut tally = self.tally();
        tally.release.push(took);
        tally.lost += u64::from(released == Released::NotOwner);
    }

    /// Notes the end of a task: whether it was another's, and whether its lease was lost.
    pub(super) fn task_ended(&self, is_shared: bool, is_lost: bool) {
        let mut tally = self.tally();
        tally.shared += u64::from(is_shared);
        tally.lost += u64::from(is_lost);
    }

    pub(super) fn conflict(&self) {
        self.tally().conflicts += 1;
    }

    pub(super) fn granted(&self, attempt: Attempt, now: Instant, called: Instant) {
        let share = now.saturating_since(self.start).as_secs_f64() / self.offer.load.lasts.as_secs_f64();
        // A share of at most 1, of a load that takes time.
        let third = ((share * 3.0) as usize).min(2);
        let mut tally = self.tally();
        tally.served.push(now.saturating_since(attempt.due));
        tally.calls.push(now.saturating_since(called));
        tally.grants.push((attempt.number % self.offer.load.keys, attempt.number));
        tally.thirds[third] += 1;
    }

    /// Notes an attempt that ended at `now` without what it wanted. `request_timeout` is that of its lock.
    pub(super) fn not_served(&self, unserved: &Unserved, now: Instant, request_timeout: Duration) {
        if unserved.waited(request_timeout) {
            return self.given_up(unserved.attempt, now);
        }
        let mut tally = self.tally();
        if let Some(AcquireError::QueueFull { .. }) = unserved.error.source {
            tally.refused += 1;
            return;
        }
        tally.failed.push(now.saturating_since(unserved.attempt.due));
        *tally.failures.entry(unserved.error.words.clone()).or_default() += 1;
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(&self.tally)
    }

    /// Returns the time from the start to `at`.
    pub(super) fn since_start(&self, at: Instant) -> Duration {
        at.saturating_since(self.start)
    }

    pub(super) fn report(&self) -> Result<Report, LoadError> {
        let tally = self.tally();
        let load = self.offer.load.clone();
        let waits: Vec<_> =
            tally.served.iter().chain(&tally.unserved).chain(&tally.failed).copied().collect();
        let stopped_after = self.stopped.get().map(|at| at.saturating_since(self.start));
        let lasted = stopped_after.map_or(load.lasts, |stopped| load.lasts.min(stopped));
        Ok(Report {
            offered: (tally.served.len() + tally.unserved.len() + tally.failed.len()) as u64 + tally.refused,
            stopped_after,
            served: tally.served.len() as u64,
            unserved: tally.unserved.len() as u64 - tally.abandoned,
            abandoned: tally.abandoned,
            refused: tally.refused,
            first_abandoned: tally.first_abandoned,
            thirds: tally.thirds,
            failed: tally.failed.len() as u64,
            failures: tally.failures.clone(),
            conflicts: tally.conflicts,
            lost: tally.lost,
            shared: tally.shared,
            served_per_second: tally.served.len() as f64 / lasted.as_secs_f64().max(1e-9),
            acquire_served: Latencies::of(&tally.served)?,
            acquire_from_call: Latencies::of(&tally.calls)?,
            acquire_all: Latencies::of(&waits)?,
            release: Latencies::of(&tally.release)?,
            fairness: fairness(&tally.grants),
            // Each grant records both.
            grants: tally
                .grants
                .iter()
                .zip(&tally.served)
                .map(|((_, attempt), wait)| (*attempt, *wait))
                .collect(),
            waits,
            handovers: Vec::new(),
            load,
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
