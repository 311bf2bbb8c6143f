//! Locks with a limit of their waiters.

use crate::support::backend::{Fake, InSession, Order};
use crate::support::{World, key, ms};
use dlock::{AcquireError, Lock, Options, OptionsError, QueueLimit, Runtime, TryAcquireError};

fn lock() -> (World, Fake, Lock<Fake>) {
    let world = World::default();
    let fake = Fake::new(&world);
    let mut options = Options::new(ms(2000));
    options.waiters_max = Some(3);
    let lock = Lock::new(fake.clone(), options).unwrap();
    (world, fake, lock)
}

#[test]
fn a_full_queue_refuses_at_once_and_says_how_many_wait() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::Full(3)]);
    let start = world.now();
    let error = world.run(lock.acquire(&key(), start + ms(60_000))).unwrap_err();
    assert_eq!(error, AcquireError::QueueFull { waiting: 3, max: 3 });
    assert!(error.to_string().contains("3 acquires wait"), "{error}");
    assert_eq!(world.now(), start);
    world.pass(ms(1));
    assert_eq!(fake.calls("release").len(), 1, "nothing is left of it");
}

#[test]
fn a_try_finds_a_full_queue_taken() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::Full(3)]);
    let error = world.run(lock.try_acquire(&key())).unwrap_err();
    assert_eq!(error, TryAcquireError::Taken { retry_after: None });
    assert_eq!(fake.first_limit().map(|limit| limit.max), Some(0), "a try does not wait");
}

#[test]
fn a_waiter_that_must_ask_again_backs_off() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::Placed(7, None), Order::Placed(7, None), Order::Placed(7, Some(ms(5)))]);
    let start = world.now();
    world.run(lock.acquire(&key(), start + ms(60_000))).unwrap();
    let asked: Vec<_> = fake.calls("acquire").into_iter().map(|call| call.at).collect();
    assert_eq!(asked.len(), 4);
    assert!(asked[1] > start && asked[2] > asked[1]);
    let last = asked[3].saturating_since(asked[2]);
    assert!(last >= ms(5) && last < ms(50), "the next to be served asks when the lease is over: {last:?}");
}

#[test]
fn a_waiter_whose_place_was_given_away_may_be_refused() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::Placed(7, None), Order::Full(3)]);
    let error = world.run(lock.acquire(&key(), world.now() + ms(60_000))).unwrap_err();
    assert_eq!(error, AcquireError::QueueFull { waiting: 3, max: 3 });
}

#[test]
fn a_place_is_kept_for_two_waits_and_two_requests() {
    let (world, fake, lock) = lock();
    world.run(lock.acquire(&key(), world.now() + ms(60_000))).unwrap();
    let options = lock.options();
    let patience = (options.backoff.max + options.request_timeout) * 2;
    assert_eq!(fake.first_limit(), Some(QueueLimit { max: 3, patience }));
}

#[test]
fn without_the_option_a_claim_has_no_limit() {
    let world = World::default();
    let fake = Fake::new(&world);
    let lock = Lock::new(fake.clone(), Options::new(ms(2000))).unwrap();
    world.run(lock.acquire(&key(), world.now() + ms(60_000))).unwrap();
    assert_eq!(fake.first_limit(), None);
}

#[test]
fn a_backend_without_a_queue_refuses_the_option() {
    let world = World::default();
    let mut options = Options::new(ms(2000));
    options.waiters_max = Some(3);
    let refused = Lock::new(InSession(Fake::new(&world)), options).unwrap_err();
    assert_eq!(refused, OptionsError::NoQueue { system: "fake", permits: 1 });
}
