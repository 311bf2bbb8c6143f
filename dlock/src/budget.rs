//! The TTL of a lease, derived from measurements. Pure.

use std::time::Duration;

use crate::options::Options;

/// The time that a lease must cover, from measurements: the terms of a lease follow from it.
///
/// A TTL is a bet that no holder stands still for longer. A short one loses the lease during ordinary work, a
/// long one leaves the lock taken for long after a crash. Safety needs neither, if the resource checks the
/// fencing token: choose for liveness.
///
/// Source: "Distributed Coordination", part 18, section 16. The TTL is the 99.9th percentile of the critical
/// section, a margin for pauses and one for the network; `renew_interval = ttl / 3`,
/// `stop_work_threshold = ttl / 6`.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use dlock::Budget;
///
/// let ms = Duration::from_millis;
/// // Measured: 99.9 % of the sections take at most 800 ms, the longest pause of the runtime was 2 s, and the
/// // slowest answer of the lock server 200 ms.
/// let budget = Budget { work: ms(800), pause: ms(2000), network: ms(200) };
/// assert_eq!(budget.ttl(), ms(3000));
/// assert_eq!((budget.renew_interval(), budget.stop_threshold()), (ms(1000), ms(500)));
/// assert_eq!(budget.options().ttl, ms(3000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The time of the critical section, as its 99.9th percentile. Work of hours is no critical section: own
    /// it durably, in a table with a heartbeat, and lock only its steps.
    pub work: Duration,
    /// The longest pause of the process to survive: of its garbage collection, its disk or its machine.
    pub pause: Duration,
    /// The slowest answer of the lock server to survive, retries included.
    pub network: Duration,
}

impl Budget {
    /// Returns the TTL: the sum of the three, rounded up to whole milliseconds, at least one.
    pub fn ttl(&self) -> Duration {
        let sum = self.work.saturating_add(self.pause).saturating_add(self.network);
        let millis = sum.as_nanos().div_ceil(1_000_000).max(1);
        Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// Returns the time between two renewals, a third of the TTL, so that two may fail.
    /// [`Handle::while_held`] renews so.
    ///
    /// [`Handle::while_held`]: crate::Handle::while_held
    pub fn renew_interval(&self) -> Duration {
        self.ttl() / 3
    }

    /// Returns the remaining validity below which work should not begin another step: a sixth of the TTL.
    /// [`Handle::low`](crate::Handle::low) tells the work then.
    pub fn stop_threshold(&self) -> Duration {
        self.ttl() / 6
    }

    /// Returns the usual options with this TTL. [`Lock::new`](crate::Lock::new) refuses a TTL that is too
    /// short or too long.
    pub fn options(&self) -> Options {
        Options::new(self.ttl())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_terms_cover_the_budget(work: u32, pause: u32, network in 1..u32::MAX) {
            let [work, pause, network] = [work, pause, network].map(|n| Duration::from_nanos(n.into()));
            let budget = Budget { work, pause, network };
            let sum = budget.work + budget.pause + budget.network;
            prop_assert!(budget.ttl() >= sum && budget.ttl() < sum + Duration::from_millis(1));
            prop_assert_eq!(budget.ttl().subsec_nanos() % 1_000_000, 0);
            prop_assert!(budget.renew_interval() * 3 <= budget.ttl());
            // After two renewals that fail, work is still told before the validity ends.
            prop_assert!(budget.ttl() - 2 * budget.renew_interval() > budget.stop_threshold());
        }
    }

    #[test]
    fn a_budget_of_nothing_and_of_everything_has_terms() {
        let none = Budget { work: Duration::ZERO, pause: Duration::ZERO, network: Duration::ZERO };
        assert_eq!(none.ttl(), Duration::from_millis(1));
        let all = Budget { work: Duration::MAX, ..none };
        assert!(all.ttl() > Duration::from_secs(365 * 24 * 60 * 60));
    }
}
