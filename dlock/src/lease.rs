//! The arithmetic of leases: how long a holder may trust one, and when to renew it. Pure: time comes in as an argument.

use std::time::Duration;

use crate::runtime::Instant;

/// How much of a lease is given up for clocks that don't run alike: a share of the TTL and a constant.
///
/// Source: the Redis documentation on distributed locks, where a client subtracts the drift and some milliseconds from
/// the validity that it trusts. Two clocks that differ in rate by less than the share leave no moment in which both the
/// old holder and the server's next one may trust their leases. No margin covers a clock that is *set*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriftMargin {
    /// The share of the TTL, in thousandths.
    pub per_mille: u32,
    /// What is taken off in any case: the server counts in whole milliseconds.
    pub constant: Duration,
}

impl Default for DriftMargin {
    /// A hundredth of the TTL, and 2 ms.
    fn default() -> Self {
        Self { per_mille: 10, constant: Duration::from_millis(2) }
    }
}

impl DriftMargin {
    /// What is taken off a lease of `ttl`.
    pub fn of(self, ttl: Duration) -> Duration {
        let nanos = ttl.as_nanos() * u128::from(self.per_mille) / 1000;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).saturating_add(self.constant)
    }
}

/// The fixed terms of every lease of one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// What the server is told, in whole milliseconds.
    pub(crate) ttl: Duration,
    /// The drift margin of that TTL.
    pub(crate) drift: Duration,
}

impl Terms {
    /// The time from which a lease of `left`, counted from `since`, may no longer be trusted. `since` is a reading from
    /// before the request was sent, so that the lease can only last longer on the server than it does here.
    pub(crate) fn valid_until(self, since: Instant, left: Duration) -> Instant {
        (since + left.min(self.ttl).saturating_sub(self.drift)).max(since)
    }

    /// When to renew a lease that was granted or renewed at `since`: after a third of its TTL, so that two more tries
    /// of the same length fit in.
    pub(crate) fn renew_at(self, since: Instant) -> Instant {
        since + self.ttl / 3
    }

    /// When to try again after a renewal that failed at `now`: soon, since validity runs out, and never past its end.
    pub(crate) fn retry_at(self, now: Instant, valid_until: Instant) -> Instant {
        (now + (self.ttl / 24).max(Duration::from_millis(1))).min(valid_until)
    }
}
