//! Ticks at regular times.

use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use real_tokio::time::Instant;
#[doc(inline)]
pub use real_tokio::time::MissedTickBehavior;

use super::sleep::{Sleep, after, sleep_until};

/// Ticks that late are missed, as in tokio.
const TOLERANCE: Duration = Duration::from_millis(5);

/// Ticks at regular times.
#[derive(Debug)]
pub struct Interval {
    delay: Pin<Box<Sleep>>,
    period: Duration,
    missed_tick_behavior: MissedTickBehavior,
}

/// Returns ticks every `period`, of which the first comes at once.
///
/// # Panics
///
/// If `period` is zero.
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    interval_at(Instant::now(), period)
}

/// Returns ticks every `period`, of which the first comes at `start`.
///
/// # Panics
///
/// If `period` is zero.
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(period > Duration::ZERO, "`period` must be non-zero ({})", Location::caller());
    Interval {
        delay: Box::pin(sleep_until(start)),
        period,
        missed_tick_behavior: MissedTickBehavior::default(),
    }
}

impl Interval {
    /// Waits for the next tick, and returns the time for which it was set.
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Polls for the next tick.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        std::task::ready!(self.delay.as_mut().poll(cx));
        let due = self.delay.deadline();
        let now = Instant::now();
        let next = if now > due + TOLERANCE { self.after_missed(due, now) } else { due + self.period };
        self.delay.as_mut().reset(next);
        Poll::Ready(due)
    }

    /// Returns the time of the tick after one that came late.
    fn after_missed(&self, due: Instant, now: Instant) -> Instant {
        match self.missed_tick_behavior {
            MissedTickBehavior::Burst => due + self.period,
            MissedTickBehavior::Delay => now + self.period,
            MissedTickBehavior::Skip => {
                let late = (now - due).as_nanos() % self.period.as_nanos();
                now + self.period - Duration::from_nanos(u64::try_from(late).unwrap_or(0))
            }
        }
    }

    /// Makes the next tick come a period from now.
    pub fn reset(&mut self) {
        self.reset_after(self.period);
    }

    /// Makes the next tick come at once.
    pub fn reset_immediately(&mut self) {
        self.reset_at(Instant::now());
    }

    /// Makes the next tick come `after` from now.
    pub fn reset_after(&mut self, duration: Duration) {
        self.reset_at(after(duration));
    }

    /// Makes the next tick come at `deadline`.
    pub fn reset_at(&mut self, deadline: Instant) {
        self.delay.as_mut().reset(deadline);
    }

    /// Returns the behavior after a tick that came late.
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed_tick_behavior
    }

    /// Sets the behavior after a tick that came late.
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed_tick_behavior = behavior;
    }

    /// Returns the period.
    pub fn period(&self) -> Duration {
        self.period
    }
}
