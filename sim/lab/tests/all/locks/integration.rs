//! The lock library on a simulated Redis: the effect of each operation on the server, and its answer.
//!
//! The list of tests is from `distributed-coordination-part-018`, section 31, "Integration Tests with Redis".

use std::time::Duration;

use super::counts::Counts;
use super::lab::{LATENCY, ROUND_TRIP, in_lab, key};
use dlock::redis::{Redis, RedisOptions};
use dlock::{Lock, LostError, Options, OptionsError, Released, RenewError, TryAcquireError};
use sim::faults::Pause;

const TTL: Duration = Duration::from_secs(2);
/// The longest time by which a server drops a key after its TTL.
const GRACE: Duration = Duration::from_millis(150);

#[test]
fn a_free_lock_is_acquired() {
    in_lab(1, |lab| async move {
        let a = lab.member(0, TTL);
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        assert!(handle.is_valid());
        assert!(handle.remaining() <= TTL - ROUND_TRIP, "the round trip is subtracted");
        assert_eq!(handle.fence().as_u64(), 1);
        assert_eq!(lab.owner().await.as_deref(), Some(handle.owner().as_str()));
        let ttl: u64 = lab.ask(redis::cmd("PTTL").arg(key().owner_key())).await;
        assert!(ttl > 1900 && ttl <= 2000, "{ttl} ms");
        let counter_ttl: i64 = lab.ask(redis::cmd("PTTL").arg(key().fence_key())).await;
        assert_eq!(counter_ttl, -1, "the counter outlives every lease");
        handle.leave();
    });
}

#[test]
fn a_refusal_has_the_holder_s_remaining_time() {
    in_lab(2, |lab| async move {
        let (a, b) = lab.pair(TTL);
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        lab.sleep(Duration::from_millis(500)).await;
        let error = b.lock.try_acquire(&key()).await.unwrap_err();
        let TryAcquireError::Taken { retry_after: Some(left) } = error else { panic!("{error}") };
        assert!(left > Duration::from_millis(1450) && left < Duration::from_millis(1500), "{left:?}");
        assert_eq!(lab.owner().await.as_deref(), Some(handle.owner().as_str()));
        assert!(handle.is_valid());
        handle.leave();
    });
}

#[test]
fn the_owner_releases_its_lock() {
    in_lab(2, |lab| async move {
        let (a, b) = lab.pair(TTL);
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        assert_eq!(handle.release().await, Ok(Released::Done));
        assert_eq!(lab.owner().await, None);
        let next = b.lock.try_acquire(&key()).await.unwrap();
        assert_eq!(next.fence().as_u64(), 2);
        next.leave();
    });
}

#[test]
fn a_release_by_a_non_owner_changes_nothing() {
    in_lab(2, |lab| async move {
        let counts = Counts::default();
        let _counting = metrics::set_default_local_recorder(&counts);
        let (a, b) = lab.pair(TTL);
        let late = a.lock.try_acquire(&key()).await.unwrap();
        lab.sleep(TTL + GRACE).await;
        let holder = b.lock.try_acquire(&key()).await.unwrap();
        assert_eq!(late.release().await, Ok(Released::NotOwner));
        assert_eq!(lab.owner().await.as_deref(), Some(holder.owner().as_str()));
        assert!(holder.is_valid());
        assert_eq!(holder.release().await, Ok(Released::Done));
        assert_eq!(counts.of("release_by_non_owner_total"), 1);
    });
}

#[test]
fn the_owner_extends_its_lease_to_the_full_ttl() {
    in_lab(1, |lab| async move {
        let a = lab.member(0, TTL);
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        lab.sleep(Duration::from_millis(1500)).await;
        let before = handle.remaining();
        handle.renew().await.unwrap();
        assert!(handle.remaining() > before + Duration::from_secs(1), "{:?}", handle.remaining());
        let ttl: u64 = lab.ask(redis::cmd("PTTL").arg(key().owner_key())).await;
        assert!(ttl > 1900, "{ttl} ms");
        // By now the lease without the renewal would be over.
        lab.sleep(Duration::from_millis(1500)).await;
        assert!(handle.is_valid());
        assert_eq!(handle.fence().as_u64(), 1, "a renewal is no new grant");
        assert_eq!(handle.release().await, Ok(Released::Done));
    });
}

#[test]
fn a_renewal_by_a_non_owner_reports_the_loss() {
    in_lab(2, |lab| async move {
        let (a, b) = lab.pair(TTL);
        let loser = a.lock.try_acquire(&key()).await.unwrap();
        lab.server().evict(key().owner_key().as_bytes());
        let holder = b.lock.try_acquire(&key()).await.unwrap();
        lab.sleep(Duration::from_secs(1)).await;
        assert!(loser.is_valid(), "it can't know of the eviction");
        assert_eq!(loser.renew().await, Err(RenewError::Lost(LostError::NotOwner)));
        assert!(!loser.is_valid());
        let ttl: u64 = lab.ask(redis::cmd("PTTL").arg(key().owner_key())).await;
        assert!(ttl < 1000, "the other lease was extended: {ttl} ms");
        assert_eq!(lab.owner().await.as_deref(), Some(holder.owner().as_str()));
        drop((loser, holder));
    });
}

#[test]
fn a_renewal_of_an_expired_lease_changes_nothing() {
    in_lab(1, |lab| async move {
        let a = lab.member(0, TTL);
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        lab.sleep(TTL + GRACE).await;
        assert_eq!(handle.renew().await, Err(RenewError::Lost(LostError::Expired)));
        assert_eq!(lab.owner().await, None);
        assert_eq!(lab.counter().await, Some(1));
        handle.leave();
    });
}

#[test]
fn a_lease_ends_for_its_holder_before_the_server() {
    in_lab(2, |lab| async move {
        let (a, b) = lab.pair(TTL);
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        let (runtime, until) = (a.runtime.clone(), handle.valid_until());
        dlock::Runtime::sleep_until(&runtime, until).await;
        assert!(!handle.is_valid());
        assert!(lab.owner().await.is_some(), "the holder must be the first to stop");
        assert!(b.lock.try_acquire(&key()).await.is_err());
        lab.sleep(GRACE * 2).await;
        let next = b.lock.try_acquire(&key()).await.unwrap();
        assert_eq!(next.fence().as_u64(), 2);
        handle.leave();
        next.leave();
    });
}

#[test]
fn fencing_tokens_grow_with_each_acquisition_by_any_client() {
    in_lab(3, |lab| async move {
        let mut tokens = Vec::new();
        for round in 0..9 {
            let handle = lab.member(round % 3, TTL).lock.try_acquire(&key()).await.unwrap();
            tokens.push(handle.fence().as_u64());
            // The counter survives both a release and an expiry.
            if round % 2 == 0 {
                handle.release().await.unwrap();
            } else {
                handle.leave();
                lab.sleep(TTL + GRACE).await;
            }
        }
        assert_eq!(tokens, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    });
}

#[test]
fn a_failed_acquire_does_not_increment_the_counter() {
    in_lab(2, |lab| async move {
        let (a, b) = lab.pair(TTL);
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        for _ in 0..5 {
            b.lock.try_acquire(&key()).await.unwrap_err();
        }
        b.lock.acquire(&key(), b.within(Duration::from_secs(1))).await.unwrap_err();
        assert_eq!(lab.counter().await, Some(1));
        handle.leave();
    });
}

#[test]
fn a_release_after_a_pause_past_the_ttl_changes_nothing() {
    in_lab(1, |lab| async move {
        let a = lab.member(0, TTL);
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        let pause = lab.control.strike(Pause::of(a.name()));
        lab.sleep(TTL + GRACE).await;
        pause.heal();
        assert_eq!(handle.release().await, Ok(Released::NotOwner));
        assert_eq!(lab.counter().await, Some(1));
    });
}

#[test]
fn a_ttl_within_the_drift_margin_is_refused() {
    in_lab(1, |lab| async move {
        let a = lab.member(0, TTL);
        let redis = Redis::new(a.runtime.clone(), "redis:6379", RedisOptions::default()).unwrap();
        for millis in [0, 1, 2] {
            let error = Lock::new(redis.clone(), Options::new(Duration::from_millis(millis))).unwrap_err();
            assert!(
                matches!(error, OptionsError::TtlZero { .. } | OptionsError::TtlTooShort { .. }),
                "{error}"
            );
        }
        lab.sleep(LATENCY * 10).await;
        assert_eq!(lab.executed(), 0);
        assert!(Lock::new(redis, Options::new(Duration::from_millis(3))).is_ok());
    });
}
