//! R24: a cron guarded by a lock alone. The lock is released when the run ends, and nothing else says that
//! the tick is done: a machine whose clock is behind, or that comes late, runs the tick again.
//!
//! Source: ShedLock without `lockAtLeastFor`, whose README warns of the difference of the clocks; crons that
//! take a lock with a TTL around their run.

use dlock::Instant;
use futures_util::future::BoxFuture;
use resource::fence::WriteSeq;
use resource::fence::cron::{Grant, Seen, Tick, Ticks, TicksError};

use crate::kit::{Faultless, firings, firings_with, rounds_with};
use crate::{Options, Worker, WorkerMode, Workplace};

/// A record of ticks that nobody asks: the lock alone decides.
struct LockOnly<T>(T);

impl<T: Ticks> Ticks for LockOnly<T> {
    type Error = T::Error;

    async fn claim(&mut self, grant: &Grant, by: Instant) -> Result<Seen, TicksError<T::Error>> {
        self.0.claim(grant, by).await.map(|seen| Seen { last: None, ..seen })
    }

    async fn commit(
        &mut self,
        grant: &Grant,
        number: WriteSeq,
        tick: Tick,
        result: &[u8],
        by: Instant,
    ) -> Result<(), TicksError<T::Error>> {
        self.0.commit(grant, number, tick, result, by).await
    }
}

/// Works all rounds of a worker, by the lock alone.
pub(super) fn lock_only(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    match fires(place.worker) {
        true => firings_with(place, LockOnly),
        false => rounds_with::<Faultless>(place),
    }
}

/// Works all rounds of a worker, by the record of ticks.
pub(super) fn recorded(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    if fires(place.worker) { firings(place) } else { rounds_with::<Faultless>(place) }
}

/// Makes the workers that lock fire instead, unless some do.
pub(super) fn fire(options: &mut Options) {
    if options.workers.iter().any(fires) {
        return;
    }
    options.permits = None;
    for worker in options.workers.iter_mut().filter(|worker| worker.mode == WorkerMode::default()) {
        let plain = Worker::default();
        worker.mode = WorkerMode::new("cron");
        (worker.read, worker.release, worker.writes) = (plain.read, plain.release, plain.writes);
    }
}

/// Returns true if the worker fires by its clock.
pub(super) fn fires(worker: &Worker) -> bool {
    worker.mode.name() == "cron"
}
