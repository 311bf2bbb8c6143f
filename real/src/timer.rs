//! A sleep accurate to some microseconds, for the work in measurements.
//!
//! tokio's timer counts whole milliseconds and rounds up, as does the wait of its driver: 10 ms of work take
//! 11 on an idle runtime, and less on one that polls all the time. A lock would be charged for the timer, and
//! one that keeps its runtime busier would seem faster. The kernel's `timerfd` does not round.
//!
//! Each sleep occupies a file descriptor: use it for the few contenders that work, not for waiters.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Sleeps for `duration` and some microseconds; up to two milliseconds longer if no timer descriptor is
/// available.
#[allow(clippy::disallowed_methods, reason = "it measures live servers: there is no other clock")]
pub(crate) async fn sleep(duration: Duration) {
    if duration.is_zero() {
        return;
    }
    let exact = match start(duration) {
        Ok(timer) => expired(&timer).await,
        Err(error) => Err(error),
    };
    if exact.is_err() {
        tokio::time::sleep(duration).await;
    }
}

/// A timer that expires once.
#[allow(
    deprecated,
    reason = "unsound for types that may change their descriptor, which this one can't; its successor is \
         unsafe code"
)]
fn start(duration: Duration) -> io::Result<AsyncFd<OwnedFd>> {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    let once = Timespec { tv_sec: seconds, tv_nsec: duration.subsec_nanos().into() };
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: never, it_value: once })?;
    AsyncFd::with_interest(timer, Interest::READABLE)
}

async fn expired(timer: &AsyncFd<OwnedFd>) -> io::Result<()> {
    loop {
        // tokio may report a timer as readable that is not: the read decides.
        let mut ready = timer.readable().await?;
        let count = ready.try_io(|timer| Ok(rustix::io::read(timer, &mut [0; 8])?));
        if let Ok(count) = count {
            return count.map(drop);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Instant;

    use futures_util::future::{Either, join_all, select};

    use super::*;

    #[tokio::test]
    #[allow(clippy::disallowed_methods, reason = "it is a clock that is tested")]
    async fn no_sleep_ends_too_early() {
        let begun = Instant::now();
        let of = |micros| async move {
            sleep(Duration::from_micros(micros)).await;
            (Duration::from_micros(micros), begun.elapsed())
        };
        let slept = join_all([5_000, 0, 20_300, 700].map(of)).await;
        assert!(slept.iter().all(|(asked, took)| took >= asked), "{slept:?}");
    }

    #[tokio::test]
    async fn a_sleep_does_not_block_shorter_ones() {
        let (long, short) = (pin!(sleep(Duration::from_secs(600))), pin!(sleep(Duration::from_millis(1))));
        assert!(matches!(select(long, short).await, Either::Right(_)));
    }
}
