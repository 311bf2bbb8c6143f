//! B17: the duration of a request is measured on the wall clock. A step back during the request makes the
//! lease appear younger than it is.
//!
//! Source: node-redlock, which subtracts two readings of `Date.now()`.

use std::time::Duration;

use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, Answer, BackendError, Instant, Renewal, Runtime};
use sim::world::runtime::SimRuntime;

/// Measures on the wall clock.
pub(super) struct WallClock;

impl LockMistake for WallClock {
    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        let began = Readings::of(own.runtime());
        let answer = own.correct.request(deadline).await?;
        Ok(match answer {
            Answer::Granted { token, since, left } => {
                Answer::Granted { token, since: began.believe(since, own.runtime()), left }
            }
            held => held,
        })
    }

    async fn renew(own: &mut Attempt, deadline: Instant) -> Result<Renewal, BackendError> {
        let began = Readings::of(own.runtime());
        let renewal = own.correct.renew(deadline).await?;
        Ok(match renewal {
            Renewal::Extended { since, left } => {
                Renewal::Extended { since: began.believe(since, own.runtime()), left }
            }
            lost => lost,
        })
    }
}

/// The readings of both clocks at one moment.
pub(super) struct Readings {
    pub(super) monotonic: Instant,
    wall: u64,
}

impl Readings {
    pub(super) fn of(runtime: &SimRuntime) -> Self {
        Self { monotonic: runtime.now(), wall: runtime.wall_nanos() }
    }

    /// Returns `since` moved by the steps of the wall clock since these readings: a step back makes the lease
    /// younger.
    pub(super) fn believe(&self, since: Instant, runtime: &SimRuntime) -> Instant {
        let now = Self::of(runtime);
        let passed = now.monotonic.saturating_since(self.monotonic);
        let wall = Duration::from_nanos(now.wall.saturating_sub(self.wall));
        let back = Duration::from_nanos(self.wall.saturating_sub(now.wall));
        (since + passed + back) - wall
    }
}
