//! The limit on the requests of one client address.
//!
//! Each address has a token bucket, kept as one number: the time at which the bucket is full again. A request
//! moves it by the time that refills one token. Source: the generic cell rate algorithm, ITU-T I.371, annex
//! A, which decides as a token bucket does.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dlock::{Instant, Runtime};

/// The largest number of addresses with a bucket of their own. Further ones share one bucket.
const ADDRESSES_MAX: usize = 10_000;
const SECOND: u64 = 1_000_000_000;

/// Allows each client address a number of requests a second, and as many at once. IPv6 addresses of one /64
/// network count as one. Clones share the count.
#[derive(Clone)]
pub struct RateLimit(Arc<Inner>);

struct Inner {
    now: Box<dyn Fn() -> Instant + Send + Sync>,
    /// The time that refills one request, in nanoseconds.
    interval: u64,
    full_at: Mutex<BTreeMap<Option<IpAddr>, u64>>,
}

impl RateLimit {
    /// Allows `per_second` requests a second, by the clock of `runtime`.
    pub fn new(runtime: impl Runtime, per_second: NonZeroU32) -> Self {
        let interval = SECOND / u64::from(per_second.get());
        let now = Box::new(move || runtime.now());
        Self(Arc::new(Inner { now, interval: interval.max(1), full_at: Mutex::default() }))
    }

    /// Counts a request of `address`.
    ///
    /// # Errors
    ///
    /// The time after which one more request is allowed, if this one is not.
    pub(super) fn admit(&self, address: Option<IpAddr>) -> Result<(), Duration> {
        let now = (self.0.now)().as_nanos();
        let mut full_at = self.0.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let mut address = address.map(network);
        if full_at.len() >= ADDRESSES_MAX && !full_at.contains_key(&address) {
            // A full bucket is as good as none.
            full_at.retain(|_, at| *at > now);
            if full_at.len() >= ADDRESSES_MAX {
                address = None;
            }
        }
        let at = full_at.entry(address).or_insert(now);
        let next = (*at).max(now) + self.0.interval;
        // An empty bucket is full after a second. A rate of one a second has room for one request.
        let earliest = next.saturating_sub(SECOND.max(self.0.interval));
        if earliest > now {
            return Err(Duration::from_nanos(earliest - now));
        }
        *at = next;
        Ok(())
    }
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("interval_ns", &self.0.interval).finish_non_exhaustive()
    }
}

/// Returns the address that stands for all those that one client may have.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            [a, b, c, d, 0, 0, 0, 0].into()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A limit on a clock that the test sets.
    fn limit(per_second: u32) -> (RateLimit, Arc<AtomicU64>) {
        let clock = Arc::new(AtomicU64::new(7 * SECOND));
        let now = clock.clone();
        let inner = Inner {
            now: Box::new(move || Instant::from_nanos(now.load(Ordering::Relaxed))),
            interval: SECOND / u64::from(per_second),
            full_at: Mutex::default(),
        };
        (RateLimit(Arc::new(inner)), clock)
    }

    fn v4(number: u32) -> Option<IpAddr> {
        Some(IpAddr::V4(number.into()))
    }

    fn admitted(limit: &RateLimit, address: Option<IpAddr>, requests: usize) -> usize {
        (0..requests).filter(|_| limit.admit(address).is_ok()).count()
    }

    #[test]
    fn a_bucket_holds_one_second_and_refills_at_the_rate() {
        let (limit, clock) = limit(4);
        assert_eq!(admitted(&limit, v4(1), 9), 4);
        assert_eq!(limit.admit(v4(1)), Err(Duration::from_millis(250)));
        assert_eq!(admitted(&limit, v4(2), 9), 4, "another address has its own");
        clock.fetch_add(SECOND / 2, Ordering::Relaxed);
        assert_eq!(admitted(&limit, v4(1), 9), 2);
        clock.fetch_add(60 * SECOND, Ordering::Relaxed);
        assert_eq!(admitted(&limit, v4(1), 9), 4, "it holds no more than it began with");
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let (limit, _) = limit(2);
        let address = |text: &str| Some(text.parse().unwrap());
        assert_eq!(admitted(&limit, address("2001:db8::1"), 1), 1);
        assert_eq!(admitted(&limit, address("2001:db8::ffff:2"), 2), 1);
        assert_eq!(admitted(&limit, address("2001:db8:0:1::1"), 2), 2, "the next network");
        assert_eq!(admitted(&limit, address("::ffff:10.0.0.1"), 1), 1);
        assert_eq!(admitted(&limit, address("10.0.0.1"), 2), 1, "the same host");
    }

    #[test]
    fn the_number_of_buckets_is_limited() {
        let (limit, clock) = limit(1);
        let many = ADDRESSES_MAX as u32;
        let all = (0..2 * many).filter(|number| limit.admit(v4(*number)).is_ok()).count();
        assert_eq!(all, ADDRESSES_MAX + 1, "the others share one bucket");
        assert_eq!(limit.0.full_at.lock().unwrap().len(), ADDRESSES_MAX + 1);
        clock.fetch_add(2 * SECOND, Ordering::Relaxed);
        assert!(limit.admit(v4(3 * many)).is_ok());
        assert_eq!(limit.0.full_at.lock().unwrap().len(), 1, "full buckets are dropped");
    }
}
