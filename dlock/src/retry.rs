//! How long to wait between two attempts. Pure: randomness comes in as bytes.

use std::time::Duration;

/// Bounded exponential backoff with jitter.
///
/// The wait before retry *n* is drawn from the upper half of `base · 2ⁿ`, which is at most `max`: enough randomness to
/// part clients that were turned away together, and never a wait of nearly nothing, which would spin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The longest first wait.
    pub base: Duration,
    /// The longest wait of all.
    pub max: Duration,
}

impl Default for Backoff {
    /// 50 ms, then twice as much each time, to 2 s.
    fn default() -> Self {
        Self { base: Duration::from_millis(50), max: Duration::from_secs(2) }
    }
}

impl Backoff {
    /// The longest wait before the retry numbered `retry`, counted from 0.
    pub fn longest(self, retry: u32) -> Duration {
        let factor = 1u32.checked_shl(retry).unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.max)
    }

    /// The wait before the retry numbered `retry`, from half of [`Backoff::longest`] to the whole, as `random` says.
    pub fn wait(self, retry: u32, random: [u8; 8]) -> Duration {
        let longest = u64::try_from(self.longest(retry).as_nanos()).unwrap_or(u64::MAX);
        let shortest = longest / 2;
        let span = u128::from(longest - shortest) + 1;
        // The high half of the product is below `span`: a fair draw without a division.
        let drawn = (u128::from(u64::from_le_bytes(random)) * span) >> 64;
        Duration::from_nanos(shortest + u64::try_from(drawn).unwrap_or(u64::MAX))
    }
}

/// The wait of a client that was told that the lock will be free in `left`, if it was told: its own `backoff`, cut off
/// shortly after that time. A sixteenth of the backoff is added, so that those who were told the same moment do not all
/// come at once. It is at least 1 ms: none would spin.
pub(crate) fn wait_for_holder(backoff: Duration, left: Option<Duration>) -> Duration {
    const LEAST: Duration = Duration::from_millis(1);
    let Some(left) = left else { return backoff.max(LEAST) };
    backoff.min(left.saturating_add(backoff / 16)).max(LEAST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_wait_is_between_half_and_the_whole_of_its_bound(
            base in 1..10_000u64, max in 0..100_000u64, retry: u32, random: [u8; 8],
        ) {
            let base = Duration::from_millis(base);
            let backoff = Backoff { base, max: base + Duration::from_millis(max) };
            let (wait, longest) = (backoff.wait(retry, random), backoff.longest(retry));
            prop_assert!(longest / 2 <= wait && wait <= longest, "{wait:?} of {longest:?}");
            prop_assert!(longest <= backoff.max && longest >= base.min(backoff.max));
        }

        #[test]
        fn the_bound_never_shrinks(base in 1..10_000u64, retry in 0..u32::MAX) {
            let backoff = Backoff { base: Duration::from_millis(base), max: Duration::from_secs(3600) };
            prop_assert!(backoff.longest(retry) <= backoff.longest(retry + 1));
        }

        #[test]
        fn a_waiter_comes_after_the_lease_ended_or_by_its_own_backoff(wait in 0..10_000u64, left in 0..10_000u64) {
            let (wait, left) = (Duration::from_millis(wait), Duration::from_millis(left));
            let chosen = wait_for_holder(wait, Some(left));
            prop_assert!(chosen >= Duration::from_millis(1), "none spins");
            prop_assert!(chosen <= wait.max(Duration::from_millis(1)));
            prop_assert!(chosen >= wait.min(left));
        }
    }

    #[test]
    fn the_whole_range_is_drawn_from() {
        let backoff = Backoff::default();
        assert_eq!(backoff.wait(0, [0; 8]), Duration::from_millis(25));
        assert_eq!(backoff.wait(0, [255; 8]), Duration::from_millis(50));
        assert_eq!(backoff.wait(3, [255; 8]), Duration::from_millis(400));
        assert_eq!(backoff.wait(63, [255; 8]), Duration::from_secs(2));
    }

    #[test]
    fn without_word_from_the_server_the_backoff_stands() {
        let wait = Duration::from_millis(40);
        assert_eq!(wait_for_holder(wait, None), wait);
        assert_eq!(wait_for_holder(Duration::ZERO, None), Duration::from_millis(1));
    }
}
