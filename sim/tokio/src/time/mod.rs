//! `tokio::time` on the monotonic clock of the process, with its faults. As tokio's own, timers fire at whole
//! milliseconds.

pub mod error;
mod interval;
mod sleep;
mod timeout;

#[doc(no_inline)]
pub use std::time::Duration;

pub use real_tokio::time::Instant;

pub use self::interval::{Interval, MissedTickBehavior, interval, interval_at};
pub use self::sleep::{Sleep, sleep, sleep_until};
pub use self::timeout::{Timeout, timeout, timeout_at};

#[cfg(feature = "test-util")]
pub use self::paused::{advance, pause, resume};

/// The time of a world is simulated already, so that it can't be paused.
#[cfg(feature = "test-util")]
mod paused {
    use std::time::Duration;

    use crate::host::refused;

    const INSTEAD: &str = "a world's time runs by itself, without waiting: sleep instead";

    /// Refused: the run ends with an error that names the line.
    pub fn pause() {
        drop(refused("tokio::time::pause", INSTEAD));
    }

    /// Refused: the run ends with an error that names the line.
    pub fn resume() {
        drop(refused("tokio::time::resume", INSTEAD));
    }

    /// Refused: the run ends with an error that names the line.
    #[allow(clippy::unused_async, reason = "tokio's own is async")]
    pub async fn advance(_: Duration) {
        drop(refused("tokio::time::advance", INSTEAD));
    }
}
