//! A process's two clocks, as functions of true time.
//!
//! Every process has a monotonic clock, with an origin and a rate of its own, and a wall clock, which runs
//! at the same rate and can be stepped. A slew is a changed rate for some time, as with `adjtime`, so both
//! clocks show it. Clock faults are data: nothing here waits or wakes.

use history::TRUE_RATE;

/// The wall clocks' time at the start of a run, in nanoseconds since the Unix epoch: 2026-01-01T00:00:00Z.
pub const EPOCH_NANOS: u64 = 1_767_225_600 * 1_000_000_000;

/// The clocks of one process. All times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The true time of the last change of the rate, at which the two readings below were taken.
    since: u64,
    monotonic: u64,
    wall: u64,
    /// Local nanoseconds per billion true ones.
    rate: u64,
}

impl Clock {
    /// Returns clocks with the true rate; the monotonic one reads `origin` at the start of the run.
    pub const fn new(origin: u64) -> Self {
        Self { since: 0, monotonic: origin, wall: EPOCH_NANOS, rate: TRUE_RATE }
    }

    /// Returns the monotonic clock's reading at the true time `now`.
    pub fn monotonic(&self, now: u64) -> u64 {
        self.monotonic.saturating_add(self.local(now))
    }

    /// Returns the wall clock's reading at the true time `now`, since the Unix epoch.
    pub fn wall(&self, now: u64) -> u64 {
        self.wall.saturating_add(self.local(now))
    }

    /// Returns the first true time at which the monotonic clock reads `reading` or more, if its rate stays
    /// the same.
    pub fn when(&self, reading: u64) -> u64 {
        let local = u128::from(reading.saturating_sub(self.monotonic));
        let true_nanos = (local * u128::from(TRUE_RATE)).div_ceil(u128::from(self.rate));
        self.since.saturating_add(u64::try_from(true_nanos).unwrap_or(u64::MAX))
    }

    /// Returns the clocks' rate, in local nanoseconds per billion true ones.
    pub const fn rate(&self) -> u64 {
        self.rate
    }

    /// Sets the rate from the true time `now` on, at least 1.
    pub fn set_rate(&mut self, now: u64, rate: u64) {
        self.monotonic = self.monotonic(now);
        self.wall = self.wall(now);
        self.since = now;
        self.rate = rate.max(1);
    }

    /// Steps the wall clock by `by` nanoseconds, forward or back. The monotonic clock does not change.
    pub fn step(&mut self, by: i64) {
        self.wall = self.wall.saturating_add_signed(by);
    }

    /// Returns the wall clock's offset from true time at `now`, in nanoseconds.
    pub fn error(&self, now: u64) -> i64 {
        let difference = i128::from(self.wall(now)) - i128::from(EPOCH_NANOS) - i128::from(now);
        i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
    }

    fn local(&self, now: u64) -> u64 {
        let true_nanos = now.saturating_sub(self.since);
        if self.rate == TRUE_RATE {
            return true_nanos;
        }
        let local = u128::from(true_nanos) * u128::from(self.rate) / u128::from(TRUE_RATE);
        u64::try_from(local).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_step_moves_the_wall_clock_only() {
        let mut clock = Clock::new(7);
        clock.step(-30 * SECOND as i64);
        assert_eq!(clock.monotonic(SECOND), SECOND + 7);
        assert_eq!(clock.wall(SECOND), EPOCH_NANOS - 29 * SECOND);
        assert_eq!(clock.error(SECOND), -30 * SECOND as i64);
    }

    #[test]
    fn a_slew_moves_both_clocks_without_a_jump() {
        let mut clock = Clock::new(0);
        clock.set_rate(SECOND, TRUE_RATE * 11 / 10);
        assert_eq!(clock.monotonic(SECOND), SECOND);
        clock.set_rate(11 * SECOND, TRUE_RATE);
        assert_eq!(clock.error(20 * SECOND), SECOND as i64);
        assert_eq!(clock.monotonic(20 * SECOND), 21 * SECOND);
    }

    proptest! {
        #[test]
        fn when_is_the_first_moment_at_which_a_deadline_is_reached(
            origin in 0..u64::MAX / 4, changed in 0..1_000_000_000_000_u64,
            rate in 500_000_000..2_000_000_000_u64, later in 0..1_000_000_000_000_u64,
        ) {
            let mut clock = Clock::new(origin);
            clock.set_rate(changed, rate);
            let deadline = clock.monotonic(changed + later);
            let wakes = clock.when(deadline);
            prop_assert!(clock.monotonic(wakes) >= deadline);
            prop_assert!(wakes == changed || clock.monotonic(wakes - 1) < deadline);
        }

        #[test]
        fn the_monotonic_clock_never_goes_back(
            rates in prop::collection::vec((1..1_000_000_000_u64, 1..3_000_000_000_u64, any::<i32>()), 0..20),
        ) {
            let mut clock = Clock::new(5);
            let (mut now, mut last) = (0, 5);
            for (wait, rate, step) in rates {
                now += wait;
                clock.set_rate(now, rate);
                clock.step(i64::from(step));
                let reading = clock.monotonic(now);
                prop_assert!(reading >= last);
                last = reading;
            }
        }
    }
}
