//! `dlock::Runtime` on tokio: the one place outside the simulator where a clock is read and a socket opened.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this is the seam's live side")]

use std::future::Future;
use std::io;
use std::time::Duration;

use dlock::{Instant, Runtime};
use rand::Rng;
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use crate::stream::Stream;

/// The operating system's clock, network and random source, and the scheduler of one tokio runtime.
#[derive(Clone, Debug)]
pub struct TokioRuntime {
    handle: Handle,
    /// The monotonic clock's reading that counts as zero.
    origin: std::time::Instant,
    /// How long a stream polls for an answer before its thread may sleep.
    busy_poll: Duration,
}

impl TokioRuntime {
    /// How long a stream polls for an answer if nothing else is said, 100 µs: most of those over loopback come sooner.
    pub const BUSY_POLL: Duration = Duration::from_micros(100);

    /// The longest busy polling, 1 ms: no timer goes off meanwhile, and no lease is renewed.
    pub const BUSY_POLL_MAX: Duration = Duration::from_millis(1);

    /// The runtime behind `handle`, for instance [`Handle::current`]. Its clock starts at zero.
    pub fn new(handle: Handle) -> Self {
        Self { handle, origin: std::time::Instant::now(), busy_poll: Self::BUSY_POLL }
    }

    /// The same, with streams that poll for an answer for up to `busy_poll` (and [`Self::BUSY_POLL_MAX`] at most) before
    /// their thread may sleep; zero: never. A stream does so only while its answers come within that time. The thread takes
    /// a processor meanwhile, and none of its other tasks goes on.
    #[must_use]
    pub fn polling_busily(self, busy_poll: Duration) -> Self {
        Self { busy_poll: busy_poll.min(Self::BUSY_POLL_MAX), ..self }
    }
}

impl Runtime for TokioRuntime {
    type Stream = Stream;

    fn now(&self) -> Instant {
        let nanos = self.origin.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    async fn sleep_until(&self, deadline: Instant) {
        // tokio counts whole milliseconds, rounded up: never early.
        let deadline = self.origin.checked_add(Duration::from_nanos(deadline.as_nanos()));
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
            None => std::future::pending().await,
        }
    }

    async fn connect(&self, address: &str) -> io::Result<Stream> {
        let stream = TcpStream::connect(address).await?;
        // A lock's commands are small and waited for: Nagle's algorithm would hold them back for an acknowledgement.
        stream.set_nodelay(true)?;
        Ok(Stream::new(stream, self.busy_poll))
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(task));
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        // ChaCha with a key of the operating system's, and another one from time to time: as hard to guess as the system's own
        // source, without a system call for each owner token. A process that forks and goes on without exec would repeat
        // its parent's; none of ours does.
        rand::rng().fill_bytes(bytes);
    }
}
