//! Locks on servers that keep a queue, and whose leases live as long as the client's session.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use dlock::{AcquireError, BackendError, Lock, Options, OptionsError, Runtime, TryAcquireError};
use support::backend::{Fake, InSession, Order};
use support::{World, key, ms};

fn lock() -> (World, Fake, Lock<InSession>) {
    let world = World::default();
    let fake = Fake::new(&world);
    let lock = Lock::new(InSession(fake.clone()), Options::new(ms(2000))).unwrap();
    (world, fake, lock)
}

#[test]
fn one_in_line_is_served_when_its_turn_comes_and_not_by_a_wait_of_its_own() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::Queued(7, ms(333)), Order::Queued(7, ms(3))]);
    let start = world.now();
    let handle = world.run(lock.acquire(&key(), start + ms(5000))).unwrap();
    assert_eq!(world.now(), start + ms(336));
    assert!(handle.is_valid());
    let calls = fake.calls("acquire");
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| call.owner == handle.owner().as_str()), "its place is its owner's");
}

#[test]
fn one_whose_deadline_passes_in_line_leaves_it() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::Queued(7, ms(9999))]);
    let start = world.now();
    let error = world.run(lock.acquire(&key(), start + ms(1000))).unwrap_err();
    assert_eq!(error, AcquireError::Contended { retry_after: None });
    assert_eq!(world.now(), start + ms(1000));
    world.pass(ms(1));
    assert_eq!(fake.calls("release").len(), 1);
}

#[test]
fn one_that_does_not_wait_leaves_the_line_at_once() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::Queued(7, ms(9999))]);
    let error = world.run(lock.try_acquire(&key())).unwrap_err();
    assert_eq!(error, TryAcquireError::Held { retry_after: None });
    world.pass(ms(1));
    assert_eq!(fake.calls("release").len(), 1);
}

#[test]
fn a_waiter_whose_future_is_dropped_leaves_the_line() {
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
fn a_watch_that_fails_is_followed_by_another_question_after_a_wait() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::Queued(7, ms(1))]);
    fake.on_turn(BackendError::NoAnswer);
    let start = world.now();
    world.run(lock.acquire(&key(), start + ms(5000))).unwrap();
    assert!(world.now() >= start + ms(25), "it did not wait");
}

#[test]
fn a_watch_that_fails_at_the_deadline_tells_of_the_server_only_if_it_had_the_time_of_a_request() {
    let silent = |timeout| {
        let (world, fake, lock) = lock();
        fake.on_acquire([Order::Queued(7, ms(9999))]);
        fake.hide_turns();
        world.run(lock.acquire(&key(), world.now() + timeout)).unwrap_err()
    };
    assert_eq!(silent(ms(499)), AcquireError::Contended { retry_after: None });
    assert_eq!(silent(ms(500)), AcquireError::Unavailable(BackendError::NoAnswer));
}

#[test]
fn what_no_ttl_ends_is_asked_for_until_the_server_confirms() {
    let (world, fake, lock) = lock();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    fake.on_release(std::iter::repeat_n(Order::LoseAnswer, 20));
    world.run(handle.release()).unwrap_err();
    world.pass(ms(60_000));
    assert_eq!(fake.calls("release").len(), 21);
    assert_eq!(world.tasks(), 0);
}

#[test]
fn a_dropped_handle_that_no_ttl_ends_is_asked_for_until_the_server_confirms() {
    let (world, fake, lock) = lock();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    fake.on_release(std::iter::repeat_n(Order::LoseAnswer, 20));
    drop(handle);
    world.pass(ms(60_000));
    assert_eq!(fake.calls("release").len(), 21);
}

#[test]
fn a_lease_that_is_left_ends_when_its_ttl_would_have_ended_it() {
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
fn a_ttl_above_the_session_s_is_refused() {
    let world = World::default();
    let error = Lock::new(InSession(Fake::new(&world)), Options::new(ms(60_001))).unwrap_err();
    assert!(matches!(error, OptionsError::TtlAboveSession { .. }), "{error}");
    assert!(Lock::new(InSession(Fake::new(&world)), Options::new(ms(60_000))).is_ok());
}
