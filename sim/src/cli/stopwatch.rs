//! How long the command took, for the person in front of it: the one place of the command that reads a clock.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the command shows how long things took; the simulation never sees its clock"
)]

use std::time::{Duration, Instant};

/// A time that is being taken.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Real time since the start.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
