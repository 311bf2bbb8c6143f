//! Cleanups of the Redis backend: an acquire that fails or is dropped releases the lease that the server may
//! have granted.

#![cfg(feature = "redis")]

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use crate::support::redis::{acquire, holder, releases, world};
use crate::support::server::Fault;
use crate::support::{World, key, ms};
use dlock::{AcquireError, Released, Runtime};

/// B06: the release overtakes the SET still in flight on another connection.
#[test]
fn a_cleanup_follows_the_request_without_an_answer() {
    let (world, server, lock) = world();
    acquire(&world, &lock);
    world.pass(ms(10));
    // The first request hangs for longer than its timeout, a second one replaces it, and the first arrives
    // in the end.
    server.faults([Fault::Delay(ms(700)), Fault::Error("LOADING soon")]);
    let error = world.run(lock.acquire(&key(), world.now() + ms(600))).unwrap_err();
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
    world.pass(ms(400));
    let log = server.log();
    let late = log.iter().rposition(|line| line.starts_with("1 acquire")).unwrap();
    assert!(log[late + 1].starts_with("1 release") && log[late + 1].ends_with(":1"), "{log:#?}");
    assert_eq!(holder(&server), None);
}

#[test]
fn a_cleanup_is_repeated_if_the_connection_is_lost() {
    let (world, server, lock) = world();
    acquire(&world, &lock);
    world.pass(ms(10));
    // The request is executed 1.5 s late, after the cleanup behind it has timed out and taken another
    // connection.
    server.faults([Fault::Delay(ms(1500))]);
    assert!(world.run(lock.try_acquire(&key())).is_err());
    world.pass(ms(2500));
    assert!(server.log().iter().any(|line| line.starts_with("1 acquire")));
    assert_eq!(holder(&server), None, "{:#?}", server.log());
    assert_eq!(world.tasks(), 2);
}

#[test]
fn a_request_that_arrives_after_the_release_is_released_too() {
    for fault in [Fault::Delay(ms(900)), Fault::Late(ms(900))] {
        let (world, server, lock) = world();
        acquire(&world, &lock);
        world.pass(ms(10));
        // The first request is stuck; the second is granted and released before the first arrives.
        server.faults([fault]);
        let handle = acquire(&world, &lock);
        assert!(server.log().last().unwrap().starts_with("2 acquire"));
        let start = world.now();
        assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
        assert_eq!(world.now(), start, "the release does not wait for the stuck request");
        assert_eq!(holder(&server), None);
        world.pass(ms(2500));
        assert_eq!(server.log().iter().filter(|line| line.starts_with("1 acquire")).count(), 2);
        assert_eq!(holder(&server), None, "{:#?}", server.log());
    }
}

#[test]
fn an_acquire_dropped_at_any_await_leaves_nothing_behind() {
    let mut sent = 0;
    for polls in 0..12 {
        for held in [false, true] {
            let (world, server, lock) = world();
            let handle = held.then(|| acquire(&world, &lock));
            let wanted = key();
            cancel(&world, lock.acquire(&wanted, world.now() + ms(20_000)), polls);
            drop(handle);
            world.pass(ms(1900));
            sent += server.log().len();
            assert_eq!(holder(&server), None, "dropped after {polls} polls: {:#?}", server.log());
        }
    }
    assert!(sent > 12, "most of the acquires reached the server");
}

/// Polls `future` `polls` times, each time after it is woken, and drops it.
fn cancel<F: Future>(world: &World, future: F, polls: usize) {
    let mut future = Box::pin(future);
    let mut left = polls;
    world.run(std::future::poll_fn(move |cx| match left.checked_sub(1) {
        None => Poll::Ready(()),
        Some(rest) => {
            left = rest;
            future.as_mut().poll(cx).map(|_| ())
        }
    }));
}

#[test]
fn an_unread_grant_of_a_dropped_future_is_released() {
    let (world, server, lock) = world();
    world.run(acquire(&world, &lock).release()).unwrap();
    {
        let wanted = key();
        let mut future: Pin<Box<_>> = Box::pin(lock.acquire(&wanted, world.now() + ms(20_000)));
        let polled = pin!(future.as_mut()).poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        world.pass(ms(1));
        assert!(holder(&server).is_some(), "granted, and the client does not know");
    }
    world.pass(ms(3000));
    assert_eq!(holder(&server), None);
    assert_eq!(releases(&server), 2, "one for each grant");
}

#[test]
fn a_program_can_wait_for_its_cleanups() {
    let (world, server, lock) = world();
    server.faults([Fault::LoseAnswer]);
    let deadline = world.now() + ms(100);
    assert!(world.run(lock.acquire(&key(), deadline)).is_err());
    assert!(holder(&server).is_some(), "granted, and the client does not know");
    assert!(world.run(lock.cleaned_up(world.now() + ms(5000))));
    assert_eq!(holder(&server), None);
    assert!(world.run(lock.cleaned_up(world.now())), "nothing is left to wait for");
}

#[test]
fn a_program_can_wait_for_the_release_of_a_dropped_handle() {
    let (world, server, lock) = world();
    drop(acquire(&world, &lock));
    assert!(holder(&server).is_some(), "the release is in the background");
    assert!(world.run(lock.cleaned_up(world.now() + ms(5000))));
    assert_eq!(holder(&server), None);
}

#[test]
fn the_wait_for_cleanups_ends_at_its_deadline() {
    let (world, server, lock) = world();
    server.stop_reading(true);
    assert!(world.run(lock.acquire(&key(), world.now() + ms(100))).is_err());
    let until = world.now() + ms(300);
    assert!(!world.run(lock.cleaned_up(until)));
    assert_eq!(world.now(), until);
}

#[test]
fn a_cleanup_that_released_the_only_grant_is_not_repeated() {
    let (world, server, lock) = world();
    world.run(acquire(&world, &lock).release()).unwrap();
    server.faults([Fault::Reset]);
    assert!(world.run(lock.try_acquire(&key())).is_err());
    world.pass(ms(3000));
    assert_eq!(holder(&server), None);
    assert_eq!(releases(&server), 2);
}

#[test]
fn a_connection_with_stuck_writes_ends_with_its_users() {
    let (world, server, lock) = world();
    server.stop_reading(true);
    assert!(world.run(lock.try_acquire(&key())).is_err());
    world.pass(ms(5000));
    assert_eq!(world.tasks(), 0);
}
