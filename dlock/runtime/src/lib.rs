//! One small trait for the outside world: clock, network, scheduler and entropy.
//!
//! `dlock` and its clients read a clock, open a connection, spawn a task and draw a random byte only through
//! [`Runtime`]. A program implements it with tokio and sockets, a simulator with simulated clocks and byte
//! streams.
//!
//! `dlock` exports all of this: a program that uses `dlock` needs no dependency on this crate.

mod backoff;
mod probe;
#[cfg(feature = "tls")]
pub mod tls;

use std::fmt;
use std::future::Future;
use std::io;
use std::ops::{Add, Sub};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite};

pub use self::backoff::Backoff;
pub use self::probe::{Probe, ProbeKind, Probed};

/// The outside world, as one process sees it.
pub trait Runtime: Clone + Send + Sync + 'static {
    /// A connection's byte stream.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Returns the time on this process's monotonic clock. It never goes back, and means nothing outside the
    /// process.
    fn now(&self) -> Instant;

    /// Completes once [`Runtime::now`] has reached `deadline`.
    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + Send;

    /// Opens a connection to `address`, written `host:port`. It may hang while the network is silent, so wrap
    /// it in [`timeout_at`].
    fn connect(&self, address: &str) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Runs `task` beside the caller. It ends with the process.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);

    /// Fills `bytes` from a source that no other process can guess.
    fn fill_random(&self, bytes: &mut [u8]);

    /// Hears of a probe: what `seen` returns, as in [`Probed::probe`]. Only a simulator needs it. The default
    /// does nothing, and does not call `seen`: once it is inlined, nothing is left of a probe.
    #[doc(hidden)]
    #[inline(always)]
    fn probe(&self, probe: &'static Probe, line: u32, seen: impl FnOnce() -> u64) {
        let _ = (probe, line, seen);
    }
}

/// A reading of one process's monotonic clock, in nanoseconds since an origin of that process's own.
///
/// It is not `std::time::Instant`, since every simulated process has a clock of its own, with an offset and a
/// rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The end of the clock's range.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the reading `nanos` nanoseconds after the clock's origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to `self`; zero if `earlier` is the later one.
    pub const fn saturating_since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// Saturates at the end of the clock's range (584 years).
    fn add(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    /// Saturates at the clock's origin.
    fn sub(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// The deadline passed before the future completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline passed")
    }
}

impl std::error::Error for Elapsed {}

/// Runs `future` until it completes or `deadline` passes on `runtime`'s clock, then drops it.
///
/// A result that is ready wins over a deadline that has passed: a process that was paused and finds both an
/// answer and an expired deadline takes the answer, and judges its age itself.
///
/// # Errors
///
/// [`Elapsed`] when the deadline passed first.
pub fn timeout_at<R: Runtime, F: Future>(
    runtime: &R,
    deadline: Instant,
    future: F,
) -> impl Future<Output = Result<F::Output, Elapsed>> {
    TimeoutAt { future, sleep: runtime.sleep_until(deadline) }
}

pin_project! {
    // A future of its own, since an `async fn` reserves space for its argument twice: nested timeouts would
    // double it each time.
    struct TimeoutAt<F, S> {
        #[pin]
        future: F,
        #[pin]
        sleep: S,
    }
}

impl<F: Future, S: Future<Output = ()>> Future for TimeoutAt<F, S> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        this.sleep.poll(cx).map(|()| Err(Elapsed))
    }
}
