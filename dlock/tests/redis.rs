//! The Redis backend against a server in memory that errs as it is told.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use dlock::redis::Redis;
use dlock::{AcquireError, BackendError, FencingToken, Handle, Lock, LockKey, Options, Released};
use dlock::{Runtime, TryAcquireError};
use support::server::{Fault, Server};
use support::{World, key, ms};

type Redlike = Lock<Redis<World>>;

fn lock(world: &World) -> Redlike {
    let mut options = Options::new(ms(2000));
    options.instance = Some("a".into());
    Lock::new(Redis::new(world.clone(), "redis:6379"), options).unwrap()
}

fn world() -> (World, Server, Redlike) {
    let (world, server) = World::with_server();
    let lock = lock(&world);
    (world, server, lock)
}

fn acquire(world: &World, lock: &Redlike) -> Handle<Redis<World>> {
    world.run(lock.acquire(&key(), world.now() + ms(10_000))).unwrap()
}

fn holder(server: &Server) -> Option<String> {
    server.value(&key().owner_key())
}

/// How many releases were executed.
fn releases(server: &Server) -> usize {
    server.log().iter().filter(|line| line.contains(" release ")).count()
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

#[test]
fn acquire_renew_release() {
    let (world, server, lock) = world();
    let handle = acquire(&world, &lock);
    assert_eq!(holder(&server).as_deref(), Some(handle.owner().as_str()));
    assert_eq!(handle.fence(), token(1));
    world.pass(ms(1500));
    world.run(handle.renew()).unwrap();
    world.pass(ms(1500));
    assert!(holder(&server).is_some());
    assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
    assert_eq!(holder(&server), None);
    world.pass(ms(3000));
    assert_eq!(releases(&server), 1, "an answer settles it");
    assert_eq!(acquire(&world, &lock).fence(), token(2));
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_refused_acquire_counts_nothing_and_tells_the_time_left() {
    let (world, server, lock) = world();
    let _handle = acquire(&world, &lock);
    world.pass(ms(500));
    let error = world.run(lock.try_acquire(&key())).unwrap_err();
    assert_eq!(error, TryAcquireError::Held { retry_after: Some(ms(1500)) });
    assert_eq!(server.value(&key().fence_key()).as_deref(), Some("1"));
}

#[test]
fn an_expired_owner_changes_nothing_of_the_next_ones() {
    let (world, server, lock) = world();
    let first = acquire(&world, &lock);
    world.pass(ms(2100));
    let second = acquire(&world, &lock);
    assert!(second.fence() > first.fence());
    assert!(world.run(first.renew()).is_err());
    assert_eq!(world.run(first.release()).unwrap(), Released::NotOwner);
    assert_eq!(holder(&server).as_deref(), Some(second.owner().as_str()));
}

#[test]
fn scripts_are_loaded_when_the_server_does_not_know_them() {
    let (world, server, lock) = world();
    let handle = acquire(&world, &lock);
    world.run(handle.renew()).unwrap();
    server.forget_scripts();
    world.run(handle.renew()).unwrap();
    assert_eq!(server.take_verbs(), "EVAL EVAL EVALSHA EVAL");
    assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
}

#[test]
fn a_script_is_sent_by_its_text_once_a_connection() {
    let (world, server, lock) = world();
    let rounds = || {
        for _ in 0..3 {
            assert_eq!(world.run(acquire(&world, &lock).release()).unwrap(), Released::Done);
        }
    };
    rounds();
    assert_eq!(server.take_verbs(), "EVAL EVAL EVALSHA EVALSHA EVALSHA EVALSHA");
    server.faults([Fault::Reset]);
    assert!(world.run(lock.try_acquire(&key())).is_err());
    world.pass(ms(3000));
    server.take_verbs();
    rounds();
    assert_eq!(server.connections(), 2);
    assert_eq!(
        server.take_verbs(),
        "EVAL EVALSHA EVALSHA EVALSHA EVALSHA EVALSHA",
        "the cleanup was the first"
    );
}

#[test]
fn a_script_that_the_server_refused_to_run_is_sent_by_its_text_again() {
    let (world, server, lock) = world();
    server.faults([Fault::Error("LOADING Redis is loading the dataset in memory")]);
    acquire(&world, &lock);
    assert_eq!(server.take_verbs(), "EVAL EVAL");
}

/// Runs many acquires at once and gives back the handles of those that won.
fn contend(world: &World, lock: &Redlike, count: usize) -> usize {
    let (key, won) = (key(), Arc::new(Mutex::new(Vec::new())));
    for _ in 0..count {
        let (lock, key, won) = (lock.clone(), key.clone(), Arc::clone(&won));
        world.spawn(async move {
            if let Ok(handle) = lock.try_acquire(&key).await {
                won.lock().unwrap().push(handle);
            }
        });
    }
    world.pass(ms(50));
    won.lock().unwrap().len()
}

#[test]
fn of_a_hundred_acquirers_one_wins_and_all_share_one_connection() {
    let (world, server, lock) = world();
    assert_eq!(contend(&world, &lock, 100), 1);
    assert_eq!(server.connections(), 1);
    assert_eq!(server.value(&key().fence_key()).as_deref(), Some("1"));
}

#[test]
fn those_who_waited_for_one_connection_share_its_failure() {
    let (world, server, lock) = world();
    server.refuse_connections(true);
    assert_eq!(contend(&world, &lock, 100), 0);
    assert_eq!(server.connections(), 1);
    server.refuse_connections(false);
    acquire(&world, &lock);
}

#[test]
fn an_unreachable_server_is_named() {
    let (world, server, lock) = world();
    server.refuse_connections(true);
    let error = world.run(lock.acquire(&key(), world.now() + ms(300))).unwrap_err();
    assert!(matches!(error, AcquireError::Unavailable(BackendError::Unreachable { .. })));
    assert!(error.to_string().contains("redis:6379"), "{error}");
    world.pass(ms(3000));
    assert!(server.log().is_empty());
    assert_eq!(world.tasks(), 0, "nothing was sent, so there is nothing to clean up");
}

#[test]
fn a_connection_that_never_opens_is_given_up_in_time() {
    let (world, server, lock) = world();
    server.hang_connections(true);
    let start = world.now();
    assert!(world.run(lock.try_acquire(&key())).is_err());
    assert_eq!(world.now(), start + lock.options().request_timeout);
    server.hang_connections(false);
    acquire(&world, &lock);
}

#[test]
fn a_lost_answer_gives_the_same_lease_and_token_valid_from_the_first_request() {
    for fault in [Fault::LoseAnswer, Fault::Reset] {
        let (world, server, lock) = world();
        acquire(&world, &lock);
        world.pass(ms(10));
        let start = world.now();
        server.faults([fault]);
        let handle = acquire(&world, &lock);
        assert_eq!(handle.fence(), token(2));
        assert_eq!(server.value(&key().fence_key()).as_deref(), Some("2"));
        // Or a little less: the server tells the time left in whole milliseconds.
        let valid_until = start + ms(2000) - ms(22);
        assert!((valid_until - ms(1)..=valid_until).contains(&handle.valid_until()));
        assert_eq!(server.connections(), 2, "the silent connection was replaced");
        assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
        world.pass(ms(3000));
        assert_eq!(world.tasks(), 2, "a driver and its peer; the old connection is closed");
    }
}

#[test]
fn a_lost_release_is_repeated_on_a_new_connection() {
    for fault in [Fault::LoseAnswer, Fault::Reset] {
        let (world, server, lock) = world();
        let handle = acquire(&world, &lock);
        server.faults([Fault::None, fault]);
        world.run(handle.renew()).unwrap();
        assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
        assert_eq!(holder(&server), None);
        assert_eq!(server.connections(), 2);
    }
}

/// B08: the watchdog is dead after a reconnect.
#[test]
fn renewals_outlive_a_reconnect() {
    let (world, server, lock) = world();
    let handle = acquire(&world, &lock);
    server.faults([Fault::Reset, Fault::LoseAnswer]);
    let work = world.sleep_until(world.now() + ms(9000));
    world.run(handle.while_held(dlock::Cap(ms(60_000)), work)).unwrap();
    assert!(holder(&server).is_some());
    assert_eq!(server.connections(), 3);
}

/// B06: the release overtakes the SET still in flight on another connection.
#[test]
fn a_cleanup_follows_the_request_whose_answer_is_missing() {
    let (world, server, lock) = world();
    acquire(&world, &lock);
    world.pass(ms(10));
    // The request hangs for longer than its timeout, is replaced, and arrives in the end.
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
fn a_cleanup_is_repeated_when_the_way_of_the_request_is_gone() {
    let (world, server, lock) = world();
    acquire(&world, &lock);
    world.pass(ms(10));
    // Executed 1.5 s late, long after the cleanup gave up waiting behind it and went another way.
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
        assert_eq!(world.now(), start, "it does not queue behind what is stuck");
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
    assert!(sent > 12, "most of them got as far as the server");
}

/// Polls `future` so many times, each time when it was woken, and drops it.
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
fn a_grant_whose_future_was_dropped_before_it_was_read_is_given_back() {
    let (world, server, lock) = world();
    world.run(acquire(&world, &lock).release()).unwrap();
    {
        let wanted = key();
        let mut future: Pin<Box<_>> = Box::pin(lock.acquire(&wanted, world.now() + ms(20_000)));
        let polled = pin!(future.as_mut()).poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        world.pass(ms(1));
        assert!(holder(&server).is_some(), "granted, and nobody knows");
    }
    world.pass(ms(3000));
    assert_eq!(holder(&server), None);
    assert_eq!(releases(&server), 2, "one for each grant");
}

#[test]
fn a_program_that_is_about_to_end_can_wait_for_its_cleanups() {
    let (world, server, lock) = world();
    server.faults([Fault::LoseAnswer]);
    let deadline = world.now() + ms(100);
    assert!(world.run(lock.acquire(&key(), deadline)).is_err());
    assert!(holder(&server).is_some(), "granted, and nobody knows");
    assert!(world.run(lock.settled(world.now() + ms(5000))));
    assert_eq!(holder(&server), None);
    assert!(world.run(lock.settled(world.now())), "nothing is left to wait for");
}

#[test]
fn the_wait_for_cleanups_has_an_end() {
    let (world, server, lock) = world();
    server.stop_reading(true);
    assert!(world.run(lock.acquire(&key(), world.now() + ms(100))).is_err());
    let until = world.now() + ms(300);
    assert!(!world.run(lock.settled(until)));
    assert_eq!(world.now(), until);
}

#[test]
fn a_cleanup_that_found_the_only_grant_is_over() {
    let (world, server, lock) = world();
    world.run(acquire(&world, &lock).release()).unwrap();
    server.faults([Fault::Reset]);
    assert!(world.run(lock.try_acquire(&key())).is_err());
    world.pass(ms(3000));
    assert_eq!(holder(&server), None);
    assert_eq!(releases(&server), 2);
}

#[test]
fn a_connection_whose_writes_are_stuck_does_not_outlive_its_users() {
    let (world, server, lock) = world();
    server.stop_reading(true);
    assert!(world.run(lock.try_acquire(&key())).is_err());
    world.pass(ms(5000));
    assert_eq!(world.tasks(), 0);
}

#[test]
fn a_server_that_is_starting_is_asked_again() {
    let (world, server, lock) = world();
    acquire(&world, &lock);
    world.pass(ms(10));
    server.faults([Fault::Error("LOADING Redis is loading the dataset in memory")]);
    assert_eq!(acquire(&world, &lock).fence(), token(2));
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_replica_is_left_for_a_new_connection() {
    let (world, server, lock) = world();
    acquire(&world, &lock);
    world.pass(ms(10));
    server.faults([Fault::Error("READONLY You can't write against a read only replica.")]);
    acquire(&world, &lock);
    assert_eq!(server.connections(), 2);
}

#[test]
fn a_wrong_password_ends_the_wait() {
    let (world, server, lock) = world();
    acquire(&world, &lock);
    world.pass(ms(10));
    server.faults([Fault::Error("NOAUTH Authentication required.")]);
    let start = world.now();
    let error = world.run(lock.acquire(&key(), start + ms(5000))).unwrap_err();
    assert!(matches!(error, AcquireError::Refused(_)), "{error}");
    assert_eq!(world.now(), start);
}

#[test]
fn a_key_without_end_does_not_put_the_waiter_to_sleep_for_ever() {
    let (world, server, lock) = world();
    server.set(&key().owner_key(), "an operator");
    let deadline = world.now() + ms(4000);
    let error = world.run(lock.acquire(&key(), deadline)).unwrap_err();
    assert_eq!(error, AcquireError::Contended { retry_after: None });
    assert_eq!(world.now(), deadline);
}

#[test]
fn unlike_resources_do_not_meet() {
    let (world, _, lock) = world();
    let _first = acquire(&world, &lock);
    let other = LockKey::for_tenant("acme", "orders", "42").unwrap();
    assert_eq!(world.run(lock.try_acquire(&other)).unwrap().fence(), token(1));
}
