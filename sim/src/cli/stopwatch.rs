//! Measures the real time of a command, to print it. No other file of the command reads a clock.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the command shows how long things took; the simulation never sees its clock"
)]

use std::time::{Duration, Instant};

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
