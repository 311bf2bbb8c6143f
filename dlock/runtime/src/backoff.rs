//! The wait between two attempts, as a pure function: random bytes are an argument.

use std::time::Duration;

/// Exponential backoff with jitter and a limit.
///
/// The wait before retry *n* is drawn from the upper half of `base · 2ⁿ`, which is at most `max`: random
/// enough to separate clients that were refused together, and never so short that a client spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The longest first wait.
    pub base: Duration,
    /// The longest wait of all.
    pub max: Duration,
}

impl Default for Backoff {
    /// 50 ms, doubled each time, up to 2 s.
    fn default() -> Self {
        Self { base: Duration::from_millis(50), max: Duration::from_secs(2) }
    }
}

impl Backoff {
    /// Returns the longest wait before retry number `retry`, counted from 0.
    pub fn longest(self, retry: u32) -> Duration {
        let factor = 1u32.checked_shl(retry).unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.max)
    }

    /// Returns the wait before retry number `retry`: between half of [`Backoff::longest`] and all of it,
    /// chosen by `random`.
    pub fn wait(self, retry: u32, random: [u8; 8]) -> Duration {
        let longest = u64::try_from(self.longest(retry).as_nanos()).unwrap_or(u64::MAX);
        let shortest = longest / 2;
        let span = u128::from(longest - shortest) + 1;
        // The high half of the product is below `span`: a fair draw without a division.
        let drawn = (u128::from(u64::from_le_bytes(random)) * span) >> 64;
        Duration::from_nanos(shortest + u64::try_from(drawn).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_wait_is_between_half_and_all_of_its_limit(
            base in 1..10_000u64, max in 0..100_000u64, retry: u32, random: [u8; 8],
        ) {
            let base = Duration::from_millis(base);
            let backoff = Backoff { base, max: base + Duration::from_millis(max) };
            let (wait, longest) = (backoff.wait(retry, random), backoff.longest(retry));
            prop_assert!(longest / 2 <= wait && wait <= longest, "{wait:?} of {longest:?}");
            prop_assert!(longest <= backoff.max && longest >= base.min(backoff.max));
        }

        #[test]
        fn the_longest_wait_never_shrinks(base in 1..10_000u64, retry in 0..u32::MAX) {
            let backoff = Backoff { base: Duration::from_millis(base), max: Duration::from_secs(3600) };
            prop_assert!(backoff.longest(retry) <= backoff.longest(retry + 1));
        }
    }

    #[test]
    fn every_wait_in_the_range_is_possible() {
        let backoff = Backoff::default();
        assert_eq!(backoff.wait(0, [0; 8]), Duration::from_millis(25));
        assert_eq!(backoff.wait(0, [255; 8]), Duration::from_millis(50));
        assert_eq!(backoff.wait(3, [255; 8]), Duration::from_millis(400));
        assert_eq!(backoff.wait(63, [255; 8]), Duration::from_secs(2));
    }
}
