//! [`Runtime`] on tokio: the only place in the library that reads a clock and opens a socket.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this is the seam's live side")]

use std::future::Future;
use std::io;
use std::time::Duration;

use rand::Rng;
use tokio::runtime::Handle;

use super::socket::Socket;
use super::stream::TokioStream;
use crate::{Instant, Runtime};

/// The operating system's clock, network and random source, and the scheduler of one tokio runtime. It
/// connects to addresses written `host:port`, and to the sockets of this machine, written `unix:/path`.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use dlock::{Runtime, TokioRuntime};
/// use tokio::runtime::Handle;
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() {
///     let runtime = TokioRuntime::new(Handle::current());
///     let deadline = runtime.now() + Duration::from_millis(5);
///     runtime.sleep_until(deadline).await;
///     assert!(runtime.now() >= deadline);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct TokioRuntime {
    handle: Handle,
    /// The reading of the monotonic clock that counts as zero.
    origin: std::time::Instant,
    /// The time for which a stream polls for an answer before its thread may sleep.
    busy_poll: Duration,
}

impl TokioRuntime {
    /// The default time to poll for an answer, 100 µs: most answers over loopback arrive within it.
    pub const BUSY_POLL: Duration = Duration::from_micros(100);

    /// The longest time to poll, 1 ms: while a thread polls, no timer fires and no lease is renewed.
    pub const BUSY_POLL_MAX: Duration = Duration::from_millis(1);

    /// Creates a runtime on `handle`, for instance [`Handle::current`]. Its clock starts at zero.
    pub fn new(handle: Handle) -> Self {
        Self { handle, origin: std::time::Instant::now(), busy_poll: Self::BUSY_POLL }
    }

    /// Sets the time for which its streams poll for an answer before their thread may sleep: `busy_poll`, at
    /// most [`Self::BUSY_POLL_MAX`]; zero never polls. A stream polls only while its answers arrive within
    /// that time. Meanwhile the thread occupies a processor, and its other tasks wait.
    #[must_use]
    pub fn polling_busily(self, busy_poll: Duration) -> Self {
        Self { busy_poll: busy_poll.min(Self::BUSY_POLL_MAX), ..self }
    }
}

impl Runtime for TokioRuntime {
    type Stream = TokioStream;

    fn now(&self) -> Instant {
        let nanos = self.origin.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    async fn sleep_until(&self, deadline: Instant) {
        // tokio rounds up to whole milliseconds: never early.
        let deadline = self.origin.checked_add(Duration::from_nanos(deadline.as_nanos()));
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
            None => std::future::pending().await,
        }
    }

    async fn connect(&self, address: &str) -> io::Result<TokioStream> {
        Ok(TokioStream::new(Socket::connect(address).await?, self.busy_poll))
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(task));
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        // ChaCha, keyed by the operating system and rekeyed from time to time: as hard to guess as the
        // system's random source, without a system call for each owner token. A process that forks without
        // exec would repeat its parent's values; this program does not.
        rand::rng().fill_bytes(bytes);
    }
}
