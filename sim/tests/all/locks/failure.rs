//! The lock library when something fails: grants that arrive after the caller's deadline, lost answers,
//! servers that restart, callers that leave.
//!
//! The list is that of `distributed-coordination-part-018`, sections 31, "Failure Tests", and 32.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lab::{LATENCY, Lab, Member, in_lab, key};
use bytes::Bytes;
use dlock::redis::Redis;
use dlock::{Cap, FencingToken, Handle, LostError, ReleaseError, Released, Runtime, timeout_at};
use resource::client::PutAnswer;
use resource::fence::{Guard, Refusal};
use resource::store::Write;
use resource::{OwnerToken, ResourceKey};
use sim::Span;
use sim::faults::{Cut, Pause, Reset};
use sim::world::runtime::SimRuntime;

use crate::support::scripts::drop_when_pending;

const TTL: Duration = Duration::from_secs(2);
const GRACE: Duration = Duration::from_millis(150);
/// Long enough that nothing in a test is explained by a lease that ran out.
const LONG: Duration = Duration::from_secs(60);
/// Longer than a release waits for its first answer.
const HELD_UP: Span = Span::from_millis(1500);

#[test]
fn the_work_stops_before_the_validity_ends_when_renewals_fail() {
    in_lab(2, |lab| async move {
        let (a, b) = lab.pair(TTL);
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        let cut = Cut::between(a.name(), "redis");
        lab.control.after(Duration::from_secs(3), move |control| _ = control.strike(cut));
        let last_worked = Arc::new(Mutex::new(a.now()));
        let (note, runtime) = (Arc::clone(&last_worked), a.runtime.clone());
        let work = async move {
            loop {
                *note.lock().unwrap() = runtime.now();
                runtime.sleep_until(runtime.now() + Duration::from_millis(1)).await;
            }
        };
        let lost: Result<(), _> = handle.while_held(Cap(LONG), work).await;
        assert_eq!(lost, Err(LostError::Expired));
        assert!(*last_worked.lock().unwrap() < handle.valid_until());
        assert!(
            a.now().saturating_since(handle.valid_until()) < Duration::from_millis(1),
            "at its end, no later"
        );
        assert!(b.lock.try_acquire(&key()).await.is_err(), "no other holder before the work has stopped");
        lab.sleep(GRACE).await;
        let next = b.lock.try_acquire(&key()).await.unwrap();
        assert_eq!(next.fence().as_u64(), 2);
        handle.leave();
        next.leave();
    });
}

/// Writes `body` to the resource under `token`.
async fn write(lab: &Lab, by: &Member, handle: &Handle<Redis<SimRuntime>>, body: &'static str) -> PutAnswer {
    let write = Write {
        guard: Guard::token(FencingToken::new(handle.fence().as_u64()).unwrap()),
        owner: OwnerToken::new(handle.owner().as_str()).ok(),
        body: Bytes::from_static(body.as_bytes()),
    };
    let resource = ResourceKey::new(key().name()).unwrap();
    lab.resource(by).put(&resource, &write, by.within(LONG)).await.unwrap()
}

#[test]
fn the_resource_refuses_the_holder_that_slept_past_its_ttl() {
    in_lab(2, |lab| async move {
        let (a, b) = lab.pair(TTL);
        let stale = a.lock.try_acquire(&key()).await.unwrap();
        let pause = lab.control.strike(Pause::of(a.name()));
        lab.sleep(TTL + GRACE).await;
        let holder = b.lock.try_acquire(&key()).await.unwrap();
        assert!(holder.fence() > stale.fence());
        assert_eq!(write(&lab, &b, &holder, "B").await, PutAnswer::Accepted { version: 1 });
        pause.heal();
        let (seen, got) = (holder.fence(), stale.fence());
        assert_eq!(
            write(&lab, &a, &stale, "A, stale").await,
            PutAnswer::Refused(Refusal::Stale { seen, got })
        );
        assert_eq!(stale.release().await, Ok(Released::NotOwner));
        assert_eq!(holder.release().await, Ok(Released::Done));
    });
}

#[test]
fn a_release_that_is_held_up_is_sent_again_and_ends_the_lease() {
    in_lab(1, |lab| async move {
        let a = lab.member(0, LONG);
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        lab.control.strike(Cut { lasts: Some(HELD_UP), ..Cut::one_way(a.name(), "redis") });
        assert_eq!(handle.release().await, Ok(Released::Done));
        lab.sleep(Duration::from_secs(1)).await;
        assert_eq!(lab.owner().await, None);
    });
}

#[test]
fn a_release_whose_answer_is_lost_does_not_release_the_next_owner() {
    in_lab(2, |lab| async move {
        // The server knows the script: one request releases.
        let (a, b) = (warm(&lab, LONG).await, lab.member(1, LONG));
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        lab.control.strike(Cut { lasts: Some(HELD_UP), ..Cut::one_way("redis", a.name()) });
        let next = b.spawn_acquire(&key(), Duration::from_secs(1));
        assert_eq!(handle.release().await, Ok(Released::Done), "the first one had ended it");
        lab.sleep(Duration::from_secs(5)).await;
        let next = next.granted().unwrap();
        assert_eq!(lab.owner().await.as_deref(), Some(next.owner().as_str()));
        assert!(next.is_valid());
        next.leave();
    });
}

#[test]
fn a_release_that_never_arrives_says_so_and_the_ttl_ends_the_lease() {
    in_lab(2, |lab| async move {
        let (a, b) = lab.pair(TTL);
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        lab.control.strike(Cut::between(a.name(), "redis"));
        let error = handle.release().await.unwrap_err();
        let ReleaseError::Unconfirmed { ends_in, .. } = error else { panic!("{error}") };
        assert_eq!(ends_in, TTL);
        let next = b.lock.acquire(&key(), b.within(TTL)).await.unwrap();
        assert_eq!(next.fence().as_u64(), 2);
        next.leave();
    });
}

/// Drops an acquire at its `nth` await point after `time`; whether it had ended before.
fn acquire_dropped_at(nth: usize, time: Duration) -> bool {
    in_lab(1, |lab| async move {
        let a = lab.member(0, LONG);
        let acquired = drop_when_pending(&lab.control, nth, time, a.lock.try_acquire(&key())).await;
        let ended = acquired.is_some();
        drop(acquired);
        // For what is on its way, and for the release behind it.
        lab.sleep(Duration::from_millis(200)).await;
        assert_eq!(lab.owner().await, None, "pending for the {nth}th time, dropped after {time:?}");
        ended
    })
}

#[test]
fn an_acquire_that_is_dropped_leaves_no_key_wherever_it_stood() {
    for millis in 0..8 {
        let dropped =
            (1..).take_while(|nth| !acquire_dropped_at(*nth, Duration::from_millis(millis))).count();
        assert!(
            dropped >= 3,
            "it waits for the connection, the script by its digest, and by its text: {dropped}"
        );
    }
}

#[test]
fn an_acquire_that_is_dropped_leaves_no_key_whenever_that_is() {
    // Every half of a millisecond: also while the request, or its answer, is on its way.
    let mut dropped = 0;
    for halves in 0.. {
        let ended = in_lab(1, |lab| async move {
            let a = lab.member(0, LONG);
            let deadline = a.within(Duration::from_micros(500 * halves));
            let acquired = timeout_at(&a.runtime, deadline, a.lock.try_acquire(&key())).await;
            let ended = acquired.is_ok();
            drop(acquired);
            lab.sleep(Duration::from_millis(200)).await;
            assert_eq!(lab.owner().await, None, "dropped after {halves} half milliseconds");
            ended
        });
        if ended {
            break;
        }
        dropped += 1;
    }
    assert!(dropped > 12, "it takes three round trips: {dropped}");
}

/// A lock on a connection that is open, with scripts that the server knows: one round trip an operation.
async fn warm(lab: &Lab, ttl: Duration) -> Member {
    let a = lab.member(0, ttl);
    assert_eq!(a.lock.try_acquire(&key()).await.unwrap().release().await, Ok(Released::Done));
    a
}

#[test]
fn an_acquire_whose_answer_is_lost_asks_again_and_gets_the_same_token() {
    in_lab(1, |lab| async move {
        let a = warm(&lab, LONG).await;
        let reset = Reset::between(a.name(), "redis");
        // The server has executed the script, the answer is on its way.
        lab.control.after(LATENCY * 3 / 2, move |control| _ = control.strike(reset));
        let began = a.now();
        let handle = a.lock.acquire(&key(), a.within(Duration::from_secs(10))).await.unwrap();
        assert_eq!(handle.fence().as_u64(), 2);
        assert_eq!(lab.counter().await, Some(2), "granted once");
        assert_eq!(lab.owner().await.as_deref(), Some(handle.owner().as_str()));
        assert!(
            handle.valid_until() < began + LONG,
            "it lives since the first request, not since the second"
        );
        assert_eq!(handle.release().await, Ok(Released::Done));
        assert_eq!(lab.owner().await, None);
    });
}

#[test]
fn a_server_that_has_restarted_is_told_the_scripts_again() {
    in_lab(1, |lab| async move {
        let a = warm(&lab, LONG).await;
        let held = a.lock.try_acquire(&key()).await.unwrap();
        lab.restart_redis().await;
        // The connection is gone, which has been heard of by now, and the scripts are.
        lab.sleep(LATENCY * 2).await;
        held.renew().await.unwrap();
        assert_eq!(held.release().await, Ok(Released::Done));
        let next = a.lock.try_acquire(&key()).await.unwrap();
        assert_eq!(next.fence().as_u64(), 3, "the counter was on the disk");
        next.leave();
    });
}

#[test]
fn scripts_that_the_server_forgot_are_sent_by_their_text() {
    in_lab(1, |lab| async move {
        let a = warm(&lab, LONG).await;
        for _ in 0..2 {
            let () = lab.ask(redis::cmd("SCRIPT").arg("FLUSH")).await;
            let handle = a.lock.try_acquire(&key()).await.unwrap();
            let () = lab.ask(redis::cmd("SCRIPT").arg("FLUSH")).await;
            handle.renew().await.unwrap();
            let () = lab.ask(redis::cmd("SCRIPT").arg("FLUSH")).await;
            assert_eq!(handle.release().await, Ok(Released::Done));
        }
        assert_eq!(lab.counter().await, Some(3));
    });
}

#[test]
fn a_connection_that_was_reset_is_replaced() {
    in_lab(1, |lab| async move {
        let a = warm(&lab, LONG).await;
        for round in 2..6 {
            lab.control.strike(Reset::between(a.name(), "redis"));
            // Time for the client to see it: an idle connection costs no failed call.
            lab.sleep(LATENCY * 2).await;
            let handle = a.lock.try_acquire(&key()).await.unwrap();
            assert_eq!(handle.fence().as_u64(), round);
            assert_eq!(handle.release().await, Ok(Released::Done));
        }
    });
}
