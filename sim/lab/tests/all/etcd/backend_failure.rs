//! Locks on the simulated etcd under faults: lost answers, silent members, ended sessions, dropped callers.

use std::time::Duration;

use super::lab::{Client, LONG, Lab, SESSION, TTL, key, other_key};
use super::support::{MEMBERS, in_cluster};
use crate::support::scripts::drop_when_pending;
use dlock::etcd::Etcd as Locks;
use dlock::{
    AcquireError, Acquisition, Answer, Backend, BackendError, Claim, LostError, Owner, Released, RenewError,
    Runtime, TryAcquireError,
};
use sim::Span;
use sim::faults::{Crash, Cut, Delay, Reset};
use sim::world::runtime::SimRuntime;

/// Returns a client with an open session on the first member.
async fn warm(lab: &Lab, process: &str) -> Client {
    let client = lab.client(process);
    client.lock.try_acquire(&other_key()).await.unwrap().release().await.unwrap();
    client
}

#[test]
fn a_grant_whose_answer_was_lost_keeps_token_and_place() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b) = (warm(&lab, "a").await, warm(&lab, "b").await);
        // The first member's answers are lost; the client asks the next member.
        etcd.control.strike(Cut::one_way(MEMBERS[0], a.name()));
        let began = etcd.now();
        let acquiring = a.spawn_acquire(&key(), LONG);
        etcd.at(began + 100).await;
        let revision = etcd.cluster.revision();
        let behind = b.spawn_acquire(&key(), LONG);
        let handle = acquiring.wait(&etcd.control).await.unwrap();
        assert!(etcd.now() - began >= 1000, "the request had to be repeated");
        assert_eq!(handle.fence().as_u64(), revision.unsigned_abs(), "the revision of the first put");
        assert!(!behind.is_over());
        assert_eq!(lab.keys().await, 2);
        assert_eq!(handle.release().await, Ok(Released::Done));
        behind.wait(&etcd.control).await.unwrap();
    });
}

#[test]
fn a_put_that_arrives_after_its_release_changes_nothing() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let a = warm(&lab, "a").await;
        // The put takes 3 s to the first member; the release on the same stream arrives even later.
        let delay = Delay::one_way(a.name(), MEMBERS[0], Span::from_secs(3));
        etcd.control.strike(delay.clone());
        etcd.control.after(Duration::from_millis(50), move |control| _ = control.strike(delay));
        let began = etcd.now();
        let error = a.lock.acquire(&key(), a.within(Duration::from_millis(100))).await.unwrap_err();
        assert_eq!(error, AcquireError::Unavailable(BackendError::NoAnswer));
        // The release gets no answer either, and then goes to the next member.
        etcd.at(began + 2900).await;
        let (executed, guarded) = (etcd.cluster.executed(), etcd.cluster.revision());
        etcd.at(began + 3100).await;
        assert!(etcd.cluster.executed() > executed, "the put was executed now");
        assert_eq!(etcd.cluster.revision(), guarded, "and changed nothing");
        assert_eq!(lab.keys().await, 0);
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        assert_eq!(handle.release().await, Ok(Released::Done), "the session goes on");
    });
}

/// The guard is gone with the revoked lease, so that the session's puts would be refused for ever.
#[test]
fn a_session_whose_guard_is_gone_is_replaced() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let a = warm(&lab, "a").await;
        // A release behind a put without an answer moves the guard.
        etcd.control.strike(Delay::one_way(a.name(), MEMBERS[0], Span::from_secs(3)));
        a.lock.acquire(&key(), a.within(Duration::from_millis(100))).await.unwrap_err();
        etcd.pass(4000).await;
        lab.revoke_all().await;
        let executed = etcd.cluster.executed();
        let error = a.lock.try_acquire(&key()).await.unwrap_err();
        assert_eq!(error, TryAcquireError::Backend(BackendError::SessionLost { reported: true }));
        assert!(etcd.cluster.executed() < executed + 9, "it does not ask again and again");
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        assert_eq!(handle.release().await, Ok(Released::Done));
    });
}

/// Drops an acquire `millis` ms after its `nth` await point. If `is_held`, another client holds the lock.
/// Returns true if the acquire ended before.
fn acquire_dropped_at(nth: usize, millis: u64, is_held: bool) -> bool {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b, key) = (lab.client("a"), lab.client("b"), key());
        let held = if is_held { Some(b.lock.try_acquire(&key).await.unwrap()) } else { None };
        let acquiring = a.lock.acquire(&key, a.within(Duration::from_millis(300)));
        let acquired = drop_when_pending(&etcd.control, nth, Duration::from_millis(millis), acquiring).await;
        let ended = acquired.is_some();
        drop(acquired);
        // Time for requests in flight, and for the release behind them.
        etcd.pass(200).await;
        let place = format!("pending for the {nth}th time, dropped after {millis} ms, held: {is_held}");
        assert_eq!(lab.keys().await, usize::from(is_held), "{place}");
        drop(held);
        ended
    })
}

#[test]
fn a_dropped_acquire_leaves_no_key_at_any_await_point() {
    for is_held in [false, true] {
        for millis in [0, 1, 2, 3, 20] {
            let ends = (1..100).find(|&nth| acquire_dropped_at(nth, millis, is_held)).expect("it ends");
            assert!(ends > 3, "it awaits connection, session and transaction");
        }
    }
}

#[test]
fn a_waiter_whose_lease_ended_does_not_hold() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b) = (lab.client("a"), lab.client("b"));
        let first = a.lock.try_acquire(&key()).await.unwrap();
        let mut observer = etcd.client_of("b", 0).await;
        let of_a = observer.leases().await.unwrap().leases()[0].id();
        let waiting = b.spawn_acquire(&key(), LONG);
        etcd.pass(50).await;
        // The waiter's key is deleted, and soon after the holder releases: the waiter wakes up before it
        // learns that its lease has ended.
        for lease in observer.leases().await.unwrap().leases() {
            if lease.id() != of_a {
                observer.lease_revoke(lease.id()).await.unwrap();
            }
        }
        let third = lab.client("a");
        let behind = third.spawn_acquire(&key(), LONG);
        etcd.pass(50).await;
        first.release().await.unwrap();
        let held = behind.wait(&etcd.control).await.unwrap();
        etcd.pass(2000).await;
        assert!(!waiting.is_over(), "it must queue again, behind the third client");
        assert!(held.is_valid());
        let token = held.fence();
        held.release().await.unwrap();
        let late = waiting.wait(&etcd.control).await.unwrap();
        assert!(late.fence() > token);
        assert_eq!(lab.owner_of(&key()).await.as_deref(), Some(late.owner().as_str()));
    });
}

#[test]
fn a_revoked_session_loses_its_locks_and_is_replaced() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let a = lab.client("a");
        let (one, other) =
            (a.lock.try_acquire(&key()).await.unwrap(), a.lock.try_acquire(&other_key()).await.unwrap());
        lab.revoke_all().await;
        assert_eq!(one.renew().await, Err(RenewError::Lost(LostError::NotOwner)));
        assert_eq!(other.renew().await, Err(RenewError::Lost(LostError::NotOwner)));
        let again = a.lock.try_acquire(&key()).await.unwrap();
        assert!(again.fence() > one.fence());
        assert_eq!(one.release().await, Ok(Released::NotOwner), "it does not end the new lease");
        again.renew().await.unwrap();
        assert_eq!(lab.leases().await, 1);
    });
}

#[test]
fn a_holder_cut_off_stops_before_the_next_holds() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b) = (lab.client("a"), lab.client("b"));
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        handle.keep_alive(dlock::Cap(LONG));
        let waiting = b.spawn_acquire(&key(), LONG);
        etcd.at(10_000).await;
        (0..3).for_each(|member| etcd.cut(a.name(), member));
        handle.lost().await;
        assert!(etcd.now() >= 10_000 + 1_000, "renewed until then");
        assert!(!waiting.is_over(), "no other holder before the work has stopped");
        let next = waiting.wait(&etcd.control).await.unwrap();
        assert!(next.fence() > handle.fence());
        assert!(etcd.now() < 10_000 + 6000 + 1500, "but soon after: {}", etcd.now());
        (0..3).for_each(|member| etcd.heal(a.name(), member));
        assert_eq!(handle.release().await, Ok(Released::NotOwner));
        next.renew().await.unwrap();
    });
}

#[test]
fn validity_counts_from_the_sending_of_the_keepalive() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let a = lab.client("a");
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        etcd.at(1500).await;
        let sent = a.runtime.now();
        let lasts = Some(Span::from_millis(800));
        etcd.control.strike(Cut { lasts, ..Cut::one_way(MEMBERS[0], a.name()) });
        handle.renew().await.unwrap();
        assert!(a.runtime.now() >= sent + Duration::from_millis(800));
        assert!(handle.valid_until() > sent, "it was extended");
        assert!(handle.valid_until() <= sent + TTL, "counted from the sending");
    });
}

#[test]
fn a_new_leader_changes_nothing_for_the_holder() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b) = (lab.client("a"), lab.client("b"));
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        handle.keep_alive(dlock::Cap(LONG));
        let waiting = b.spawn_acquire(&key(), LONG);
        etcd.at(3000).await;
        assert!(etcd.cluster.move_leader(1));
        etcd.at(20_000).await;
        // The leader falls silent, and another takes over.
        etcd.cluster.isolate(1, true);
        etcd.at(40_000).await;
        assert!(handle.is_valid());
        assert!(!waiting.is_over());
        assert_eq!(handle.release().await, Ok(Released::Done));
        waiting.wait(&etcd.control).await.unwrap();
    });
}

#[test]
fn a_member_without_quorum_is_an_error_by_the_deadline() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let lone = lab.client_at("a", &["etcd-1:2379"]);
        etcd.cluster.isolate(0, true);
        let began = lone.runtime.now();
        let error = lone.lock.acquire(&key(), lone.within(Duration::from_millis(2500))).await.unwrap_err();
        let late = lone.runtime.now().saturating_since(began + Duration::from_millis(2500));
        assert!(late < Duration::from_millis(1), "{late:?} after the deadline");
        let expected =
            |error: &BackendError| matches!(error, BackendError::NoAnswer | BackendError::Isolated { .. });
        assert!(matches!(&error, AcquireError::Unavailable(error) if expected(error)), "{error:?}");
        etcd.at(6000).await;
        let error = lone.lock.try_acquire(&key()).await.unwrap_err();
        let TryAcquireError::Backend(BackendError::Isolated { message }) = &error else {
            panic!("{error:?}")
        };
        assert_eq!(message, "etcdserver: no leader");
        // A client that knows the other members moves on to them.
        let other = lab.client("b");
        let handle = other.lock.acquire(&key(), other.within(Duration::from_millis(2500))).await.unwrap();
        handle.release().await.unwrap();
    });
}

#[test]
fn a_waiter_whose_member_loses_quorum_keeps_its_place() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let a = lab.client_at("a", &["etcd-3:2379"]);
        let b = lab.client("b");
        let first = a.lock.try_acquire(&key()).await.unwrap();
        first.keep_alive(dlock::Cap(LONG));
        let waiting = b.spawn_acquire(&key(), LONG);
        etcd.at(1000).await;
        let position = etcd.cluster.revision();
        etcd.cluster.isolate(0, true);
        etcd.at(20_000).await;
        assert!(first.is_valid());
        first.release().await.unwrap();
        let next = waiting.wait(&etcd.control).await.unwrap();
        assert!(etcd.now() < 20_100, "it was woken: {}", etcd.now());
        assert_eq!(next.fence().as_u64(), position.unsigned_abs());
    });
}

/// Returns an acquisition of `waiter` that is queued behind a holder.
async fn queued(waiter: &Client) -> <Locks<SimRuntime> as Backend>::Acquisition {
    let owner = Owner::random(&waiter.runtime, None);
    let claim = Claim { key: key(), owner, ttl: TTL, fenced: true, permits: 1, share: None, queue: None };
    let mut acquisition = waiter.lock.backend().open(claim);
    let answer = acquisition.request(waiter.within(SESSION)).await.unwrap();
    assert!(matches!(answer, Answer::Queued { .. }));
    acquisition
}

#[test]
fn a_wait_ends_if_its_watch_starts_in_compacted_history() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b) = (lab.client("a"), lab.client("b"));
        let first = a.lock.try_acquire(&key()).await.unwrap();
        let mut acquisition = queued(&b).await;
        lab.write_elsewhere(3).await;
        first.release().await.unwrap();
        lab.write_elsewhere(3).await;
        let mut observer = etcd.client_of("b", 0).await;
        observer.compact(etcd.cluster.revision(), None).await.unwrap();
        let began = etcd.now();
        assert_eq!(acquisition.wait(b.within(LONG)).await, Ok(()));
        assert!(etcd.now() - began < 100, "the predecessor's end is in the compacted history");
        let answer = acquisition.request(b.within(SESSION)).await.unwrap();
        assert!(matches!(answer, Answer::Granted { .. }), "{answer:?}");
        assert_eq!(acquisition.release(b.within(SESSION)).await, Ok(Released::Done));
        assert!(!acquisition.needs_cleanup());
    });
}

#[test]
fn a_session_that_ends_during_the_wait_is_reported() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b) = (lab.client("a"), lab.client("b"));
        let _first = a.lock.try_acquire(&key()).await.unwrap();
        let mut acquisition = queued(&b).await;
        lab.revoke_all().await;
        // The watched key was deleted, too, so the watch ends first.
        acquisition.wait(b.within(LONG)).await.ok();
        let answer = acquisition.request(b.within(SESSION)).await;
        assert_eq!(answer, Err(BackendError::SessionLost { reported: true }));
        assert!(!acquisition.needs_cleanup(), "its key is gone");
        assert!(acquisition.request(b.within(SESSION)).await.is_ok(), "a new session");
    });
}

#[test]
fn an_idle_connection_that_breaks_fails_no_call() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let a = warm(&lab, "a").await;
        for member in [0, 1, 2, 0] {
            etcd.control.strike(Reset::between(a.name(), MEMBERS[member]));
            // Time for the client to notice.
            etcd.pass(5).await;
            a.lock.try_acquire(&key()).await.unwrap().release().await.unwrap();
        }
    });
}

#[test]
fn a_crashed_member_is_skipped_within_one_call() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        etcd.at(100).await;
        assert!(etcd.cluster.move_leader(1));
        etcd.control.strike(Crash::of(MEMBERS[0]));
        let a = lab.client("a");
        a.lock.try_acquire(&key()).await.unwrap().release().await.unwrap();
    });
}
