//! The lock library under failures: grants that arrive after the caller's deadline, lost answers, servers
//! that restart, dropped futures.
//!
//! The list of tests is from `distributed-coordination-part-018`, sections 31, "Failure Tests", and 32.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::counts::Counts;
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
/// The longest time by which a server drops a key after its TTL.
const GRACE: Duration = Duration::from_millis(150);
/// A TTL longer than any test, so that no lease expires.
const LONG: Duration = Duration::from_secs(60);
/// The duration of a cut: longer than the timeout of a release's first request.
const CUT: Span = Span::from_millis(1500);

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
            "the work stops at its end, no later"
        );
        assert!(b.lock.try_acquire(&key()).await.is_err(), "no other holder before the work has stopped");
        lab.sleep(GRACE).await;
        let next = b.lock.try_acquire(&key()).await.unwrap();
        assert_eq!(next.fence().as_u64(), 2);
        handle.leave();
        next.leave();
    });
}

/// Part 18, exercise 3: "stop work when renewal fails", and "emits renewal failure metric".
#[test]
fn failed_renewals_are_counted_and_end_the_work() {
    in_lab(1, |lab| async move {
        let counts = Counts::default();
        let _counting = metrics::set_default_local_recorder(&counts);
        let renewals = |outcome| counts.of_outcome("redis_lease_extend_total", outcome);
        let a = lab.member(0, TTL);
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        let cut = Cut::between(a.name(), "redis");
        lab.control.after(Duration::from_secs(3), move |control| _ = control.strike(cut));
        let held = handle.while_held(Cap(LONG), std::future::pending::<()>()).await;
        assert_eq!(held, Err(LostError::Expired));
        assert!(renewals("done") >= 2, "{}", renewals("done"));
        let failed = renewals("timeout") + renewals("error");
        assert!(failed >= 1 && renewals("not_owner") == 0, "{failed}");
        assert_eq!(counts.of("redis_lease_lost_total"), 1);
        handle.leave();
    });
}

/// Writes `body` to the resource with the token of `handle`, from the process `by`.
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
fn the_resource_refuses_a_holder_paused_past_its_ttl() {
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
fn a_release_without_an_answer_is_sent_again() {
    in_lab(1, |lab| async move {
        let a = lab.member(0, LONG);
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        lab.control.strike(Cut { lasts: Some(CUT), ..Cut::one_way(a.name(), "redis") });
        assert_eq!(handle.release().await, Ok(Released::Done));
        lab.sleep(Duration::from_secs(1)).await;
        assert_eq!(lab.owner().await, None);
    });
}

#[test]
fn a_repeated_release_does_not_release_the_next_owner() {
    in_lab(2, |lab| async move {
        // The server knows the script, so a release is one request.
        let (a, b) = (warm(&lab, LONG).await, lab.member(1, LONG));
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        lab.control.strike(Cut { lasts: Some(CUT), ..Cut::one_way("redis", a.name()) });
        let next = b.spawn_acquire(&key(), Duration::from_secs(1));
        assert_eq!(handle.release().await, Ok(Released::Done), "the first request ended the lease");
        lab.sleep(Duration::from_secs(5)).await;
        let next = next.granted().unwrap();
        assert_eq!(lab.owner().await.as_deref(), Some(next.owner().as_str()));
        assert!(next.is_valid());
        next.leave();
    });
}

#[test]
fn a_release_that_never_arrives_fails_as_unconfirmed() {
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

/// Drops an acquire `time` after it was pending for the `nth` time, and asserts that it leaves no key.
/// Returns true if the acquire ended before.
fn acquire_dropped_at(nth: usize, time: Duration) -> bool {
    in_lab(1, |lab| async move {
        let a = lab.member(0, LONG);
        let acquired = drop_when_pending(&lab.control, nth, time, a.lock.try_acquire(&key())).await;
        let ended = acquired.is_some();
        drop(acquired);
        // Time for requests in flight, and for the release that follows them.
        lab.sleep(Duration::from_millis(200)).await;
        assert_eq!(lab.owner().await, None, "pending for the {nth}th time, dropped after {time:?}");
        ended
    })
}

#[test]
fn an_acquire_dropped_at_any_await_leaves_no_key() {
    for millis in 0..8 {
        let dropped =
            (1..).take_while(|nth| !acquire_dropped_at(*nth, Duration::from_millis(millis))).count();
        assert!(
            dropped >= 3,
            "it waits for the connection, and for the script by digest and by text: {dropped}"
        );
    }
}

#[test]
fn an_acquire_dropped_at_any_time_leaves_no_key() {
    // One run for each half millisecond, so that some drop while the request or its answer is in flight.
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

/// Returns a client with an open connection to a server that knows the scripts: each operation takes one
/// round trip.
async fn warm(lab: &Lab, ttl: Duration) -> Member {
    let a = lab.member(0, ttl);
    assert_eq!(a.lock.try_acquire(&key()).await.unwrap().release().await, Ok(Released::Done));
    a
}

#[test]
fn an_acquire_after_a_lost_answer_gets_the_same_token() {
    in_lab(1, |lab| async move {
        let a = warm(&lab, LONG).await;
        let reset = Reset::between(a.name(), "redis");
        // By then the server has executed the script, and its answer is in flight.
        lab.control.after(LATENCY * 3 / 2, move |control| _ = control.strike(reset));
        let began = a.now();
        let handle = a.lock.acquire(&key(), a.within(Duration::from_secs(10))).await.unwrap();
        assert_eq!(handle.fence().as_u64(), 2);
        assert_eq!(lab.counter().await, Some(2), "granted once");
        assert_eq!(lab.owner().await.as_deref(), Some(handle.owner().as_str()));
        assert!(
            handle.valid_until() < began + LONG,
            "validity counts from the first request, not from the second"
        );
        assert_eq!(handle.release().await, Ok(Released::Done));
        assert_eq!(lab.owner().await, None);
    });
}

#[test]
fn a_restarted_server_gets_the_scripts_again() {
    in_lab(1, |lab| async move {
        let a = warm(&lab, LONG).await;
        let held = a.lock.try_acquire(&key()).await.unwrap();
        lab.restart_redis().await;
        // The connection and the scripts are gone; the client has noticed the reset by now.
        lab.sleep(LATENCY * 2).await;
        held.renew().await.unwrap();
        assert_eq!(held.release().await, Ok(Released::Done));
        let next = a.lock.try_acquire(&key()).await.unwrap();
        assert_eq!(next.fence().as_u64(), 3, "the counter was on the disk");
        next.leave();
    });
}

#[test]
fn scripts_that_the_server_forgot_are_sent_as_text() {
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
            // Time for the client to notice the reset: then no call fails on the dead connection.
            lab.sleep(LATENCY * 2).await;
            let handle = a.lock.try_acquire(&key()).await.unwrap();
            assert_eq!(handle.fence().as_u64(), round);
            assert_eq!(handle.release().await, Ok(Released::Done));
        }
    });
}
