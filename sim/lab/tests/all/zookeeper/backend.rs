//! Locks on simulated ZooKeeper servers without faults: grants, tokens, the queue, wake-ups.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lab::{SESSION, key, member, with_entries};
use super::support::{MS, Zoo};
use dlock::zookeeper::{ZooKeeper, ZooKeeperOptions};
use dlock::{Cap, Lock, LockKey, Options, OptionsError, Released, TryAcquireError};

#[test]
fn a_lock_is_acquired_renewed_and_released() {
    with_entries(|zoo, entries| async move {
        let (a, b) = zoo.members();
        let handle = a.try_acquire().await;
        assert_eq!(entries.zxids(), [handle.fence().as_u64()], "the zxid of its entry's creation");
        let taken = b.lock.try_acquire(&key()).await.unwrap_err();
        assert_eq!(taken, TryAcquireError::Taken { retry_after: None });

        zoo.pass(500).await;
        assert_eq!(entries.len(), 1, "a client that does not wait leaves the queue");
        let before = handle.valid_until();
        handle.renew().await.unwrap();
        assert!(handle.valid_until() > before + Duration::from_millis(450));
        assert_eq!(handle.release().await, Ok(Released::Done));
        assert_eq!(entries.len(), 0);

        let next = b.try_acquire().await;
        assert_eq!(entries.zxids(), [next.fence().as_u64()]);
        assert_eq!(next.release().await, Ok(Released::Done));
        assert_eq!((entries.created(), entries.expired()), (3, 0));
    });
}

#[test]
fn the_validity_counts_from_before_the_request() {
    with_entries(|zoo, _| async move {
        let a = member(&zoo.process("a"));
        a.try_acquire().await.release().await.unwrap();
        let began = a.now();
        let handle = a.try_acquire().await;
        let drift = Options::new(SESSION).drift.of(SESSION);
        assert_eq!(handle.valid_until(), began + SESSION - drift, "the drift margin is deducted once");
        let took = a.now().saturating_since(began);
        assert!(took < Duration::from_millis(3), "one round trip: {took:?}");
        handle.release().await.unwrap();
    });
}

#[test]
fn a_watchdog_holds_the_lock_for_many_session_timeouts() {
    with_entries(|zoo, entries| async move {
        let a = member(&zoo.process("a"));
        let handle = a.try_acquire().await;
        let work = zoo.pass(5000);
        assert_eq!(handle.while_held(Cap(Duration::from_secs(60)), work).await, Ok(()));
        assert_eq!(entries.zxids(), [handle.fence().as_u64()]);
        assert_eq!(handle.release().await, Ok(Released::Done));
    });
}

/// Lets twenty clients acquire one after the other while the first holds the lock. Returns each grant: the
/// client's number, the token, the true time.
async fn twenty_waiters(zoo: &Zoo) -> Vec<(usize, u64, u64)> {
    let processes = [zoo.process("a"), zoo.process("b")];
    let granted = Arc::new(Mutex::new(Vec::new()));
    for number in 0..20 {
        let member = member(&processes[number % 2]);
        let (granted, world) = (Arc::clone(&granted), zoo.clone());
        member.process.clone().spawn(async move {
            let handle = member.acquire(10_000).await;
            granted.lock().unwrap().push((number, handle.fence().as_u64(), world.now()));
            world.pass(if number == 0 { 400 } else { 5 }).await;
            assert_eq!(handle.release().await, Ok(Released::Done));
        });
        zoo.pass(10).await;
    }
    zoo.pass(2000).await;
    granted.lock().unwrap().clone()
}

#[test]
fn waiters_are_served_in_order_of_arrival_with_growing_tokens() {
    let granted = with_entries(|zoo, entries| async move {
        let granted = twenty_waiters(&zoo).await;
        assert_eq!((entries.len(), entries.created()), (0, 20));
        granted
    });
    let order: Vec<usize> = granted.iter().map(|(number, ..)| *number).collect();
    assert_eq!(order, (0..20).collect::<Vec<_>>());
    assert!(granted.is_sorted_by(|(_, one, _), (_, next, _)| one < next), "{granted:?}");
    // Each holds for 5 ms; then the release, its notification and the next query take 4 ms on the network.
    let waits = granted[1..].windows(2).map(|pair| pair[1].2 - pair[0].2);
    assert!(waits.into_iter().all(|wait| wait <= 10 * MS), "no waiter polls: {granted:?}");
}

#[test]
fn the_same_run_twice_gives_the_same_grants() {
    let once = || with_entries(|zoo, _| async move { twenty_waiters(&zoo).await });
    assert_eq!(once(), once());
}

#[test]
fn a_release_wakes_one_waiter() {
    with_entries(|zoo, entries| async move {
        let process = zoo.process("b");
        let a = member(&zoo.process("a"));
        let handle = a.try_acquire().await;
        let mut waiters = Vec::new();
        for _ in 0..20 {
            waiters.push(member(&process).wait_in_queue(60_000));
            zoo.pass(5).await;
        }
        zoo.pass(100).await;
        entries.take_executed();
        handle.release().await.unwrap();
        zoo.pass(100).await;
        let woken: Vec<_> =
            entries.take_executed().into_iter().map(|(_, client, name)| (client, name)).collect();
        let one = ["sync", "getChildren2", "exists"].map(|name| ("b".to_owned(), name));
        assert_eq!(woken[0], ("a".to_owned(), "delete"));
        assert_eq!(woken[1..], one, "only the next waiter is woken");
        assert!(waiters.remove(0).granted().is_some());
    });
}

#[test]
fn a_waiter_that_leaves_does_not_let_the_next_hold() {
    with_entries(|zoo, entries| async move {
        let (a, b) = zoo.members();
        let handle = a.try_acquire().await;
        let key = key();
        let leaving = b.lock.acquire(&key, b.within(Duration::from_millis(200)));
        let behind = async {
            zoo.pass(50).await;
            member(&b.process).wait_in_queue(60_000)
        };
        let (left, last) = futures_util::future::join(leaving, behind).await;
        left.unwrap_err();
        zoo.pass(100).await;
        assert_eq!(entries.len(), 2);
        assert!(!last.is_over(), "the lock is still held");
        handle.release().await.unwrap();
        zoo.pass(20).await;
        assert_eq!(entries.zxids(), [last.granted().unwrap().fence().as_u64()]);
    });
}

#[test]
fn locks_of_one_client_share_one_session() {
    with_entries(|zoo, entries| async move {
        let a = member(&zoo.process("a"));
        let second = Lock::new(a.lock.backend().clone(), Options::new(SESSION / 2)).unwrap();
        let other = LockKey::new("orders", "43").unwrap();
        let handles = (a.try_acquire().await, second.try_acquire(&other).await.unwrap());
        assert_eq!((zoo.ensemble.sessions(), entries.len()), (1, 2));
        assert!(handles.1.remaining() <= SESSION / 2, "a lease has its own TTL");
        assert_eq!(handles.0.release().await, Ok(Released::Done));
        assert_eq!(handles.1.release().await, Ok(Released::Done));
        assert_eq!((zoo.ensemble.sessions(), entries.len()), (1, 0));
        drop((a, second));
        zoo.pass(50).await;
        assert_eq!(zoo.ensemble.sessions(), 0, "closed with its last user");
    });
}

#[test]
fn a_lease_lasts_no_longer_than_the_granted_session() {
    with_entries(|zoo, _| async move {
        let long = Duration::from_secs(10);
        let servers = ["zk-1:2181", "zk-2:2181"];
        let zookeeper = ZooKeeper::new(zoo.runtime("a"), &servers, ZooKeeperOptions::new(long)).unwrap();
        let error = Lock::new(zookeeper.clone(), Options::new(long * 2)).unwrap_err();
        assert!(matches!(error, OptionsError::TtlAboveSession { .. }), "{error}");
        let lock = Lock::new(zookeeper, Options::new(long)).unwrap();
        let handle = lock.try_acquire(&key()).await.unwrap();
        // These servers grant at most twenty ticks.
        let left = handle.remaining();
        assert!(left < Duration::from_secs(2) && left > Duration::from_millis(1800), "{left:?}");
    });
}

#[test]
fn a_queue_with_exhausted_numbers_grants_again_once_empty() {
    with_entries(|zoo, entries| async move {
        let (a, b) = zoo.members();
        a.try_acquire().await.release().await.unwrap();
        assert!(zoo.ensemble.age(&dlock_zookeeper::path::queue(key().name()), i32::MAX - 1));
        let last = a.try_acquire().await;
        // From here on all entries would get the same number, and each would seem to be the first.
        for member in [&a, &b] {
            let refused = member.lock.try_acquire(&key()).await.unwrap_err().to_string();
            assert!(refused.contains("has numbered 2147483647 entries"), "{refused}");
        }
        zoo.pass(100).await;
        assert_eq!(entries.len(), 1, "refused clients are not in the queue");
        let fence = last.fence();
        last.release().await.unwrap();
        assert!(b.lock.try_acquire(&key()).await.is_err());
        zoo.pass(100).await;
        let next = b.try_acquire().await;
        assert!(next.fence() > fence);
        assert!(entries.paths()[0].ends_with("-lock-0000000000"), "{:?}", entries.paths());
        next.release().await.unwrap();
    });
}
