//! Locks on simulated ZooKeeper servers under faults: lost answers, expired sessions, lost leaders.

use std::time::Duration;

use super::lab::{Entries, Member, SESSION, ZooHandle, key, member, member_at, with_entries};
use super::support::{SERVERS, Zoo};
use dlock::{
    AcquireError, BackendError, Cap, LostError, ReleaseError, Released, RenewError, TryAcquireError,
};
use dlock_zookeeper::{Client, ClientOptions, CreateMode};
use sim::faults::{Pause, Reset};
use sim::world::runtime::SimRuntime;

/// Resets all connections of a client when its next entry has been created, before the answer is sent.
fn lose_next_creation(zoo: &Zoo, entries: &Entries) {
    let (zoo, mut done) = (zoo.clone(), false);
    entries.on_entry(move |client| {
        if !std::mem::replace(&mut done, true) {
            zoo.reset_all(client);
        }
    });
}

/// Returns the server that executed the latest request of `client`.
fn server_of(entries: &Entries, client: &str) -> &'static str {
    let executed = entries.take_executed();
    let (latest, ..) = executed.iter().rfind(|(_, by, _)| by == client).unwrap();
    SERVERS.into_iter().find(|server| server == latest).unwrap()
}

/// Returns a plain client beside the locks, as an operator would use.
fn operator(runtime: &SimRuntime) -> Client<SimRuntime> {
    Client::new(runtime.clone(), ClientOptions::new(SERVERS.map(|server| format!("{server}:2181")), SESSION))
}

#[test]
fn a_creation_whose_answer_was_lost_is_recognised() {
    with_entries(|zoo, entries| async move {
        let a = member(&zoo.process("a"));
        lose_next_creation(&zoo, &entries);
        let handle = a.acquire(3000).await;
        assert_eq!(entries.created(), 1, "no second node");
        assert_eq!(entries.zxids(), [handle.fence().as_u64()], "the token of the first creation");
        assert_eq!(zoo.ensemble.sessions(), 1);
        handle.renew().await.unwrap();
        assert_eq!(handle.release().await, Ok(Released::Done));
        assert_eq!(entries.len(), 0);
    });
}

#[test]
fn a_waiter_whose_creation_was_not_answered_keeps_its_place() {
    with_entries(|zoo, entries| async move {
        let (a, b) = zoo.members();
        let holder = a.try_acquire().await;
        lose_next_creation(&zoo, &entries);
        let second = b.wait_in_queue(10_000);
        zoo.pass(100).await;
        let third = member(&b.process).wait_in_queue(10_000);
        zoo.pass(500).await;
        assert_eq!(entries.created(), 3);
        holder.release().await.unwrap();
        zoo.pass(50).await;
        let next = second.granted().unwrap();
        assert_eq!(next.fence().as_u64(), entries.zxids()[0]);
        assert!(!third.is_over());
    });
}

#[test]
fn an_acquire_that_fails_after_its_creation_leaves_no_entry() {
    with_entries(|zoo, entries| async move {
        let a = member(&zoo.process("a"));
        a.try_acquire().await.release().await.unwrap();
        SERVERS.iter().for_each(|server| zoo.cut(server, "a"));
        let error = a.lock.try_acquire(&key()).await.unwrap_err();
        assert_eq!(error, TryAcquireError::Backend(BackendError::NoAnswer));
        assert_eq!((entries.created(), entries.len()), (2, 1));
        SERVERS.iter().for_each(|server| zoo.heal(server, "a"));
        zoo.pass(900).await;
        assert_eq!((entries.len(), entries.expired()), (0, 0), "deleted, not waited for");
    });
}

#[test]
fn a_waiter_whose_session_expires_begins_again_at_the_end() {
    with_entries(|zoo, entries| async move {
        let (a, b) = zoo.members();
        let c = member(&a.process);
        let holder = a.try_acquire().await;
        holder.keep_alive(Cap(Duration::from_secs(60)));
        let second = b.wait_in_queue(60_000);
        zoo.pass(50).await;
        let third = c.wait_in_queue(60_000);
        zoo.pass(50).await;
        zoo.isolate("b");
        zoo.pass(1500).await;
        assert_eq!((entries.len(), entries.expired()), (2, 1), "the second's entry is gone");
        zoo.reunite("b");
        zoo.pass(3000).await;
        assert_eq!((entries.len(), entries.created()), (3, 4), "it is in the queue again");
        assert!(!second.is_over() && !third.is_over());

        assert_eq!(holder.release().await, Ok(Released::Done));
        zoo.pass(50).await;
        assert!(!second.is_over(), "its place was lost");
        let next = third.granted().unwrap();
        let token = next.fence();
        next.release().await.unwrap();
        zoo.pass(50).await;
        let last = second.granted().unwrap();
        assert!(last.fence() > token);
        assert_eq!(entries.zxids(), [last.fence().as_u64()], "the zxid of its new entry");
    });
}

#[test]
fn a_waiter_paused_past_its_session_does_not_hold() {
    with_entries(|zoo, entries| async move {
        let (a, b) = zoo.members();
        let holder = a.try_acquire().await;
        let second = b.wait_in_queue(60_000);
        zoo.pass(50).await;
        let pause = zoo.control.strike(Pause::of("b"));
        holder.release().await.unwrap();
        zoo.pass(1500).await;
        assert_eq!(entries.len(), 0, "it was first, and its session expired");
        let next = a.try_acquire().await;
        next.keep_alive(Cap(Duration::from_secs(60)));
        // The notification that it is first arrives only now.
        pause.heal();
        zoo.pass(500).await;
        assert!(!second.is_over());
        let token = next.fence();
        next.release().await.unwrap();
        zoo.pass(3000).await;
        assert!(second.granted().unwrap().fence() > token);
    });
}

#[test]
fn a_holder_paused_past_its_session_loses_its_lease() {
    with_entries(|zoo, entries| async move {
        let (a, b) = zoo.members();
        let stale = a.try_acquire().await;
        let second = b.wait_in_queue(60_000);
        zoo.pass(50).await;
        let pause = zoo.control.strike(Pause::of("a"));
        let until = zoo.now();
        while !second.is_over() {
            zoo.pass(5).await;
            assert!(zoo.now() < until + 1300 * super::support::MS, "the session and a tick");
        }
        assert!(!stale.is_valid(), "it expired by its own clock before");
        let next = second.granted().unwrap();
        assert!(next.fence() > stale.fence());
        pause.heal();
        assert_eq!(stale.renew().await, Err(RenewError::Lost(LostError::Expired)));
        assert_eq!(stale.release().await, Ok(Released::NotOwner));
        assert!(next.is_valid());
        assert_eq!(entries.zxids(), [next.fence().as_u64()], "the late release removed nothing");
        assert_eq!(next.release().await, Ok(Released::Done));
        let again = a.acquire(5000).await;
        assert_eq!(entries.zxids(), [again.fence().as_u64()], "in a new session");
    });
}

#[test]
fn the_lease_goes_on_at_another_server() {
    with_entries(|zoo, entries| async move {
        let a = member(&zoo.process("a"));
        let handle = a.try_acquire().await;
        let first = server_of(&entries, "a");
        let at = zoo.clone();
        let work = async move {
            at.pass(500).await;
            at.part("a", first);
            at.control.strike(Reset::between("a", first));
            at.pass(4000).await;
        };
        assert_eq!(handle.while_held(Cap(Duration::from_secs(60)), work).await, Ok(()));
        let second = server_of(&entries, "a");
        assert_ne!(first, second);
        assert_eq!(
            (entries.created(), zoo.ensemble.sessions()),
            (1, 1),
            "the same entry in the same session"
        );
        assert_eq!(handle.release().await, Ok(Released::Done));
    });
}

#[test]
fn an_entry_of_another_session_proves_no_lease() {
    with_entries(|zoo, entries| async move {
        let a = member(&zoo.process("a"));
        let handle = a.try_acquire().await;
        let entry = entries.paths().remove(0);
        let other = operator(&zoo.runtime("b"));
        let mode = CreateMode { ephemeral: true, sequential: false };
        other.delete(&entry, None, zoo.within("b", 1000)).await.unwrap();
        other.create(&entry, b"", mode, zoo.within("b", 1000)).await.unwrap();
        assert_eq!(handle.renew().await, Err(RenewError::Lost(LostError::NotOwner)));
    });
}

#[test]
fn a_waiter_whose_entry_was_deleted_queues_again() {
    with_entries(|zoo, entries| async move {
        let (a, b) = zoo.members();
        let holder = a.try_acquire().await;
        let second = b.wait_in_queue(60_000);
        zoo.pass(50).await;
        let other = operator(&a.runtime);
        other.delete(&entries.paths()[1], None, a.within(Duration::from_millis(1000))).await.unwrap();
        holder.release().await.unwrap();
        zoo.pass(100).await;
        let next = second.granted().unwrap();
        assert_eq!((entries.zxids(), entries.created()), (vec![next.fence().as_u64()], 3));
    });
}

#[test]
fn a_release_whose_answer_was_lost_is_retried() {
    with_entries(|zoo, entries| async move {
        let a = member(&zoo.process("a"));
        let handle = a.try_acquire().await;
        SERVERS.iter().for_each(|server| zoo.cut(server, "a"));
        let (release, ()) = futures_util::future::join(handle.release(), async {
            // Longer than the timeout of the first request.
            zoo.pass(400).await;
            assert_eq!(entries.len(), 0, "executed");
            SERVERS.iter().for_each(|server| zoo.heal(server, "a"));
        })
        .await;
        assert_eq!(release, Ok(Released::Done));
    });
}

#[test]
fn an_unsent_release_is_retried_until_it_is_confirmed() {
    with_entries(|zoo, entries| async move {
        let a = member(&zoo.process("a"));
        let handle = a.try_acquire().await;
        zoo.isolate("a");
        let unconfirmed = handle.release().await.unwrap_err();
        assert!(matches!(unconfirmed, ReleaseError::Unconfirmed { .. }));
        zoo.reunite("a");
        zoo.pass(5000).await;
        assert_eq!(entries.len(), 0);
        let next = a.acquire(3000).await;
        assert_eq!(entries.zxids(), [next.fence().as_u64()]);
    });
}

#[test]
fn without_a_quorum_there_is_an_error_by_the_deadline() {
    with_entries(|zoo, entries| async move {
        let a = member_at(&zoo.process("a"), &["zk-1"]);
        let began = a.now();
        for other in ["zk-2", "zk-3"] {
            zoo.part("zk-1", other);
        }
        zoo.pass(1000).await;
        let error = a.lock.try_acquire(&key()).await.unwrap_err();
        assert!(matches!(error, TryAcquireError::Backend(BackendError::Unreachable { .. })), "{error}");
        let waited = a.now().saturating_since(began + Duration::from_secs(1));
        let late = waited.saturating_sub(a.lock.options().request_timeout);
        assert!(late < Duration::from_millis(1), "{waited:?}");

        let deadline = a.within(Duration::from_millis(2000));
        let error = a.lock.acquire(&key(), deadline).await.unwrap_err();
        assert!(matches!(error, AcquireError::Unavailable(BackendError::Unreachable { .. })), "{error}");
        assert!(a.now() <= deadline + Duration::from_millis(1));
        assert_eq!(entries.created(), 0);
    });
}

/// Returns the true times at which `handle` is lost and at which `next` holds.
async fn succession(zoo: &Zoo, handle: ZooHandle, next: &Member) -> (u64, u64) {
    let waiting = async {
        let handle = next.acquire(10_000).await;
        (zoo.now(), handle)
    };
    let losing = async {
        handle.lost().await;
        zoo.now()
    };
    let (lost, (held, next)) = futures_util::future::join(losing, waiting).await;
    assert!(next.fence() > handle.fence());
    (lost, held)
}

#[test]
fn a_member_without_its_leader_can_not_prolong_a_lease() {
    with_entries(|zoo, _| async move {
        let leader = zoo.ensemble.leader().unwrap().to_owned();
        let lone = SERVERS.into_iter().find(|server| *server != leader).unwrap();
        let rest: Vec<&str> = SERVERS.into_iter().filter(|server| *server != lone).collect();
        let a = member_at(&zoo.process("a"), &[lone]);
        let b = member_at(&zoo.process("b"), &rest);
        let handle = a.try_acquire().await;
        handle.keep_alive(Cap(Duration::from_secs(60)));
        zoo.pass(1000).await;
        // The lone server still answers reads and pings for five ticks.
        rest.iter().for_each(|other| zoo.part(lone, other));
        let (lost, held) = succession(&zoo, handle, &b).await;
        assert!(lost <= held, "lost at {lost}, the next one held at {held}");
    });
}

#[test]
fn a_leader_change_keeps_leases_and_queue_places() {
    with_entries(|zoo, entries| async move {
        let (a, b) = zoo.members();
        let holder = a.try_acquire().await;
        let second = b.wait_in_queue(60_000);
        zoo.pass(50).await;
        zoo.ensemble.change_leader().unwrap();
        let work = zoo.pass(3000);
        assert_eq!(holder.while_held(Cap(Duration::from_secs(60)), work).await, Ok(()));
        assert_eq!(entries.created(), 2);
        assert_eq!(holder.release().await, Ok(Released::Done));
        zoo.pass(50).await;
        assert_eq!(entries.zxids(), [second.granted().unwrap().fence().as_u64()]);
    });
}

#[test]
fn a_session_that_expired_unnoticed_fails_no_call() {
    with_entries(|zoo, entries| async move {
        let a = member(&zoo.process("a"));
        a.try_acquire().await.release().await.unwrap();
        let pause = zoo.control.strike(Pause::of("a"));
        zoo.pass(3000).await;
        pause.heal();
        let handle = a.try_acquire().await;
        assert_eq!(entries.zxids(), [handle.fence().as_u64()]);
    });
}
