//! The wait of a client for another owner's lease. Pure.

use std::time::Duration;

/// Returns the wait of a client whose lock will be free in `left`, if that is known: its own `backoff`, cut
/// off shortly after that time. A sixteenth of the backoff is added, so that clients that know the same time
/// do not all ask at once. The wait is at least 1 ms, since none would spin.
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
        fn a_waiter_retries_at_the_leases_end_or_earlier(wait in 0..10_000u64, left in 0..10_000u64) {
            let (wait, left) = (Duration::from_millis(wait), Duration::from_millis(left));
            let chosen = wait_for_holder(wait, Some(left));
            prop_assert!(chosen >= Duration::from_millis(1), "none spins");
            prop_assert!(chosen <= wait.max(Duration::from_millis(1)));
            prop_assert!(chosen >= wait.min(left));
        }
    }

    #[test]
    fn without_a_known_expiry_the_backoff_is_the_wait() {
        let wait = Duration::from_millis(40);
        assert_eq!(wait_for_holder(wait, None), wait);
        assert_eq!(wait_for_holder(Duration::ZERO, None), Duration::from_millis(1));
    }
}
