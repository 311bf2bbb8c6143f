//! Acquiring: waiting, deadlines, lost answers, late grants.

use std::time::Duration;

use crate::support::backend::{Fake, Order};
use crate::support::{World, key, ms};
use dlock::{AcquireError, BackendError, Lock, Options, OptionsError, Runtime, TryAcquireError};

fn lock(world: &World) -> (Lock<Fake>, Fake) {
    let fake = Fake::new(world);
    (Lock::new(fake.clone(), Options::new(ms(1000))).unwrap(), fake)
}

#[test]
fn an_invalid_ttl_is_refused_before_any_request() {
    let world = World::default();
    let refused = |ttl| Lock::new(Fake::new(&world), Options::new(ttl)).unwrap_err();
    assert!(matches!(refused(Duration::ZERO), OptionsError::TtlZero { .. }));
    assert!(matches!(refused(Duration::from_micros(999)), OptionsError::TtlZero { .. }));
    assert!(matches!(refused(ms(2)), OptionsError::TtlTooShort { .. }));
    assert!(Lock::new(Fake::new(&world), Options::new(ms(3))).is_ok());
}

#[test]
fn a_deadline_in_the_past_sends_nothing() {
    let world = World::default();
    let (lock, fake) = lock(&world);
    let result = world.run(lock.acquire(&key(), world.now()));
    assert_eq!(result.unwrap_err(), AcquireError::DeadlinePassed);
    assert!(fake.calls("acquire").is_empty());
}

#[test]
fn a_waiter_retries_when_the_holder_s_lease_ends() {
    let world = World::default();
    let (lock, fake) = lock(&world);
    let left = ms(20);
    fake.on_acquire([Order::Taken(Some(left))]);
    let handle = world.run(lock.acquire(&key(), world.now() + ms(500))).unwrap();
    let calls = fake.calls("acquire");
    assert!((left..left + ms(5)).contains(&calls[1].at.saturating_since(calls[0].at)));
    assert_eq!(handle.owner().as_str(), calls[0].owner);
    assert_eq!(handle.valid_until(), calls[1].at + ms(1000) - ms(12));
}

#[test]
fn a_handle_knows_its_ttl_and_the_time_of_its_request() {
    let world = World::default();
    let (lock, fake) = lock(&world);
    world.pass(ms(30));
    fake.on_acquire([Order::After(ms(40))]);
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    assert_eq!(handle.ttl(), ms(1000));
    assert_eq!(handle.acquired_at(), fake.calls("acquire")[0].at);
    assert_eq!(world.now(), handle.acquired_at() + ms(40));
}

#[test]
fn a_refusal_without_a_time_is_retried_after_the_backoff() {
    let world = World::default();
    let (lock, fake) = lock(&world);
    fake.on_acquire(std::iter::repeat_n(Order::Taken(None), 9));
    world.run(lock.acquire(&key(), world.now() + ms(60_000))).unwrap();
    let calls = fake.calls("acquire");
    for (retry, pair) in calls.windows(2).enumerate() {
        let wait = pair[1].at.saturating_since(pair[0].at);
        let longest = (ms(50) * (1 << retry)).min(ms(2000));
        assert!((longest / 2..=longest).contains(&wait), "retry {retry} after {wait:?}");
    }
}

#[test]
fn contention_ends_exactly_at_the_deadline() {
    let world = World::default();
    let (lock, fake) = lock(&world);
    fake.on_acquire(std::iter::repeat_n(Order::Taken(Some(ms(5000))), 99));
    let deadline = world.now() + ms(777);
    let error = world.run(lock.acquire(&key(), deadline)).unwrap_err();
    assert_eq!(error, AcquireError::Taken { retry_after: Some(ms(5000)) });
    assert_eq!(world.now(), deadline);
    world.pass(ms(3000));
    assert!(fake.calls("release").is_empty(), "nothing was granted, so there is nothing to release");
}

#[test]
fn a_deadline_during_a_call_reports_the_earlier_obstacle() {
    let world = World::default();
    let (lock, fake) = lock(&world);
    fake.on_acquire([Order::Taken(None), Order::LoseAnswer]);
    let deadline = world.now() + ms(90);
    let error = world.run(lock.acquire(&key(), deadline)).unwrap_err();
    assert_eq!(error, AcquireError::Taken { retry_after: None });
    assert_eq!(world.now(), deadline);
}

#[test]
fn a_retry_after_a_lost_answer_keeps_the_owner_token() {
    let world = World::default();
    let (lock, fake) = lock(&world);
    fake.on_acquire([Order::LoseAnswer]);
    let handle = world.run(lock.acquire(&key(), world.now() + ms(5000))).unwrap();
    let calls = fake.calls("acquire");
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].owner, calls[1].owner);
    assert_eq!(handle.owner().as_str(), calls[0].owner);
}

#[test]
fn a_timeout_on_a_silent_server_releases_in_the_background() {
    let world = World::default();
    let (lock, fake) = lock(&world);
    fake.on_acquire(std::iter::repeat_n(Order::LoseAnswer, 9));
    let deadline = world.now() + ms(400);
    let error = world.run(lock.acquire(&key(), deadline)).unwrap_err();
    assert_eq!(error, AcquireError::Unavailable(BackendError::NoAnswer));
    assert_eq!(world.now(), deadline);
    world.pass(ms(1));
    assert_eq!(fake.calls("release")[0].owner, fake.calls("acquire")[0].owner);
}

#[test]
fn a_late_grant_is_released_and_retried_with_another_token() {
    let world = World::default();
    let fake = Fake::new(&world);
    let mut options = Options::new(ms(100));
    options.request_timeout = ms(500);
    let lock = Lock::new(fake.clone(), options).unwrap();
    fake.on_acquire([Order::After(ms(97))]);
    let handle = world.run(lock.acquire(&key(), world.now() + ms(5000))).unwrap();
    let (acquires, releases) = (fake.calls("acquire"), fake.calls("release"));
    assert_eq!(releases.len(), 1);
    assert_eq!(releases[0].owner, acquires[0].owner);
    assert_ne!(handle.owner().as_str(), acquires[0].owner, "the release may arrive late");
    assert_eq!(handle.fence().as_u64(), 2);
}

#[test]
fn a_permanent_refusal_ends_the_wait() {
    let world = World::default();
    let (lock, fake) = lock(&world);
    let refusal = BackendError::Refused { message: "NOAUTH".into(), passing: false };
    fake.on_acquire([Order::Fail(refusal.clone())]);
    let error = world.run(lock.acquire(&key(), world.now() + ms(5000))).unwrap_err();
    assert_eq!(error, AcquireError::Refused(refusal));
    assert_eq!(fake.calls("acquire").len(), 1);
}

#[test]
fn try_acquire_sends_one_request() {
    let world = World::default();
    let (lock, fake) = lock(&world);
    fake.on_acquire([Order::Taken(Some(ms(70)))]);
    let error = world.run(lock.try_acquire(&key())).unwrap_err();
    assert_eq!(error, TryAcquireError::Taken { retry_after: Some(ms(70)) });
    assert_eq!(fake.calls("acquire").len(), 1);
    assert!(world.run(lock.try_acquire(&key())).unwrap().is_valid());
}

#[test]
fn owner_tokens_differ() {
    let world = World::default();
    let (lock, _) = lock(&world);
    let owners: std::collections::BTreeSet<_> =
        (0..100).map(|_| world.run(lock.try_acquire(&key())).unwrap().owner().as_str().to_owned()).collect();
    assert_eq!(owners.len(), 100);
}
