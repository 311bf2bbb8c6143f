//! The Redis backend against a server in memory with injected faults.

#![cfg(feature = "redis")]

use std::sync::{Arc, Mutex};

use crate::support::redis::{RedisLock, acquire, holder, releases, token, world};
use crate::support::server::Fault;
use crate::support::{World, key, ms};
use dlock::{AcquireError, BackendError, LockKey, Released, Runtime, TryAcquireError};

#[test]
fn a_lease_is_acquired_renewed_and_released() {
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
    assert_eq!(releases(&server), 1, "the answered release is not repeated");
    assert_eq!(acquire(&world, &lock).fence(), token(2));
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_refused_acquire_counts_nothing_and_returns_the_time_left() {
    let (world, server, lock) = world();
    let _handle = acquire(&world, &lock);
    world.pass(ms(500));
    let error = world.run(lock.try_acquire(&key())).unwrap_err();
    assert_eq!(error, TryAcquireError::Taken { retry_after: Some(ms(1500)) });
    assert_eq!(server.value(&key().fence_key()).as_deref(), Some("1"));
}

#[test]
fn an_expired_owner_changes_nothing_of_the_next_lease() {
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
fn a_script_is_sent_as_text_once_per_connection() {
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
        "the cleanup sent the release script as text"
    );
}

#[test]
fn a_script_the_server_refused_is_sent_as_text_again() {
    let (world, server, lock) = world();
    server.faults([Fault::Error("LOADING Redis is loading the dataset in memory")]);
    acquire(&world, &lock);
    assert_eq!(server.take_verbs(), "EVAL EVAL");
}

/// Runs `count` acquires at once; returns the number of grants.
fn contend(world: &World, lock: &RedisLock, count: usize) -> usize {
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
fn one_of_a_hundred_acquires_wins_on_one_shared_connection() {
    let (world, server, lock) = world();
    assert_eq!(contend(&world, &lock, 100), 1);
    assert_eq!(server.connections(), 1);
    assert_eq!(server.value(&key().fence_key()).as_deref(), Some("1"));
}

#[test]
fn waiters_for_one_connection_share_its_failure() {
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
fn a_connection_that_never_opens_times_out() {
    let (world, server, lock) = world();
    server.hang_connections(true);
    let start = world.now();
    assert!(world.run(lock.try_acquire(&key())).is_err());
    assert_eq!(world.now(), start + lock.options().request_timeout);
    server.hang_connections(false);
    acquire(&world, &lock);
}

#[test]
fn after_a_lost_answer_validity_counts_from_the_first_request() {
    for fault in [Fault::LoseAnswer, Fault::Reset] {
        let (world, server, lock) = world();
        acquire(&world, &lock);
        world.pass(ms(10));
        let start = world.now();
        server.faults([fault]);
        let handle = acquire(&world, &lock);
        assert_eq!(handle.fence(), token(2));
        assert_eq!(server.value(&key().fence_key()).as_deref(), Some("2"));
        // Up to 1 ms less: the server reports the time left in whole milliseconds.
        let valid_until = start + ms(2000) - ms(22);
        assert!((valid_until - ms(1)..=valid_until).contains(&handle.valid_until()));
        assert_eq!(server.connections(), 2, "the silent connection was replaced");
        assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
        world.pass(ms(3000));
        assert_eq!(world.tasks(), 2, "both ends of the new connection; the old one is closed");
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

/// B08: the watchdog stops after a reconnect.
#[test]
fn renewals_go_on_after_a_reconnect() {
    let (world, server, lock) = world();
    let handle = acquire(&world, &lock);
    server.faults([Fault::Reset, Fault::LoseAnswer]);
    let work = world.sleep_until(world.now() + ms(9000));
    world.run(handle.while_held(dlock::Cap(ms(60_000)), work)).unwrap();
    assert!(holder(&server).is_some());
    assert_eq!(server.connections(), 3);
}

#[test]
fn a_request_to_a_loading_server_is_retried() {
    let (world, server, lock) = world();
    acquire(&world, &lock);
    world.pass(ms(10));
    server.faults([Fault::Error("LOADING Redis is loading the dataset in memory")]);
    assert_eq!(acquire(&world, &lock).fence(), token(2));
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_read_only_replica_is_left_for_a_new_connection() {
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
fn a_waiter_polls_a_key_without_ttl() {
    let (world, server, lock) = world();
    server.set(&key().owner_key(), "an operator");
    let deadline = world.now() + ms(4000);
    let error = world.run(lock.acquire(&key(), deadline)).unwrap_err();
    assert_eq!(error, AcquireError::Taken { retry_after: None });
    assert_eq!(world.now(), deadline);
}

#[test]
fn different_resources_have_different_keys() {
    let (world, _, lock) = world();
    let _first = acquire(&world, &lock);
    let other = LockKey::for_tenant("acme", "orders", "42").unwrap();
    assert_eq!(world.run(lock.try_acquire(&other)).unwrap().fence(), token(1));
}
