//! Many acquires on one connection share calls, with the same results as single calls.

#![cfg(feature = "redis")]

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use crate::support::redis::{RedisLock, acquire, token, world};
use crate::support::server::{Fault, Server};
use crate::support::{World, ms};
use dlock::redis::Redis;
use dlock::{BackendError, Handle, LockKey, Runtime, TryAcquireError};

type Answer = Result<Handle<Redis<World>>, TryAcquireError>;

/// The first acquires of a crowd, which are sent as single calls since so few are in progress.
const FIRST: usize = 4;

fn numbered(number: usize) -> LockKey {
    LockKey::new("crowd", &number.to_string()).unwrap()
}

/// Returns a lock with an open connection.
fn opened() -> (World, Server, RedisLock) {
    let (world, server, lock) = world();
    world.run(acquire(&world, &lock).release()).unwrap();
    server.take_verbs();
    (world, server, lock)
}

/// Runs `count` acquires at the same time, each for its own key; returns the answers.
fn crowd(world: &World, lock: &RedisLock, count: usize) -> BTreeMap<usize, Answer> {
    let answers = Arc::new(Mutex::new(BTreeMap::new()));
    for number in 0..count {
        let (lock, answers) = (lock.clone(), Arc::clone(&answers));
        world.spawn(async move {
            let answer = lock.try_acquire(&numbered(number)).await;
            answers.lock().unwrap().insert(number, answer);
        });
    }
    world.pass(ms(300));
    std::mem::take(&mut *answers.lock().unwrap())
}

fn granted(answers: &BTreeMap<usize, Answer>) -> usize {
    answers.values().filter(|answer| answer.as_ref().is_ok_and(|handle| handle.fence() == token(1))).count()
}

/// Returns the number of claims in shared calls, from the server's log.
fn shared(server: &Server) -> usize {
    server.log().iter().filter(|line| line.contains(" acquire_many ")).count()
}

#[test]
fn a_crowd_shares_calls_and_each_is_granted_its_own() {
    let (world, server, lock) = opened();
    let answers = crowd(&world, &lock, FIRST + 40);
    assert_eq!(granted(&answers), FIRST + 40);
    assert_eq!(server.take_verbs(), "EVALSHA EVALSHA EVALSHA EVALSHA EVAL EVAL EVAL");
    for (number, answer) in &answers {
        let holder = server.value(&numbered(*number).owner_key());
        assert_eq!(holder.as_deref(), Some(answer.as_ref().unwrap().owner().as_str()));
    }
    // The first crowd holds the keys, and the server now knows the script.
    let refused = crowd(&world, &lock, FIRST + 40);
    assert!(
        refused.values().all(|answer| matches!(answer, Err(TryAcquireError::Taken { .. }))),
        "{refused:?}"
    );
    assert_eq!(server.take_verbs(), "EVALSHA EVALSHA EVALSHA EVALSHA EVALSHA EVALSHA EVALSHA");
}

#[test]
fn few_concurrent_claims_are_sent_as_single_calls() {
    let (world, server, lock) = opened();
    assert_eq!(granted(&crowd(&world, &lock, FIRST)), FIRST);
    assert_eq!(shared(&server), 0);
    // The first acquires are no longer in progress.
    assert_eq!(crowd(&world, &lock, FIRST).len(), FIRST);
    assert_eq!(shared(&server), 0);
}

#[test]
fn an_error_of_one_claim_does_not_affect_others() {
    let (world, server, lock) = opened();
    server.set(&numbered(10).fence_key(), "many");
    let answers = crowd(&world, &lock, FIRST + 16);
    assert_eq!(granted(&answers), FIRST + 15);
    let error = answers[&10].as_ref().unwrap_err();
    assert!(error.to_string().contains("not an integer"), "{error}");
}

#[test]
fn a_server_without_shared_calls_gets_single_calls() {
    let (world, server, lock) = opened();
    let cross = "CROSSSLOT Keys in request don't hash to the same slot";
    server.faults([Fault::None, Fault::None, Fault::None, Fault::None, Fault::Error(cross)]);
    let answers = crowd(&world, &lock, FIRST + 16);
    assert_eq!((granted(&answers), shared(&server)), (FIRST + 16, 0));
    server.take_verbs();
    assert_eq!(crowd(&world, &lock, FIRST + 16).len(), FIRST + 16);
    assert_eq!(server.take_verbs().split(' ').count(), FIRST + 16, "shared calls are not tried again");
}

#[test]
fn a_transient_error_does_not_end_shared_calls() {
    let (world, server, lock) = opened();
    server.faults([
        Fault::None,
        Fault::None,
        Fault::None,
        Fault::None,
        Fault::Error("BUSY running a script"),
    ]);
    let answers = crowd(&world, &lock, FIRST + 16);
    assert_eq!((granted(&answers), shared(&server)), (FIRST + 16, 0));
    server.take_verbs();
    assert_eq!(crowd(&world, &lock, FIRST + 16).len(), FIRST + 16);
    assert_eq!(server.take_verbs(), "EVALSHA EVALSHA EVALSHA EVALSHA EVAL");
}

#[test]
fn a_script_the_server_forgot_is_loaded_again() {
    let (world, server, lock) = opened();
    let answers = crowd(&world, &lock, FIRST + 16);
    assert_eq!((granted(&answers), shared(&server)), (FIRST + 16, 16));
    server.forget_scripts();
    assert_eq!(crowd(&world, &lock, FIRST + 16).len(), FIRST + 16);
    assert_eq!(shared(&server), 16, "each claim was sent as a single call");
    server.take_verbs();
    for last in ["EVAL", "EVALSHA"] {
        crowd(&world, &lock, FIRST + 16);
        assert_eq!(server.take_verbs(), format!("EVALSHA EVALSHA EVALSHA EVALSHA {last}"));
    }
}

#[test]
fn claims_of_a_broken_shared_call_fail_without_leaving_keys() {
    let (world, server, lock) = opened();
    server.faults([Fault::None, Fault::None, Fault::None, Fault::None, Fault::Reset]);
    let answers = crowd(&world, &lock, FIRST + 16);
    let cut =
        |answer: &Answer| matches!(answer, Err(TryAcquireError::Backend(BackendError::Disconnected { .. })));
    assert_eq!(granted(&answers), FIRST);
    assert_eq!(answers.values().filter(|answer| cut(answer)).count(), 16, "{answers:?}");
    assert_eq!(shared(&server), 16, "all were executed");
    world.pass(ms(1000));
    for (number, answer) in &answers {
        assert_eq!(server.value(&numbered(*number).owner_key()).is_some(), answer.is_ok());
    }
}

/// Polls each acquire of a crowd once, lets 1 ms pass after the acquire number `after` if there is one, and
/// drops all.
fn abandon(world: &World, lock: &RedisLock, count: usize, after: Option<usize>) {
    let keys: Vec<_> = (0..count).map(numbered).collect();
    let mut asking: Vec<Pin<Box<dyn Future<Output = Answer>>>> = Vec::new();
    for (number, key) in keys.iter().enumerate() {
        let mut acquire: Pin<Box<dyn Future<Output = Answer>>> = Box::pin(lock.try_acquire(key));
        assert!(acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        asking.push(acquire);
        if after == Some(number) {
            // Long enough to send, and too short for a timeout.
            world.pass(ms(1));
        }
    }
}

#[test]
fn a_dropped_claim_holds_nothing_before_or_after_the_call() {
    for after in [None, Some(FIRST + 3), Some(FIRST + 15), Some(FIRST + 19)] {
        let (world, server, lock) = opened();
        abandon(&world, &lock, FIRST + 20, after);
        world.pass(ms(1000));
        let stored: Vec<_> =
            (0..FIRST + 20).filter(|number| server.value(&numbered(*number).owner_key()).is_some()).collect();
        assert_eq!(stored, Vec::<usize>::new(), "{after:?}: {:#?}", server.log());
        let sent = after.map_or(0, |number| number + 1 - FIRST);
        assert_eq!(shared(&server), sent, "claims dropped before are not sent");
    }
}

#[test]
fn a_dropped_claim_is_left_out_of_the_call() {
    let (world, server, lock) = opened();
    let keys: Vec<_> = (0..FIRST + 3).map(numbered).collect();
    let mut asking: Vec<_> = keys.iter().map(|key| Box::pin(lock.try_acquire(key))).collect();
    for acquire in &mut asking {
        assert!(acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let stays = asking.pop().unwrap();
    drop(asking);
    world.run(stays).unwrap();
    assert_eq!(shared(&server), 1, "{:#?}", server.log());
}

#[test]
fn a_call_without_waiters_keeps_no_connection_open() {
    let (world, server, lock) = opened();
    server.faults([Fault::None, Fault::None, Fault::None, Fault::None, Fault::LoseAnswer]);
    let answers = crowd(&world, &lock, FIRST + 16);
    assert_eq!(granted(&answers), FIRST);
    drop(answers);
    drop(lock);
    world.pass(ms(10_000));
    assert_eq!(world.tasks(), 0);
}
