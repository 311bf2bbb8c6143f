//! A worker that fires by its own clock, as a correct one does, except for its record of ticks.

use dlock::{AnyBackend, Lock, LockKey};
use futures_util::future::BoxFuture;
use resource::fence::cron::Ticks;
use sim::faults::Call;
use sim::world::runtime::SimRuntime;

use crate::laboratory::{Firings, Yields};
use crate::{TickRecord, Workplace};

/// Works all rounds of a worker with `mode = "cron"`, with the correct record of ticks.
pub fn firings(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    firings_with(place, |ticks| ticks)
}

/// Works all rounds of a worker with `mode = "cron"`, with the record of ticks that `record` makes of the
/// correct one.
pub fn firings_with<T: Ticks + 'static>(
    place: &Workplace<'_>,
    record: impl FnOnce(TickRecord) -> T,
) -> Option<BoxFuture<'static, ()>> {
    firings_on(place, place.library_lock()?, record)
}

/// Works all rounds of a worker with `mode = "cron"` on `lock`, as [`firings_with`] does.
pub(super) fn firings_on<T: Ticks + 'static>(
    place: &Workplace<'_>,
    lock: AnyBackend<SimRuntime>,
    record: impl FnOnce(TickRecord) -> T,
) -> Option<BoxFuture<'static, ()>> {
    let lock = Lock::new(lock, place.lock.clone()).ok()?;
    let (kind, id) = place.options.key_of(place.worker).split_once(':')?;
    let key = LockKey::new(kind, id).ok()?;
    let ticks = record(TickRecord::at(place));
    let process = place.process.clone();
    let pauses = Yields(process.clone());
    let worker = (&process, place.options, place.worker);
    let mut firings = Firings::new(worker, lock, key, ticks, pauses)?;
    let (rounds, think) = (place.worker.rounds, place.worker.think.duration());
    Some(Box::pin(async move {
        for _ in 0..rounds {
            firings.next().await;
            if let Some(Ok(handle)) = process.cancellable(Call::Acquire, firings.acquire()).await {
                firings.run(handle).await;
            }
            process.sleep(think).await;
        }
    }))
}
