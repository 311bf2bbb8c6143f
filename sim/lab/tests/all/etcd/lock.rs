//! The Lock service of the simulated etcd: waiters are served in order of arrival, and leave the queue when
//! they give up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::support::{Etcd, in_cluster, in_cluster_of, refusal};
use dlock::Runtime;
use etcd_client::{Compare, CompareOp, GetOptions, LockOptions, PutOptions, Txn, TxnOp};
use sim::servers::etcd::ClusterOptions;

const NAME: &str = "lock/v1/orders:42";

async fn keys(etcd: &Etcd) -> usize {
    let mut client = etcd.client(0).await;
    client.get("lock/", Some(GetOptions::new().with_prefix())).await.unwrap().kvs().len()
}

#[test]
fn waiters_are_served_in_order_of_arrival() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        let first = client.lock(NAME, None).await.unwrap();
        assert!(first.key().starts_with(b"lock/v1/orders:42/"));
        let order = Arc::new(Mutex::new(Vec::new()));
        for number in 0..20_u64 {
            let mut waiter = etcd.client_of("b", number as usize % 3).await;
            let (order, runtime) = (Arc::clone(&order), etcd.runtime("b"));
            etcd.runtime("b").spawn(async move {
                runtime.sleep_until(runtime.now() + Duration::from_millis(10 * number)).await;
                let held = waiter.lock(NAME, None).await.unwrap();
                order.lock().unwrap().push(number);
                waiter.unlock(held.key()).await.unwrap();
            });
        }
        etcd.at(1000).await;
        assert_eq!(keys(&etcd).await, 21);
        assert!(order.lock().unwrap().is_empty());
        client.unlock(first.key()).await.unwrap();
        etcd.at(2000).await;
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
        assert_eq!(keys(&etcd).await, 0);
    });
}

#[test]
fn a_dropped_call_leaves_the_queue() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        let first = client.lock(NAME, None).await.unwrap();
        let mut waiter = etcd.client_of("b", 1).await;
        assert!(etcd.within(500, waiter.lock(NAME, None)).await.is_none());
        etcd.pass(10).await;
        assert_eq!(keys(&etcd).await, 1, "the key of the waiter that gave up is gone");
        client.unlock(first.key()).await.unwrap();
        let second = etcd.within(100, waiter.lock(NAME, None)).await;
        assert!(second.is_some_and(|lock| lock.is_ok()));
    });
}

#[test]
fn a_lock_under_a_lease_ends_with_it() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        let lease = client.lease_grant(2, None).await.unwrap().id();
        let options = || Some(LockOptions::new().with_lease(lease));
        let held = client.lock(NAME, options()).await.unwrap();
        assert_eq!(held.key(), format!("{NAME}/{lease:x}").as_bytes());
        assert_eq!(
            client.lock(NAME, options()).await.unwrap().key(),
            held.key(),
            "the same session holds it"
        );
        let mut waiter = etcd.client_of("b", 1).await;
        waiter.lock(NAME, None).await.unwrap();
        assert!((2000..2650).contains(&etcd.now()), "{}", etcd.now());
        let absent = client.lock(NAME, options()).await;
        assert_eq!(
            refusal(absent),
            "Unknown: etcdserver: requested lease not found",
            "its code is lost, as in etcd"
        );
    });
}

/// Waits for a lock under a lease that ends before the holder unlocks. Returns the answer to the waiter.
async fn lock_with_ended_lease(etcd: Etcd) -> Result<(), etcd_client::Error> {
    let mut client = etcd.client(0).await;
    let held = client.lock(NAME, None).await.unwrap();
    let mut waiter = etcd.client_of("b", 1).await;
    let lease = waiter.lease_grant(2, None).await.unwrap().id();
    let unlocking = etcd.clone();
    etcd.runtime("a").spawn(async move {
        unlocking.at(5000).await;
        client.unlock(held.key()).await.unwrap();
    });
    waiter.lock(NAME, Some(LockOptions::new().with_lease(lease))).await.map(drop)
}

#[test]
fn a_waiter_whose_lease_ended_does_not_get_the_lock() {
    in_cluster(|etcd| async move {
        assert_eq!(refusal(lock_with_ended_lease(etcd).await), "Unknown: mutex: session is expired");
    });
}

#[test]
fn an_old_etcd_grants_to_a_waiter_whose_lease_ended() {
    let old = |options| ClusterOptions { rechecks_waiters: false, ..options };
    in_cluster_of(old, |etcd| async move {
        let waiting = lock_with_ended_lease(etcd.clone()).await;
        assert!(waiting.is_ok(), "as etcd 3.4.23 does it");
        assert_eq!(keys(&etcd).await, 0, "the queue is empty");
    });
}

#[test]
fn the_history_has_holders_and_waiters_that_leave() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        let lease = client.lease_grant(2, None).await.unwrap().id();
        for (entry, lease) in [("1", lease), ("2", 0), ("3", 0)] {
            let key = format!("lock/v1/acme/orders:42/{entry}");
            let put =
                TxnOp::put(key.clone(), format!("a:{entry}"), Some(PutOptions::new().with_lease(lease)));
            let absent = Compare::create_revision(key, CompareOp::Equal, 0);
            client.txn(Txn::new().when([absent]).and_then([put])).await.unwrap();
        }
        // etcd-client sends a first keepalive on its own.
        client.lease_keep_alive(lease).await.unwrap();
        client.delete("lock/v1/acme/orders:42/3", None).await.unwrap();
        etcd.at(3000).await;
        client.delete("lock/v1/acme/orders:42/2", None).await.unwrap();
        client.put("lock/v1/", "of no lock", None).await.unwrap();
        let expected = [
            "a: acme/orders:42 a:1 Granted { token: 2, ttl_millis: Some(2000) }",
            "a: acme/orders:42 a:1 Extended { ttl_millis: 2000 }",
            "a: acme/orders:42 a:3 WaiterGone { position: 4 }",
            "etcd: acme/orders:42 a:1 Expired",
            "etcd: acme/orders:42 a:2 Granted { token: 3, ttl_millis: None }",
            "a: acme/orders:42 a:2 Deleted",
        ];
        assert_eq!(etcd.recorded(), expected);
    });
}
