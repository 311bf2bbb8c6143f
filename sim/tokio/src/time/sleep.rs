//! A sleep.

use std::fmt;
use std::future::Future;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use real_tokio::time::Instant;
use sim_host::BoxSleep;

use crate::host;

/// The resolution of tokio's timers, in nanoseconds.
const RESOLUTION: u64 = 1_000_000;

/// The longest sleep: 30 years, as in tokio (`Instant::far_future`).
const LONGEST: Duration = Duration::from_secs(86_400 * 365 * 30);

pin_project! {
    /// A future that completes at its deadline.
    pub struct Sleep {
        deadline: Instant,
        alarm: Alarm,
        // As tokio's own, it must be pinned.
        #[pin]
        _pinned: PhantomPinned,
    }
}

enum Alarm {
    /// It is set at the first poll.
    Unset,
    Set(BoxSleep),
    Elapsed,
}

/// Waits for `duration`.
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(after(duration))
}

/// Waits until `deadline`.
#[track_caller]
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep { deadline, alarm: Alarm::Unset, _pinned: PhantomPinned }
}

/// Returns the instant `duration` from now, or one in the far future if there is none.
pub(super) fn after(duration: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(duration).unwrap_or(now + LONGEST)
}

impl Sleep {
    /// Returns the deadline.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns true if the deadline has passed and the sleep has noticed.
    pub fn is_elapsed(&self) -> bool {
        matches!(self.alarm, Alarm::Elapsed)
    }

    /// Sets another deadline.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        let this = self.project();
        *this.deadline = deadline;
        *this.alarm = Alarm::Unset;
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if matches!(this.alarm, Alarm::Unset) {
            let process = host::process();
            let left = this.deadline.saturating_duration_since(Instant::now()).as_nanos();
            let at = process.now().saturating_add(u64::try_from(left).unwrap_or(u64::MAX));
            *this.alarm = Alarm::Set(process.sleep_until(at.div_ceil(RESOLUTION).saturating_mul(RESOLUTION)));
        }
        if let Alarm::Set(alarm) = this.alarm {
            std::task::ready!(alarm.as_mut().poll(cx));
            *this.alarm = Alarm::Elapsed;
        }
        Poll::Ready(())
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
