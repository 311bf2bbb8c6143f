//! Measures the real time of a command, to print it. No other file of the command reads a clock.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the command shows how long things took; the simulation never sees its clock"
)]

use std::time::{Duration, Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};

/// A running stopwatch.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the real time since the start.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Returns the processor time that all threads of the program have used.
pub(crate) fn processor_time() -> Duration {
    // rustix asks the kernel: the clock of libc would be the simulated one.
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let (seconds, nanos) = (u64::try_from(used.tv_sec), u32::try_from(used.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

/// Returns the seconds since the Unix epoch.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_secs())
}
