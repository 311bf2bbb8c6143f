//! Many releases on one connection share calls, with the same results as single calls.

#![cfg(feature = "redis")]

use std::sync::{Arc, Mutex};

use crate::support::redis::{RedisLock, lock_with, world};
use crate::support::server::{Fault, Server};
use crate::support::{World, ms};
use dlock::redis::{Redis, Waiting};
use dlock::{Handle, LockKey, ReleaseError, Released, Runtime};

type Answers = Vec<Result<Released, ReleaseError>>;

/// The first releases of a crowd, which are sent as single calls since so few are in progress.
const FIRST: usize = 4;

fn numbered(number: usize) -> LockKey {
    LockKey::new("crowd", &number.to_string()).unwrap()
}

/// Acquires `count` locks, one after the other. The last of them has been released once, so that the
/// connection knows the commands of its server.
fn held(world: &World, server: &Server, lock: &RedisLock, count: usize) -> Vec<Handle<Redis<World>>> {
    let taken = |number| world.run(async { lock.try_acquire(&numbered(number)).await.unwrap() });
    world.run(taken(count).release()).unwrap();
    let handles = (0..count).map(taken).collect();
    server.take_verbs();
    handles
}

/// Releases all at the same time; returns the answers in the order of the handles.
fn crowd(world: &World, handles: Vec<Handle<Redis<World>>>) -> Answers {
    let answers = Arc::new(Mutex::new(Vec::new()));
    for (number, handle) in handles.into_iter().enumerate() {
        let answers = Arc::clone(&answers);
        world.spawn(async move {
            let answer = handle.release().await;
            answers.lock().unwrap().push((number, answer));
        });
    }
    world.pass(ms(300));
    let mut answers = std::mem::take(&mut *answers.lock().unwrap());
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Returns the number of answers that say that the lease has ended now.
fn done(answers: &Answers) -> usize {
    answers.iter().filter(|answer| **answer == Ok(Released::Done)).count()
}

/// Returns the number of releases in shared calls, from the server's log.
fn shared(server: &Server) -> usize {
    server.log().iter().filter(|line| line.contains(" release_many ")).count()
}

/// Returns the number of keys that the server still has.
fn stored(server: &Server, count: usize) -> usize {
    (0..count).filter(|number| server.value(&numbered(*number).owner_key()).is_some()).count()
}

#[test]
fn a_crowd_shares_calls_and_each_ends_its_own_lease() {
    let (world, server, lock) = world();
    let mut handles = held(&world, &server, &lock, FIRST + 40);
    let kept = handles.remove(20);
    let answers = crowd(&world, handles);
    assert_eq!((answers.len(), done(&answers)), (FIRST + 39, FIRST + 39));
    assert_eq!(server.take_verbs(), "EVALSHA EVALSHA EVALSHA EVALSHA EVAL EVAL EVAL");
    assert_eq!((shared(&server), stored(&server, FIRST + 40)), (39, 1));
    let holder = server.value(&kept.key().owner_key());
    assert_eq!(holder.as_deref(), Some(kept.owner().as_str()));
    // The server now knows the script.
    crowd(&world, held(&world, &server, &lock, 16).into_iter().chain([kept]).collect());
    assert_eq!(server.take_verbs(), "EVALSHA EVALSHA EVALSHA EVALSHA EVALSHA");
}

#[test]
fn few_concurrent_releases_are_sent_as_single_calls() {
    let (world, server, lock) = world();
    for _ in 0..2 {
        let handles = held(&world, &server, &lock, FIRST);
        assert_eq!(done(&crowd(&world, handles)), FIRST);
        assert_eq!(shared(&server), 0);
    }
}

#[test]
fn a_lease_of_another_owner_is_kept() {
    let (world, server, lock) = world();
    let handles = held(&world, &server, &lock, FIRST + 16);
    server.set(&numbered(10).owner_key(), "another");
    let answers = crowd(&world, handles);
    assert_eq!((answers[10].clone(), done(&answers)), (Ok(Released::NotOwner), FIRST + 15));
    assert_eq!(server.value(&numbered(10).owner_key()).as_deref(), Some("another"));
}

#[test]
fn a_server_with_a_command_of_its_own_gets_that_command() {
    let (world, server, lock) = world();
    server.own_commands(Some("DELEX"));
    let handles = held(&world, &server, &lock, FIRST + 16);
    assert_eq!(done(&crowd(&world, handles)), FIRST + 16);
    assert_eq!((shared(&server), stored(&server, FIRST + 16)), (0, 0));
    assert_eq!(server.take_verbs().matches("DELEX").count(), FIRST + 16);
}

#[test]
fn each_is_sent_by_itself_until_the_commands_of_the_server_are_known() {
    let (world, server, lock) = world();
    let taken = |number| world.run(async { lock.try_acquire(&numbered(number)).await.unwrap() });
    let handles: Vec<_> = (0..FIRST + 16).map(taken).collect();
    assert_eq!(done(&crowd(&world, handles)), FIRST + 16);
    assert_eq!(shared(&server), 0);
}

#[test]
fn a_server_without_shared_calls_gets_single_calls() {
    let (world, server, lock) = world();
    let cross = "CROSSSLOT Keys in request don't hash to the same slot";
    let handles = held(&world, &server, &lock, FIRST + 16);
    server.faults([Fault::None, Fault::None, Fault::None, Fault::None, Fault::Error(cross)]);
    assert_eq!(done(&crowd(&world, handles)), FIRST + 16);
    assert_eq!(stored(&server, FIRST + 16), 0);
    let handles = held(&world, &server, &lock, FIRST + 16);
    assert_eq!(done(&crowd(&world, handles)), FIRST + 16);
    assert_eq!(server.take_verbs().split(' ').count(), FIRST + 16, "shared calls are not tried again");
    assert_eq!(shared(&server), 0);
}

#[test]
fn releases_of_a_broken_shared_call_are_sent_again() {
    let (world, server, lock) = world();
    let handles = held(&world, &server, &lock, FIRST + 16);
    server.faults([Fault::None, Fault::None, Fault::None, Fault::None, Fault::Reset]);
    let answers = crowd(&world, handles);
    // The call was executed, and its answers got lost: the second request finds nothing.
    let ended = |answer: &Result<_, _>| matches!(answer, Ok(Released::Done | Released::NotOwner));
    assert!(answers.len() == FIRST + 16 && answers.iter().all(ended), "{answers:?}");
    assert_eq!(stored(&server, FIRST + 16), 0);
}

#[test]
fn a_dropped_handle_of_a_crowd_releases_in_a_shared_call() {
    let (world, server, lock) = world();
    drop(held(&world, &server, &lock, FIRST + 16));
    world.pass(ms(300));
    assert_eq!((shared(&server), stored(&server, FIRST + 16)), (16, 0));
}

#[test]
fn waiters_that_poll_are_not_notified() {
    let (world, server, lock) = lock_with(|options| options.waiting = Waiting::Polled);
    let handles = held(&world, &server, &lock, FIRST + 16);
    assert_eq!(done(&crowd(&world, handles)), FIRST + 16);
    assert_eq!((shared(&server), server.announced()), (16, 0));
}

#[test]
fn waiters_that_are_called_are_notified_of_each_lease() {
    let (world, server, lock) = world();
    let handles = held(&world, &server, &lock, FIRST + 16);
    let before = server.announced();
    assert_eq!(done(&crowd(&world, handles)), FIRST + 16);
    assert_eq!((shared(&server), server.announced() - before), (16, FIRST + 16));
}
