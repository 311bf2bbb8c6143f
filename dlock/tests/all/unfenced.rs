//! Requests that demand no fencing token: a `SET` on Redis, a script on older servers.

#![cfg(feature = "redis")]

use crate::support::redis::{RedisLock, acquire, holder, token, world};
use crate::support::server::{Fault, Server};
use crate::support::{World, key, ms};
use dlock::redis::Redis;
use dlock::{AcquireError, Handle, Released, Runtime, TryAcquireError, Unfenced};

fn acquire_without(world: &World, lock: &RedisLock) -> Handle<Redis<World>, Unfenced> {
    world.run(lock.request(&key()).without_token().acquire(world.now() + ms(10_000))).unwrap()
}

fn counter(server: &Server) -> Option<String> {
    server.value(&key().fence_key())
}

#[test]
fn a_lease_without_a_token_takes_one_command_and_no_counter() {
    let (world, server, lock) = world();
    let handle = acquire_without(&world, &lock);
    assert_eq!(holder(&server).as_deref(), Some(handle.owner().as_str()));
    assert_eq!(counter(&server), None);
    world.pass(ms(1500));
    world.run(handle.renew()).unwrap();
    assert!(handle.remaining() > ms(1900), "{:?}", handle.remaining());
    assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
    assert_eq!(holder(&server), None);
    assert_eq!(server.take_verbs(), "SET EVAL EVAL");
}

#[test]
fn requests_with_and_without_a_token_exclude_each_other() {
    let (world, server, lock) = world();
    let fenced = acquire(&world, &lock);
    let taken = world.run(lock.request(&key()).without_token().try_acquire()).unwrap_err();
    let TryAcquireError::Taken { retry_after: Some(left) } = taken else { panic!("{taken:?}") };
    assert!(left > ms(1900) && left <= ms(2000), "{left:?}");
    assert_eq!(world.run(fenced.release()).unwrap(), Released::Done);

    let unfenced = acquire_without(&world, &lock);
    let taken = world.run(lock.try_acquire(&key())).unwrap_err();
    assert!(matches!(taken, TryAcquireError::Taken { retry_after: Some(_) }), "{taken:?}");
    drop(unfenced);
    assert!(world.run(lock.cleaned_up(world.now() + ms(1000))));
    assert_eq!(holder(&server), None);
    assert_eq!(acquire(&world, &lock).fence(), token(2), "the counter counts the fenced grants");
}

#[test]
fn a_grant_whose_answer_got_lost_is_recognised() {
    for fault in [Fault::LoseAnswer, Fault::Reset] {
        let (world, server, lock) = world();
        server.faults([fault]);
        let started = world.now();
        let handle = acquire_without(&world, &lock);
        assert_eq!(holder(&server).as_deref(), Some(handle.owner().as_str()));
        // Valid no longer than the lease of the first request.
        assert!(handle.valid_until() <= started + ms(2000));
        assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
        assert_eq!(server.take_verbs(), "SET SET PTTL EVAL");
    }
}

#[test]
fn an_older_server_grants_by_the_script() {
    let (world, server, lock) = world();
    server.refuse_set_nx_get();
    for _ in 0..2 {
        assert_eq!(world.run(acquire_without(&world, &lock).release()).unwrap(), Released::Done);
    }
    assert_eq!(server.take_verbs(), "SET EVAL EVAL EVALSHA EVALSHA", "it is asked once a connection");
    assert_eq!(counter(&server).as_deref(), Some("2"));
}

#[test]
fn a_waiter_without_a_token_acquires_once_the_lease_is_over() {
    let (world, server, lock) = world();
    let first = acquire_without(&world, &lock);
    first.leave();
    let started = world.now();
    let second = acquire_without(&world, &lock);
    assert!(world.now() >= started + ms(1900));
    assert_eq!(holder(&server).as_deref(), Some(second.owner().as_str()));
}

#[test]
fn an_error_of_the_server_is_told() {
    let (world, server, lock) = world();
    server.faults([Fault::Error("NOPERM User app has no permissions to run the 'set' command")]);
    let refused = world.run(lock.request(&key()).without_token().acquire(world.now() + ms(10_000)));
    let Err(AcquireError::Refused(error)) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("'set' command"), "{error}");
}
