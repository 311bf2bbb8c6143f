//! R34: the record of a cron says that a tick is done as soon as it starts. If its runner dies in the middle,
//! or gives up since its lease is over, the next one passes the tick over.
//!
//! Source: crons that set a column `last_run` before the run; Quartz's jobs without `requestRecovery`, whose
//! trigger moves on when it fires.

use dlock::Instant;
use futures_util::future::BoxFuture;
use resource::fence::WriteSeq;
use resource::fence::cron::{Every, Grant, Schedule, Seen, Tick, Ticks, TicksError};
use sim::world::runtime::SimRuntime;

use super::lock_only_cron::fires;
use crate::Workplace;
use crate::kit::{Faultless, firings_with, rounds_with};

/// A record that has a tick from its start on.
struct AtStart<T> {
    ticks: T,
    schedule: Every,
    runtime: SimRuntime,
}

impl<T: Ticks> Ticks for AtStart<T> {
    type Error = T::Error;

    async fn claim(&mut self, grant: &Grant, by: Instant) -> Result<Seen, TicksError<T::Error>> {
        let seen = self.ticks.claim(grant, by).await?;
        let latest = self.schedule.last(self.runtime.wall_nanos() / 1_000_000);
        let due = latest.filter(|tick| Some(*tick) > seen.last);
        if let (Some(tick), Some(number)) = (due, WriteSeq::new(1)) {
            self.ticks.commit(grant, number, tick, b"started", by).await?;
        }
        Ok(seen)
    }

    async fn commit(
        &mut self,
        _: &Grant,
        _: WriteSeq,
        _: Tick,
        _: &[u8],
        _: Instant,
    ) -> Result<(), TicksError<T::Error>> {
        // The record has the tick since its start.
        Ok(())
    }
}

/// Works all rounds of a worker whose ticks are done when they start.
pub(super) fn at_start(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    if !fires(place.worker) {
        return rounds_with::<Faultless>(place);
    }
    let every = place.options.cron.every.duration();
    let schedule = Every::new(every, std::time::Duration::ZERO).ok()?;
    let runtime = place.runtime.clone();
    firings_with(place, |ticks| AtStart { ticks, schedule, runtime })
}
