//! Locks on the simulated etcd through the real client, without faults: the effect of each operation.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lab::{LONG, Lab, key, other_key};
use super::support::in_cluster;
use dlock::{AcquireError, Cap, LostError, Released, RenewError, Runtime, TryAcquireError};
use etcd_client::DeleteOptions;

#[test]
fn one_holder_and_then_the_next_with_a_greater_token() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b) = (lab.client("a"), lab.client("b"));
        let first = a.lock.try_acquire(&key()).await.unwrap();
        assert_eq!(lab.owner_of(&key()).await.as_deref(), Some(first.owner().as_str()));
        let refused = b.lock.try_acquire(&key()).await.unwrap_err();
        assert_eq!(refused, TryAcquireError::Taken { retry_after: None });
        first.renew().await.unwrap();
        let token = first.fence();
        assert_eq!(first.release().await, Ok(Released::Done));
        etcd.pass(100).await;
        assert_eq!(lab.keys().await, 0, "the refused client has left the queue, too");
        let second = b.lock.try_acquire(&key()).await.unwrap();
        assert!(second.fence() > token);
        assert_eq!(second.release().await, Ok(Released::Done));
    });
}

#[test]
fn an_uncontended_acquire_or_release_is_one_transaction() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let a = lab.client("a");
        a.lock.try_acquire(&key()).await.unwrap().release().await.unwrap();
        let before = etcd.cluster.executed();
        let began = etcd.now();
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        assert_eq!(etcd.cluster.executed() - before, 1);
        assert_eq!(etcd.now() - began, 2, "one round trip");
        handle.release().await.unwrap();
        assert_eq!(etcd.cluster.executed() - before, 2);
    });
}

#[test]
fn the_token_is_the_create_revision_even_after_a_wait() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b) = (lab.client("a"), lab.client("b"));
        let first = a.lock.try_acquire(&key()).await.unwrap();
        assert_eq!(Some(first.fence().as_u64()), lab.create_revision(&key(), &first).await);
        let waiting = b.spawn_acquire(&key(), LONG);
        etcd.pass(50).await;
        // Unrelated writes raise the store's revision.
        lab.write_elsewhere(5).await;
        first.release().await.unwrap();
        let second = waiting.wait(&etcd.control).await.unwrap();
        assert_eq!(Some(second.fence().as_u64()), lab.create_revision(&key(), &second).await);
    });
}

#[test]
fn twenty_waiters_are_served_in_order_of_arrival() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let a = lab.client("a");
        let first = a.lock.try_acquire(&key()).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let served = Arc::new(Mutex::new(0));
        for number in 0..20_u64 {
            let (client, order, served) = (lab.client("b"), Arc::clone(&order), Arc::clone(&served));
            etcd.runtime("b").spawn(async move {
                let start = client.runtime.now() + Duration::from_millis(10 * number);
                client.runtime.sleep_until(start).await;
                let handle = client.lock.acquire(&key(), client.within(LONG)).await.unwrap();
                order.lock().unwrap().push((number, handle.fence().as_u64()));
                handle.release().await.unwrap();
                *served.lock().unwrap() += 1;
            });
        }
        etcd.at(1000).await;
        assert_eq!(lab.keys().await, 21);
        let executed = etcd.cluster.executed();
        first.release().await.unwrap();
        etcd.at(2000).await;
        let order = order.lock().unwrap().clone();
        assert_eq!(order.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
        assert!(order.is_sorted_by(|one, other| one.1 < other.1), "{order:?}");
        assert_eq!(*served.lock().unwrap(), 20);
        // Only its predecessor wakes a waiter: a query, a delete, and some keepalives and revokes for each.
        let each = (etcd.cluster.executed() - executed) / 20;
        assert!(each <= 5, "{each} requests for each waiter: a thundering herd");
        assert_eq!(lab.keys().await, 0);
    });
}

#[test]
fn the_locks_of_one_client_share_one_lease() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let a = lab.client("a");
        let one = a.lock.try_acquire(&key()).await.unwrap();
        let other = a.lock.try_acquire(&other_key()).await.unwrap();
        assert_eq!(lab.leases().await, 1);
        assert_eq!(one.release().await, Ok(Released::Done));
        assert!(other.is_valid(), "a release does not end the session");
        other.renew().await.unwrap();
        let _b = lab.client("b").lock.try_acquire(&key()).await.unwrap();
        assert_eq!(lab.leases().await, 2);
    });
}

#[test]
fn two_claims_of_one_client_exclude_each_other() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let a = lab.client("a");
        let one = a.lock.try_acquire(&key()).await.unwrap();
        a.lock.try_acquire(&key()).await.unwrap_err();
        assert_eq!(one.release().await, Ok(Released::Done));
    });
}

#[test]
fn a_waiter_that_gives_up_leaves_the_queue() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b, c) = (lab.client("a"), lab.client("b"), lab.client("b"));
        let first = a.lock.try_acquire(&key()).await.unwrap();
        let giving_up = b.spawn_acquire(&key(), Duration::from_millis(300));
        etcd.pass(50).await;
        let staying = c.spawn_acquire(&key(), LONG);
        let error = giving_up.wait(&etcd.control).await.unwrap_err();
        assert_eq!(error, AcquireError::Taken { retry_after: None });
        etcd.pass(50).await;
        assert_eq!(lab.keys().await, 2, "the holder and the waiter that stays");
        first.release().await.unwrap();
        staying.wait(&etcd.control).await.unwrap();
    });
}

#[test]
fn a_renewed_lease_outlives_its_ttl_many_times() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let (a, b) = (lab.client("a"), lab.client("b"));
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        let runtime = a.runtime.clone();
        let work = async { runtime.sleep_until(runtime.now() + Duration::from_secs(60)).await };
        handle.while_held(Cap(LONG), work).await.unwrap();
        b.lock.try_acquire(&key()).await.unwrap_err();
        assert_eq!(handle.release().await, Ok(Released::Done));
    });
}

#[test]
fn a_dropped_client_ends_its_session() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let a = lab.client("a");
        a.lock.try_acquire(&key()).await.unwrap().release().await.unwrap();
        assert_eq!(lab.leases().await, 1);
        drop(a);
        etcd.pass(50).await;
        assert_eq!(lab.leases().await, 0, "revoked at once, before it expires");
    });
}

#[test]
fn a_lock_is_lost_if_an_operator_deletes_its_key() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let a = lab.client("a");
        let (one, other) =
            (a.lock.try_acquire(&key()).await.unwrap(), a.lock.try_acquire(&other_key()).await.unwrap());
        let queue = format!("lock/v1/{}/", key().name());
        let mut operator = etcd.client_of("b", 2).await;
        operator.delete(queue, Some(DeleteOptions::new().with_prefix())).await.unwrap();
        assert_eq!(one.renew().await, Err(RenewError::Lost(LostError::NotOwner)));
        assert_eq!(one.release().await, Ok(Released::NotOwner));
        other.renew().await.unwrap();
    });
}

#[test]
fn the_history_has_holder_token_and_each_renewal() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let a = lab.client("a");
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        handle.renew().await.unwrap();
        let (owner, token) = (handle.owner().as_str().to_owned(), handle.fence());
        handle.release().await.unwrap();
        let expected = [
            format!("a: orders:42 {owner} Granted {{ token: {token}, ttl_millis: Some(6000) }}"),
            format!("a: orders:42 {owner} Extended {{ ttl_millis: 6000 }}"),
            format!("a: orders:42 {owner} Deleted"),
        ];
        assert_eq!(etcd.recorded(), expected);
    });
}
