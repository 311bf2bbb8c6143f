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
