//! The comparison arm on etcd's own Lock service.

use std::time::Duration;

use super::lab::{LONG, Lab, key};
use super::support::{MEMBERS, in_cluster, in_cluster_of};
use dlock::{AcquireError, Cap, Released, TryAcquireError};
use sim::faults::Reset;
use sim::servers::etcd::ClusterOptions;

#[test]
fn one_holder_and_then_the_next_with_a_greater_token() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b) = (lab.service("a"), lab.service("b"));
        let first = a.lock.try_acquire(&key()).await.unwrap();
        first.renew().await.unwrap();
        let refused = b.lock.try_acquire(&key()).await.unwrap_err();
        assert_eq!(refused, TryAcquireError::Held { retry_after: None });
        let waiting = b.spawn_acquire(&key(), LONG);
        etcd.pass(50).await;
        let position = etcd.cluster.revision();
        lab.write_elsewhere(5).await;
        let token = first.fence();
        assert_eq!(first.release().await, Ok(Released::Done));
        let second = waiting.wait(&etcd.control).await.unwrap();
        assert_eq!(second.fence().as_u64(), position.unsigned_abs(), "its key's, not the answer's revision");
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
        assert_eq!(error, AcquireError::Contended { retry_after: None });
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
fn a_call_that_breaks_while_it_waits_is_made_again() {
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

/// What an acquire gives whose lease was revoked while it waited, a moment before the holder left.
fn outwaited(is_old: fn(ClusterOptions) -> ClusterOptions) -> (Option<u64>, usize) {
    in_cluster_of(is_old, |etcd| async move {
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
fn an_old_etcd_hands_the_lock_to_a_waiter_whose_lease_has_ended() {
    let (token, keys) = outwaited(|options| ClusterOptions { rechecks_waiters: false, ..options });
    assert!(token.is_some(), "this arm believes it, as etcd 3.4.3 did");
    assert_eq!(keys, 0, "nobody stands in the queue");
}

#[test]
fn a_newer_etcd_does_not() {
    // It comes back with another lease, and a key.
    let (token, keys) = outwaited(|options| options);
    assert_eq!(keys, usize::from(token.is_some()));
}
