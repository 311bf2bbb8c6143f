//! Locks on servers with a queue, whose leases live as long as the client's session.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use crate::support::backend::{Fake, InSession, Order};
use crate::support::{World, key, ms};
use dlock::{AcquireError, BackendError, Lock, Options, OptionsError, Runtime, TryAcquireError};

fn lock() -> (World, Fake, Lock<InSession>) {
    let world = World::default();
    let fake = Fake::new(&world);
    let lock = Lock::new(InSession(fake.clone()), Options::new(ms(2000))).unwrap();
    (world, fake, lock)
}

#[test]
fn a_queued_waiter_waits_for_its_watch_without_backoff() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::Queued(7, ms(333)), Order::Queued(7, ms(3))]);
    let start = world.now();
    let handle = world.run(lock.acquire(&key(), start + ms(5000))).unwrap();
    assert_eq!(world.now(), start + ms(336));
    assert!(handle.is_valid());
    let calls = fake.calls("acquire");
    assert_eq!(calls.len(), 3);
    assert!(
        calls.iter().all(|call| call.owner == handle.owner().as_str()),
        "all requests have the same owner token"
    );
}

#[test]
fn a_waiter_leaves_the_queue_at_its_deadline() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::Queued(7, ms(9999))]);
    let start = world.now();
    let error = world.run(lock.acquire(&key(), start + ms(1000))).unwrap_err();
    assert_eq!(error, AcquireError::Taken { retry_after: None });
    assert_eq!(world.now(), start + ms(1000));
    world.pass(ms(1));
    assert_eq!(fake.calls("release").len(), 1);
}

#[test]
fn try_acquire_leaves_the_queue_at_once() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::Queued(7, ms(9999))]);
    let error = world.run(lock.try_acquire(&key())).unwrap_err();
    assert_eq!(error, TryAcquireError::Taken { retry_after: None });
    world.pass(ms(1));
    assert_eq!(fake.calls("release").len(), 1);
}

#[test]
fn a_dropped_waiter_leaves_the_queue() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::Queued(7, ms(9999))]);
    {
        let key = key();
        let mut acquire = pin!(lock.acquire(&key, world.now() + ms(5000)));
        assert!(acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(fake.calls("release").len(), 0);
    }
    world.pass(ms(1));
    assert_eq!(fake.calls("release").len(), 1);
}

#[test]
fn a_failed_watch_is_followed_by_a_retry_after_backoff() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::Queued(7, ms(1))]);
    fake.on_watch(BackendError::NoAnswer);
    let start = world.now();
    world.run(lock.acquire(&key(), start + ms(5000))).unwrap();
    assert!(world.now() >= start + ms(25), "the retry did not wait");
}

#[test]
fn a_watch_silent_for_a_request_timeout_means_unavailable() {
    let silent = |timeout| {
        let (world, fake, lock) = lock();
        fake.on_acquire([Order::Queued(7, ms(9999))]);
        fake.hide_watches();
        world.run(lock.acquire(&key(), world.now() + timeout)).unwrap_err()
    };
    assert_eq!(silent(ms(499)), AcquireError::Taken { retry_after: None });
    assert_eq!(silent(ms(500)), AcquireError::Unavailable(BackendError::NoAnswer));
}

#[test]
fn a_release_without_ttl_is_retried_until_confirmed() {
    let (world, fake, lock) = lock();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    fake.on_release(std::iter::repeat_n(Order::LoseAnswer, 20));
    world.run(handle.release()).unwrap_err();
    world.pass(ms(60_000));
    assert_eq!(fake.calls("release").len(), 21);
    assert_eq!(world.tasks(), 0);
}

#[test]
fn a_dropped_handle_without_ttl_is_released_until_confirmed() {
    let (world, fake, lock) = lock();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    fake.on_release(std::iter::repeat_n(Order::LoseAnswer, 20));
    drop(handle);
    world.pass(ms(60_000));
    assert_eq!(fake.calls("release").len(), 21);
}

#[test]
fn an_abandoned_lease_is_released_after_its_ttl() {
    let (world, fake, lock) = lock();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    let valid_until = handle.valid_until();
    handle.leave();
    world.pass(ms(60_000));
    let calls = fake.calls("release");
    assert_eq!(calls.len(), 1);
    assert!(calls[0].at >= valid_until);
}

#[test]
fn a_ttl_above_the_session_ttl_is_refused() {
    let world = World::default();
    let error = Lock::new(InSession(Fake::new(&world)), Options::new(ms(60_001))).unwrap_err();
    assert!(matches!(error, OptionsError::TtlAboveSession { .. }), "{error}");
    assert!(Lock::new(InSession(Fake::new(&world)), Options::new(ms(60_000))).is_ok());
}
