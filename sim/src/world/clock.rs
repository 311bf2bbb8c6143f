//! A process's two clocks, as functions of true time.
//!
//! Every process has a monotonic clock, with an origin and a rate of its own, and a wall clock, which runs
//! at the same rate and can be stepped. A slew is a rate for a while, as `adjtime` does it, so it shows on
//! both. Clock faults are data: nothing here waits or wakes.

/// Parts in a billion: the rate of a clock that runs true.
pub const TRUE_RATE: u64 = 1_000_000_000;

/// The wall clocks' time when a run begins, in nanoseconds since the Unix epoch: 2026-01-01T00:00:00Z.
pub const EPOCH_NANOS: u64 = 1_767_225_600 * 1_000_000_000;

/// The clocks of one process. All times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The true time at which the clock was last set.
    since: u64,
    monotonic: u64,
    wall: u64,
    /// Local nanoseconds in a billion true ones.
    rate: u64,
}

impl Clock {
    /// Clocks that run true; the monotonic one reads `origin` when the run begins.
    pub const fn new(origin: u64) -> Self {
        Self { since: 0, monotonic: origin, wall: EPOCH_NANOS, rate: TRUE_RATE }
    }

    /// The monotonic clock's reading at the true time `now`.
    pub fn monotonic(&self, now: u64) -> u64 {
        self.monotonic.saturating_add(self.local(now))
    }

    /// The wall clock's reading at the true time `now`, since the Unix epoch.
    pub fn wall(&self, now: u64) -> u64 {
        self.wall.saturating_add(self.local(now))
    }

    /// The first true time at which the monotonic clock reads `reading` or more, if its rate stays as it is.
    pub fn when(&self, reading: u64) -> u64 {
        let local = u128::from(reading.saturating_sub(self.monotonic));
        let true_nanos = (local * u128::from(TRUE_RATE)).div_ceil(u128::from(self.rate));
        self.since.saturating_add(u64::try_from(true_nanos).unwrap_or(u64::MAX))
    }

    /// The clocks' rate, in local nanoseconds in a billion true ones.
    pub const fn rate(&self) -> u64 {
        self.rate
    }

    /// From the true time `now` on, the clocks run at `rate`, at least 1.
    pub fn set_rate(&mut self, now: u64, rate: u64) {
        self.monotonic = self.monotonic(now);
        self.wall = self.wall(now);
        self.since = now;
        self.rate = rate.max(1);
    }

    /// The wall clock jumps by `by` nanoseconds, forward or back; the monotonic one does not notice.
    pub fn step(&mut self, by: i64) {
        self.wall = self.wall.saturating_add_signed(by);
    }

    /// How far the wall clock is from true time at `now`, in nanoseconds.
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
    fn a_slew_moves_both_and_nothing_jumps() {
        let mut clock = Clock::new(0);
        clock.set_rate(SECOND, TRUE_RATE * 11 / 10);
        assert_eq!(clock.monotonic(SECOND), SECOND);
        clock.set_rate(11 * SECOND, TRUE_RATE);
        assert_eq!(clock.error(20 * SECOND), SECOND as i64);
        assert_eq!(clock.monotonic(20 * SECOND), 21 * SECOND);
    }

    proptest! {
        #[test]
        fn a_sleeper_wakes_at_its_deadline_and_not_before(
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
