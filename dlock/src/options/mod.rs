//! The options of a lock, checked before anything is sent.

mod error;

use std::time::Duration;

use dlock_runtime::Backoff;

pub use self::error::OptionsError;

use crate::lease::{DriftMargin, Terms};

/// The longest TTL: a lease of a year frees nothing, and much longer ones overflow a server's clock.
const TTL_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The most permits of a lock. A grant names all that are live.
const PERMITS_MAX: u32 = 1000;

/// The most waiters to which a queue can be limited. Each acquire reads those ahead of it.
const WAITERS_MAX: u32 = 10_000;

/// The longest name of a process in owner tokens, in bytes.
const INSTANCE_BYTES_MAX: usize = 64;

/// The options of a [`crate::Lock`]. Begin with [`Options::new`] and change what must differ.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use dlock::{Backoff, Options};
///
/// let mut options = Options::new(Duration::from_secs(30));
/// assert_eq!(options.request_timeout, Duration::from_secs(1));
/// // The name of this process in logs, and shorter waits between two attempts.
/// options.instance = Some("worker-4".to_owned());
/// options.backoff = Backoff { base: Duration::from_millis(10), max: Duration::from_millis(500) };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The time for which a lease lives on the server, unless renewed. Servers count in milliseconds: the
    /// rest is cut off.
    pub ttl: Duration,
    /// The part of the TTL that is not trusted, since clocks differ.
    pub drift: DriftMargin,
    /// The name of this process in owner tokens, for readers of logs. Without it a token is only random
    /// digits.
    pub instance: Option<String>,
    /// The wait between attempts to acquire.
    pub backoff: Backoff,
    /// The longest time for one call to the server, connecting included. After it the connection is retired;
    /// on etcd, where others share it, only if no call has been answered for a while.
    /// By default a quarter of the TTL, at least 50 ms and at most 1 s.
    pub request_timeout: Duration,
    /// A grant must arrive with more validity left than this. A later one is released, and is an
    /// [`AcquireError::Late`](crate::AcquireError::Late). By default zero.
    pub min_validity: Duration,
    /// The remaining validity from which on [`Handle::low`](crate::Handle::low) tells the work to come to an
    /// end. Less than the validity of a whole TTL. By default, for `None`, a sixth of the lease's TTL.
    pub low_validity: Option<Duration>,
    /// The number of leases that may live on a key at once: 1 to 1,000, by default 1. More make the lock a
    /// semaphore, on Redis, etcd and ZooKeeper.
    ///
    /// All who share a key must give the same number: each acquire counts with its own. On Redis a semaphore
    /// and a mutex on one key don't know of each other. etcd and ZooKeeper serve permits in the order of the
    /// requests, Redis with [`Options::waiters_max`] alone. A resource that checks tokens also needs
    /// [`Handle::beside`], since a permit may live longer than newer ones.
    ///
    /// [`Handle::beside`]: crate::Handle::beside
    pub permits: u32,
    /// True if the lock is one for readers and a writer, on Redis, etcd and ZooKeeper: any number of leases
    /// for reading ([`Lock::acquire_shared`](crate::Lock::acquire_shared)), or one for writing, which every
    /// other acquire requests. By default false, a mutex. Not together with several permits.
    ///
    /// All who share a key must give the same: on Redis a mutex does not know of readers. A waiting writer
    /// bars new readers, so that it is served however many come. etcd and ZooKeeper serve in the order of the
    /// requests. On Redis writers that never stop coming can keep readers waiting. A resource that checks the
    /// tokens of reads also needs [`Handle::beside`](crate::Handle::beside), as that of a semaphore does.
    pub readers: bool,
    /// The most acquires that may wait for a key at once, on Redis, etcd and ZooKeeper: 1 to 10,000. One more
    /// is refused at once ([`AcquireError::QueueFull`](crate::AcquireError::QueueFull)), instead of at its
    /// deadline. By default, for `None`, any number may wait. Not together with readers.
    ///
    /// All who share a key must give it, or none: on Redis an acquire without it does not know of the queue,
    /// and goes first. With it Redis serves in the order of the requests, too. A waiter that died is in the
    /// queue until its session ends, or on Redis for `2 × (backoff.max + request_timeout)`. On etcd and
    /// ZooKeeper an acquire that is being refused counts for those which come right behind it.
    pub waiters_max: Option<u32>,
}

impl Options {
    /// Returns the usual options, with leases of `ttl`.
    pub fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            drift: DriftMargin::default(),
            instance: None,
            backoff: Backoff::default(),
            request_timeout: (ttl / 4).clamp(Duration::from_millis(50), Duration::from_secs(1)),
            min_validity: Duration::ZERO,
            low_validity: None,
            permits: 1,
            readers: false,
            waiters_max: None,
        }
    }

    /// Returns the remaining validity at which a lease of `ttl` is low.
    pub(crate) fn low_validity_of(&self, ttl: Duration) -> Duration {
        self.low_validity.unwrap_or(ttl / 6)
    }

    /// Returns the terms of a lease with the TTL of these options, if they are valid.
    pub(crate) fn terms(&self) -> Result<Terms, OptionsError> {
        self.check_instance()?;
        self.check_waits()?;
        if !(1..=PERMITS_MAX).contains(&self.permits) {
            return Err(OptionsError::Permits { permits: self.permits, max: PERMITS_MAX });
        }
        if self.readers && self.permits > 1 {
            return Err(OptionsError::ReadersWithPermits { permits: self.permits });
        }
        self.check_queue()?;
        self.terms_of(self.ttl)
    }

    /// Returns the terms of a lease of `given`, if it can be.
    pub(crate) fn terms_of(&self, given: Duration) -> Result<Terms, OptionsError> {
        let ttl = Duration::from_millis(u64::try_from(given.as_millis()).unwrap_or(u64::MAX));
        if ttl.is_zero() {
            return Err(OptionsError::TtlZero { ttl: given });
        }
        if ttl > TTL_MAX {
            return Err(OptionsError::TtlTooLong { ttl: given, max: TTL_MAX });
        }
        let drift = self.drift.of(ttl);
        if drift >= ttl {
            return Err(OptionsError::TtlTooShort { ttl: given, drift });
        }
        if self.min_validity >= ttl - drift {
            let (asked, most) = (self.min_validity, ttl - drift);
            return Err(OptionsError::MinValidity { asked, most });
        }
        if let Some(asked) = self.low_validity.filter(|asked| *asked >= ttl - drift) {
            return Err(OptionsError::LowValidity { asked, most: ttl - drift });
        }
        Ok(Terms { ttl, drift })
    }

    fn check_instance(&self) -> Result<(), OptionsError> {
        let Some(name) = &self.instance else { return Ok(()) };
        let bytes = name.len();
        if bytes == 0 || bytes > INSTANCE_BYTES_MAX || name.chars().any(char::is_control) {
            return Err(OptionsError::Instance { bytes, max: INSTANCE_BYTES_MAX });
        }
        Ok(())
    }

    fn check_queue(&self) -> Result<(), OptionsError> {
        let Some(waiters) = self.waiters_max else { return Ok(()) };
        if !(1..=WAITERS_MAX).contains(&waiters) {
            return Err(OptionsError::Waiters { waiters, max: WAITERS_MAX });
        }
        if self.readers { Err(OptionsError::ReadersWithQueue) } else { Ok(()) }
    }

    fn check_waits(&self) -> Result<(), OptionsError> {
        if self.request_timeout.is_zero() {
            return Err(OptionsError::RequestTimeoutZero);
        }
        let Backoff { base, max } = self.backoff;
        if base.is_zero() || max < base {
            return Err(OptionsError::Backoff { base, max });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(change: impl FnOnce(&mut Options)) -> Result<Terms, OptionsError> {
        let mut options = Options::new(Duration::from_secs(2));
        change(&mut options);
        options.terms()
    }

    #[test]
    fn the_usual_options_are_fine() {
        let terms = options(|_| ()).unwrap();
        assert_eq!(terms.ttl, Duration::from_secs(2));
        assert_eq!(terms.drift, Duration::from_millis(22));
    }

    #[test]
    fn fractions_of_a_millisecond_are_cut_off() {
        let terms = options(|options| options.ttl = Duration::from_micros(1_500_999)).unwrap();
        assert_eq!(terms.ttl, Duration::from_millis(1500));
    }

    #[test]
    fn ttls_that_no_lease_can_have_are_refused() {
        let ttl = |ttl| options(move |options| options.ttl = ttl).unwrap_err();
        assert!(matches!(ttl(Duration::ZERO), OptionsError::TtlZero { .. }));
        assert!(matches!(ttl(Duration::from_nanos(999_999)), OptionsError::TtlZero { .. }));
        assert!(matches!(ttl(Duration::from_millis(2)), OptionsError::TtlTooShort { .. }));
        assert!(matches!(ttl(Duration::MAX), OptionsError::TtlTooLong { .. }));
    }

    #[test]
    fn a_margin_that_leaves_nothing_is_refused() {
        let error = options(|options| options.drift.per_mille = 1000).unwrap_err();
        assert!(error.to_string().contains("longer TTL or a smaller margin"), "{error}");
        assert!(options(|options| options.drift.constant = Duration::MAX).is_err());
    }

    #[test]
    fn a_minimum_validity_that_no_grant_can_have_is_refused() {
        let error = options(|options| options.min_validity = Duration::from_millis(1978)).unwrap_err();
        assert!(matches!(error, OptionsError::MinValidity { .. }), "{error}");
        assert!(options(|options| options.min_validity = Duration::from_millis(1977)).is_ok());
    }

    #[test]
    fn a_low_validity_that_every_grant_has_is_refused() {
        let error = options(|options| options.low_validity = Some(Duration::from_millis(1978))).unwrap_err();
        assert!(matches!(error, OptionsError::LowValidity { .. }), "{error}");
        assert!(options(|options| options.low_validity = Some(Duration::from_millis(1977))).is_ok());
    }

    #[test]
    fn waits_that_spin_or_never_end_are_refused() {
        assert!(options(|options| options.backoff.base = Duration::ZERO).is_err());
        assert!(options(|options| options.backoff.max = Duration::from_millis(49)).is_err());
        assert!(options(|options| options.request_timeout = Duration::ZERO).is_err());
    }

    #[test]
    fn no_lock_has_no_permit_or_very_many() {
        for permits in [0, 1001] {
            let error = options(|options| options.permits = permits).unwrap_err();
            assert!(matches!(error, OptionsError::Permits { max: 1000, .. }), "{error}");
        }
        assert!(options(|options| options.permits = 1000).is_ok());
    }

    #[test]
    fn a_lock_with_readers_has_no_permits() {
        assert!(options(|options| options.readers = true).is_ok());
        let both = |options: &mut Options| (options.readers, options.permits) = (true, 2);
        let error = options(both).unwrap_err();
        assert_eq!(error, OptionsError::ReadersWithPermits { permits: 2 });
    }

    #[test]
    fn a_limit_of_waiters_is_one_that_a_queue_can_have() {
        let limited = |waiters| options(move |options| options.waiters_max = Some(waiters));
        for waiters in [0, 10_001] {
            let error = limited(waiters).unwrap_err();
            assert_eq!(error, OptionsError::Waiters { waiters, max: 10_000 });
        }
        assert!(limited(1).is_ok() && limited(10_000).is_ok());
        let both = |options: &mut Options| (options.readers, options.waiters_max) = (true, Some(5));
        assert_eq!(options(both).unwrap_err(), OptionsError::ReadersWithQueue);
    }

    #[test]
    fn names_that_would_blur_an_owner_token_are_refused() {
        for name in ["", "two\nlines", &"x".repeat(65)] {
            let error = options(|options| options.instance = Some(name.into())).unwrap_err();
            assert!(matches!(error, OptionsError::Instance { .. }));
        }
        assert!(options(|options| options.instance = Some("host-4:17".into())).is_ok());
    }
}
