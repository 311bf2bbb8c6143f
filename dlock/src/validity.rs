//! The validity of a lease, whose TTL renewals may change.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dlock_runtime::Instant;

use crate::lease::{DriftMargin, Terms};

/// The TTLs of a lease and the end of its validity. All are stored in nanoseconds.
///
/// A renewal without an answer may have taken effect, may still do so, or may not. So the lease may last on
/// the server for as long as its longest TTL, and may be trusted for no longer than the shortest one of those
/// renewals: delivered late, it sets the lease back to that.
pub(crate) struct Validity {
    drift: DriftMargin,
    /// The TTL of the grant, or of the last renewal that changed it.
    ttl: AtomicU64,
    /// The longest TTL that was ever requested.
    longest: AtomicU64,
    /// The shortest TTL of the renewals without an answer.
    unanswered: AtomicU64,
    /// The end on the runtime's clock. It grows, except when the TTL becomes shorter.
    until: AtomicU64,
}

/// A renewal that waits for its answer. If it is dropped, it counts as one without an answer for ever.
#[must_use]
pub(crate) struct Unanswered(u64);

impl Validity {
    pub(crate) fn new(drift: DriftMargin, ttl: Duration, until: Instant) -> Self {
        let nanos = nanos(ttl);
        Self {
            drift,
            ttl: AtomicU64::new(nanos),
            longest: AtomicU64::new(nanos),
            unanswered: AtomicU64::new(u64::MAX),
            until: AtomicU64::new(until.as_nanos()),
        }
    }

    /// Returns the TTL that renewals request.
    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_nanos(self.ttl.load(Ordering::Acquire))
    }

    /// Returns the longest time for which the lease may live on the server without another renewal.
    pub(crate) fn longest_ttl(&self) -> Duration {
        Duration::from_nanos(self.longest.load(Ordering::Acquire))
    }

    pub(crate) fn until(&self) -> Instant {
        Instant::from_nanos(self.until.load(Ordering::Acquire))
    }

    /// Returns the terms on which a renewal may be trusted.
    pub(crate) fn terms(&self) -> Terms {
        let ttl = self.ttl().min(Duration::from_nanos(self.unanswered.load(Ordering::Acquire)));
        Terms { ttl, drift: self.drift.of(ttl) }
    }

    /// Changes the TTL for the next renewal and all later ones. A shorter one shortens the validity at once:
    /// the renewal may take effect although its answer gets lost. Returns true if it did.
    pub(crate) fn change(&self, terms: Terms, now: Instant) -> bool {
        self.ttl.store(nanos(terms.ttl), Ordering::Release);
        self.longest.fetch_max(nanos(terms.ttl), Ordering::AcqRel);
        let until = terms.valid_until(now, terms.ttl).as_nanos();
        self.until.fetch_min(until, Ordering::AcqRel) > until
    }

    /// Notes a renewal that is about to be sent. Renewals of one lease follow each other.
    pub(crate) fn renewing(&self) -> Unanswered {
        Unanswered(self.unanswered.fetch_min(nanos(self.ttl()), Ordering::AcqRel))
    }

    /// Notes its answer.
    pub(crate) fn answered(&self, Unanswered(former): Unanswered) {
        self.unanswered.store(former, Ordering::Release);
    }

    /// Prolongs the validity by a lease of `left`, counted from `since`; returns what is valid at the least.
    pub(crate) fn extend(&self, since: Instant, left: Duration) -> Instant {
        let until = self.terms().valid_until(since, left);
        self.until.fetch_max(until.as_nanos(), Ordering::AcqRel);
        until
    }
}

/// Returns a TTL in nanoseconds; the longest one has 55 bits.
fn nanos(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX)
}
