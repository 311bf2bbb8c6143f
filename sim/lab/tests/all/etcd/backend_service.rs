//! The lock on etcd's own Lock service, which serves as a comparison.

use std::time::Duration;

use super::lab::{LONG, Lab, key};
use super::support::{MEMBERS, in_cluster, in_cluster_of};
use dlock::{AcquireError, Cap, Released, TryAcquireError};
use sim::faults::{Cut, Reset};
use sim::servers::etcd::ClusterOptions;

#[test]
fn one_holder_and_then_the_next_with_a_greater_token() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b) = (lab.service("a"), lab.service("b"));
        let first = a.lock.try_acquire(&key()).await.unwrap();
        first.renew().await.unwrap();
        let refused = b.lock.try_acquire(&key()).await.unwrap_err();
        assert_eq!(refused, TryAcquireError::Taken { retry_after: None });
        let waiting = b.spawn_acquire(&key(), LONG);
        etcd.pass(50).await;
        let position = etcd.cluster.revision();
        lab.write_elsewhere(5).await;
        let token = first.fence();
        assert_eq!(first.release().await, Ok(Released::Done));
        let second = waiting.wait(&etcd.control).await.unwrap();
        assert_eq!(
            second.fence().as_u64(),
            position.unsigned_abs(),
            "the revision of its key, not of the answer"
        );
        assert!(second.fence() > token);
        assert_eq!(second.release().await, Ok(Released::Done));
        etcd.pass(100).await;
        assert_eq!((lab.keys().await, lab.leases().await), (0, 0));
    });
}

#[test]
fn a_waiter_that_gives_up_leaves_the_queue() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b) = (lab.service("a"), lab.service("b"));
        let first = a.lock.try_acquire(&key()).await.unwrap();
        let waiting = b.spawn_acquire(&key(), Duration::from_millis(1500));
        let error = waiting.wait(&etcd.control).await.unwrap_err();
        assert_eq!(error, AcquireError::Taken { retry_after: None });
        etcd.pass(100).await;
        assert_eq!((lab.keys().await, lab.leases().await), (1, 1));
        assert_eq!(first.release().await, Ok(Released::Done));
    });
}

#[test]
fn two_claims_of_one_client_exclude_each_other() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let a = lab.service("a");
        let _first = a.lock.try_acquire(&key()).await.unwrap();
        a.lock.try_acquire(&key()).await.unwrap_err();
    });
}

#[test]
fn a_waiting_call_that_breaks_is_repeated() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b) = (lab.service("a"), lab.service("b"));
        let first = a.lock.try_acquire(&key()).await.unwrap();
        first.keep_alive(Cap(LONG));
        let waiting = b.spawn_acquire(&key(), LONG);
        etcd.pass(2000).await;
        etcd.control.strike(Reset::between(b.name(), MEMBERS[0]));
        etcd.pass(2000).await;
        assert!(!waiting.is_over());
        first.release().await.unwrap();
        let second = waiting.wait(&etcd.control).await.unwrap();
        assert_eq!(lab.keys().await, 1);
        second.release().await.unwrap();
    });
}

#[test]
fn a_waiter_leaves_a_member_that_falls_silent() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b) = (lab.service("a"), lab.service("b"));
        let first = a.lock.try_acquire(&key()).await.unwrap();
        first.keep_alive(Cap(LONG));
        let waiting = b.spawn_acquire(&key(), LONG);
        etcd.pass(2000).await;
        etcd.control.strike(Cut::between(b.name(), MEMBERS[0]));
        etcd.pass(10_000).await;
        assert!(!waiting.is_over());
        first.release().await.unwrap();
        etcd.pass(2000).await;
        assert!(waiting.is_over(), "it waits at another member");
        let second = waiting.wait(&etcd.control).await.unwrap();
        assert_eq!(second.release().await, Ok(Released::Done));
    });
}

/// Revokes the lease of a waiter just before the holder releases. Returns the waiter's token if it was
/// granted the lock, and the number of keys in the queue.
fn acquire_with_revoked_lease(change: fn(ClusterOptions) -> ClusterOptions) -> (Option<u64>, usize) {
    in_cluster_of(change, |etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b) = (lab.service("a"), lab.service("b"));
        let first = a.lock.try_acquire(&key()).await.unwrap();
        let mut observer = etcd.client_of("b", 0).await;
        let of_first = observer.leases().await.unwrap().leases()[0].id();
        let waiting = b.spawn_acquire(&key(), Duration::from_millis(1200));
        etcd.pass(1000).await;
        for lease in observer.leases().await.unwrap().leases() {
            if lease.id() != of_first {
                observer.lease_revoke(lease.id()).await.unwrap();
            }
        }
        first.release().await.unwrap();
        let held = waiting.wait(&etcd.control).await.ok();
        (held.as_ref().map(|handle| handle.fence().as_u64()), lab.keys().await)
    })
}

#[test]
fn an_old_etcd_grants_to_a_waiter_whose_lease_ended() {
    let (token, keys) =
        acquire_with_revoked_lease(|options| ClusterOptions { rechecks_waiters: false, ..options });
    assert!(token.is_some(), "granted, as by etcd 3.4.3");
    assert_eq!(keys, 0, "the queue is empty");
}

#[test]
fn a_newer_etcd_checks_the_lease_of_a_waiter() {
    // It tries again with another lease, and another key.
    let (token, keys) = acquire_with_revoked_lease(|options| options);
    assert_eq!(keys, usize::from(token.is_some()));
}
