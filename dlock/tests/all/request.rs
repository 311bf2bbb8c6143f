//! The TTL of one acquire, and of one renewal.

use std::future::pending;
use std::time::Duration;

use crate::support::backend::{Fake, InSession, Order};
use crate::support::{World, key, ms};
use dlock::{
    AcquireError, AnyBackend, BackendError, Cap, Handle, Instant, Lock, LostError, Options, OptionsError,
    Released, RenewError, Runtime, TryAcquireError,
};
use futures_util::future::join;

const LONG: Cap = Cap(Duration::from_secs(3600));

/// Returns a lock whose leases live for 1.2 s.
fn lock() -> (World, Fake, Lock<Fake>) {
    let world = World::default();
    let fake = Fake::new(&world);
    let lock = Lock::new(fake.clone(), Options::new(ms(1200))).unwrap();
    (world, fake, lock)
}

/// Returns a held lease of 1.2 s, granted at 0.
fn held() -> (World, Fake, Handle<Fake>) {
    let (world, fake, lock) = lock();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    (world, fake, handle)
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(0) + ms(millis)
}

#[test]
fn a_request_has_a_ttl_of_its_own() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::Taken(None)]);
    let handle = world.run(lock.request(&key()).ttl(ms(6000)).acquire(at(5000))).unwrap();
    let calls = fake.calls("acquire");
    assert!(calls.iter().all(|call| call.ttl == ms(6000)), "{calls:?}");
    assert_eq!(handle.ttl(), ms(6000));
    assert_eq!(handle.valid_until(), calls[1].at + ms(6000 - 62));
    let other = world.run(lock.try_acquire(&key())).unwrap();
    assert_eq!(other.ttl(), ms(1200), "the TTL of the options stays");
}

#[test]
fn renewals_keep_the_ttl_of_their_request() {
    let (world, fake, lock) = lock();
    let handle = world.run(lock.request(&key()).ttl(ms(6000)).try_acquire()).unwrap();
    world.run(handle.while_held(LONG, world.sleep_until(at(5000)))).unwrap();
    let calls: Vec<_> = fake.calls("renew").iter().map(|call| (call.at, call.ttl)).collect();
    assert_eq!(calls, [(at(2000), ms(6000)), (at(4000), ms(6000))]);
    assert_eq!(handle.valid_until(), at(4000 + 6000 - 62));
}

#[test]
fn a_ttl_that_no_lease_can_have_is_refused_before_any_request() {
    let (world, fake, lock) = lock();
    let too_short = OptionsError::TtlZero { ttl: Duration::ZERO };
    let key = key();
    let request = || lock.request(&key).ttl(Duration::ZERO);
    assert_eq!(world.run(request().acquire(at(99))).unwrap_err(), AcquireError::Ttl(too_short.clone()));
    assert_eq!(world.run(request().try_acquire()).unwrap_err(), TryAcquireError::Ttl(too_short.clone()));
    assert!(fake.calls("acquire").is_empty());
    let handle = world.run(lock.try_acquire(&key)).unwrap();
    assert_eq!(world.run(handle.renew_for(Duration::ZERO)).unwrap_err(), RenewError::Ttl(too_short));
    assert_eq!((handle.ttl(), handle.valid_until()), (ms(1200), at(1186)));
    assert!(fake.calls("renew").is_empty());
}

#[test]
fn a_ttl_above_the_session_is_refused() {
    let world = World::default();
    let fake = Fake::new(&world);
    let lock = Lock::new(InSession(fake.clone()), Options::new(ms(1200))).unwrap();
    let error = world.run(lock.request(&key()).ttl(ms(60_001)).try_acquire()).unwrap_err();
    let above = OptionsError::TtlAboveSession { ttl: ms(60_001), session: ms(60_000) };
    assert_eq!(error, TryAcquireError::Ttl(above.clone()));
    let handle = world.run(lock.request(&key()).ttl(ms(60_000)).try_acquire()).unwrap();
    assert_eq!(world.run(handle.renew_for(ms(60_001))).unwrap_err(), RenewError::Ttl(above));
    assert!(fake.calls("renew").is_empty());
}

#[test]
fn a_renewal_with_a_longer_ttl_lengthens_the_lease() {
    let (world, fake, handle) = held();
    world.pass(ms(100));
    world.run(handle.renew_for(ms(6000))).unwrap();
    assert_eq!((handle.ttl(), handle.valid_until()), (ms(6000), at(100 + 6000 - 62)));
    world.run(handle.renew()).unwrap();
    let calls = fake.calls("renew");
    assert!(calls.iter().all(|call| call.ttl == ms(6000)), "later renewals keep it: {calls:?}");
}

#[test]
fn a_renewal_with_a_longer_ttl_and_no_answer_changes_no_validity() {
    let (world, fake, handle) = held();
    fake.on_renew([Order::LoseAnswer]);
    assert!(matches!(world.run(handle.renew_for(ms(6000))).unwrap_err(), RenewError::Backend(_)));
    assert_eq!(handle.valid_until(), at(1186));
    // The server may have lengthened the lease, so the release goes on for that long.
    fake.on_release(std::iter::repeat_n(Order::LoseAnswer, 99));
    let error = world.run(handle.release()).unwrap_err();
    assert!(error.to_string().contains("ends by itself in 6s"), "{error}");
}

#[test]
fn a_renewal_with_a_shorter_ttl_shortens_the_validity_before_its_answer() {
    let (world, fake, handle) = held();
    fake.on_renew([Order::Fail(BackendError::Disconnected { reason: "reset".into() })]);
    let lost = handle.lost();
    let renewal = async {
        assert!(matches!(handle.renew_for(ms(100)).await.unwrap_err(), RenewError::Backend(_)));
        assert_eq!(handle.valid_until(), at(97));
    };
    world.run(join(lost, renewal));
    assert_eq!(world.now(), at(97));
}

#[test]
fn a_shorter_ttl_ends_the_work_at_its_own_end() {
    let (world, fake, handle) = held();
    fake.on_renew(std::iter::repeat_n(Order::LoseAnswer, 99));
    let (shortens, wakes) = (&handle, world.clone());
    let work = async move {
        wakes.sleep_until(at(50)).await;
        shortens.renew_for(ms(100)).await.unwrap_err();
        pending::<()>().await
    };
    assert_eq!(world.run(handle.while_held(LONG, work)).unwrap_err(), LostError::Expired);
    assert_eq!(world.now(), at(50 + 97));
}

#[test]
fn a_watchdog_renews_at_a_third_of_a_shorter_ttl() {
    let (world, fake, handle) = held();
    let (shortens, wakes) = (&handle, world.clone());
    let work = async move {
        wakes.sleep_until(at(50)).await;
        shortens.renew_for(ms(300)).await.unwrap();
        wakes.sleep_until(at(300)).await;
    };
    world.run(handle.while_held(LONG, work)).unwrap();
    let times: Vec<_> = fake.calls("renew").iter().map(|call| call.at).collect();
    assert_eq!(times, [50, 150, 250].map(at));
}

#[test]
fn a_shorter_renewal_that_may_arrive_late_bounds_the_trust_in_longer_ones() {
    let (world, fake, handle) = held();
    fake.on_renew([Order::LoseAnswer]);
    assert!(matches!(world.run(handle.renew_for(ms(900))).unwrap_err(), RenewError::Backend(_)));
    let now = world.now();
    world.run(handle.renew_for(ms(6000))).unwrap();
    assert_eq!((handle.ttl(), handle.valid_until()), (ms(6000), now + ms(900 - 11)));
    assert_eq!(fake.calls("renew")[1].ttl, ms(6000));
}

#[test]
fn any_backend_passes_the_ttl_on() {
    let world = World::default();
    let fake = Fake::new(&world);
    let lock = Lock::new(AnyBackend::new(fake.clone()), Options::new(ms(1200))).unwrap();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    world.run(handle.renew_for(ms(6000))).unwrap();
    assert_eq!(fake.calls("renew")[0].ttl, ms(6000));
    assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
}
