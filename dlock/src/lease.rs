//! The arithmetic of leases: the validity of a lease and the times of its renewals. Pure: time comes in as an
//! argument.

use std::time::Duration;

use dlock_runtime::Instant;

/// The part of a lease that is not trusted because clocks run at different rates: a share of the TTL and a
/// constant.
///
/// Source: the Redis documentation on distributed locks, where a client subtracts the drift and some
/// milliseconds from the validity that it trusts. Two clocks that differ in rate by less than the share leave
/// no moment in which both the old holder and the server's next one may trust their leases. No margin covers
/// a clock that is *set*.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use dlock::DriftMargin;
///
/// // By default a hundredth of the TTL, and 2 ms.
/// assert_eq!(DriftMargin::default().of(Duration::from_secs(2)), Duration::from_millis(22));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriftMargin {
    /// The share of the TTL, in thousandths.
    pub per_mille: u32,
    /// A constant part: the server counts in whole milliseconds.
    pub constant: Duration,
}

impl Default for DriftMargin {
    /// Returns a hundredth of the TTL, and 2 ms.
    fn default() -> Self {
        Self { per_mille: 10, constant: Duration::from_millis(2) }
    }
}

impl DriftMargin {
    /// Returns the margin of a lease of `ttl`.
    pub fn of(self, ttl: Duration) -> Duration {
        let nanos = ttl.as_nanos() * u128::from(self.per_mille) / 1000;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).saturating_add(self.constant)
    }
}

/// The fixed terms of every lease of one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// The TTL on the server, in whole milliseconds.
    pub(crate) ttl: Duration,
    /// The drift margin of that TTL.
    pub(crate) drift: Duration,
}

impl Terms {
    /// Returns the time from which a lease of `left`, counted from `since`, may no longer be trusted. `since`
    /// is a reading from before the request was sent, so the lease can only last longer on the server than it
    /// does here.
    pub(crate) fn valid_until(self, since: Instant, left: Duration) -> Instant {
        (since + left.min(self.ttl).saturating_sub(self.drift)).max(since)
    }

    /// Returns when to renew a lease that was granted or renewed at `since` and lives for `left` from then
    /// on: after a third of that, so that two more tries of the same length fit in.
    pub(crate) fn renew_at(self, since: Instant, left: Duration) -> Instant {
        since + left.min(self.ttl) / 3
    }

    /// Returns when to retry a renewal that failed at `now`: soon, since validity is running out, and never
    /// past its end.
    pub(crate) fn retry_at(self, now: Instant, valid_until: Instant) -> Instant {
        (now + (self.ttl / 24).max(Duration::from_millis(1))).min(valid_until)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MILLI: u64 = 1_000_000;

    prop_compose! {
        /// Terms as `Options::terms` lets them pass, up to a day.
        fn terms()(ttl in 1..86_400_000u64, per_mille in 0..1000u32, constant in 0..10u64) -> Option<Terms> {
            let ttl = Duration::from_millis(ttl);
            let drift = DriftMargin { per_mille, constant: Duration::from_millis(constant) }.of(ttl);
            (drift < ttl).then_some(Terms { ttl, drift })
        }
    }

    proptest! {
        #[test]
        fn validity_ends_before_the_ttl_by_the_margin(
            terms in terms().prop_filter_map("margin", |terms| terms),
            since in 0..u64::MAX / 2,
        ) {
            let since = Instant::from_nanos(since);
            let valid = terms.valid_until(since, terms.ttl).saturating_since(since);
            prop_assert_eq!(valid + terms.drift, terms.ttl);
            prop_assert!(!valid.is_zero());
        }

        #[test]
        fn validity_never_exceeds_what_the_server_has_left(
            terms in terms().prop_filter_map("margin", |terms| terms),
            since in 0..u64::MAX / 2,
            left in 0..100_000_000u64,
        ) {
            let (since, left) = (Instant::from_nanos(since), Duration::from_millis(left));
            let valid = terms.valid_until(since, left).saturating_since(since);
            prop_assert!(valid <= left.saturating_sub(terms.drift));
            prop_assert!(valid < terms.ttl || terms.drift.is_zero());
        }

        /// Two clocks whose rates differ by less than the share never trust the lease at once with its next
        /// holder.
        #[test]
        fn the_margin_covers_its_share_of_clock_drift(ttl in 500..86_400_000u64, slow_ppm in 0..9_900u64) {
            let ttl = Duration::from_millis(ttl);
            let terms = Terms { ttl, drift: DriftMargin::default().of(ttl) };
            let trusted = terms.valid_until(Instant::from_nanos(0), ttl).as_nanos();
            // While the holder's slow clock counts `trusted`, more time passes on the server's.
            let passed = u128::from(trusted) * 1_000_000 / u128::from(1_000_000 - slow_ppm);
            prop_assert!(passed < ttl.as_nanos());
        }

        #[test]
        fn renewals_come_in_time_to_be_repeated(ttl in 10..86_400_000u64, since in 0..u64::MAX / 2) {
            let ttl = Duration::from_millis(ttl);
            let terms = Terms { ttl, drift: DriftMargin::default().of(ttl) };
            let since = Instant::from_nanos(since);
            let (due, until) = (terms.renew_at(since, ttl), terms.valid_until(since, ttl));
            prop_assert!(since < due && due < until);
            let again = terms.retry_at(due, until);
            prop_assert!(due < again && again <= until);
            prop_assert_eq!(terms.retry_at(until, until), until);
        }
    }

    #[test]
    fn a_grant_older_than_its_lease_is_not_valid() {
        let terms = Terms { ttl: Duration::from_millis(10), drift: Duration::from_millis(3) };
        let since = Instant::from_nanos(5 * MILLI);
        assert_eq!(terms.valid_until(since, Duration::from_millis(2)), since);
        assert_eq!(terms.valid_until(since, Duration::from_millis(10)), Instant::from_nanos(12 * MILLI));
    }
}
