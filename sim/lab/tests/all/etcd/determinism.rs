//! The same run twice is equal to the byte: answers, watches, locks, times.

use std::sync::{Arc, Mutex};

use super::support::in_cluster;
use dlock::Runtime;
use etcd_client::{LockOptions, WatchOptions};

/// Lets six clients queue for two locks while the leader changes. Returns the grants and the answers of a
/// watch on all keys, with their true times, and the log of the observer.
fn recorded_run() -> Vec<String> {
    in_cluster(|etcd| async move {
        let log = Arc::new(Mutex::new(Vec::new()));
        for number in 0..6_usize {
            let mut client = etcd.client_of(["a", "b"][number % 2], number % 3).await;
            let (control, log) = (etcd.control.clone(), Arc::clone(&log));
            etcd.runtime("a").spawn(async move {
                let lease = client.lease_grant(5, None).await.unwrap().id();
                let name = format!("lock/v1/orders:{}", number / 3);
                let held = client.lock(name, Some(LockOptions::new().with_lease(lease))).await.unwrap();
                log.lock().unwrap().push(format!("{} {number} holds", control.now().as_nanos()));
                client.unlock(held.key()).await.unwrap();
            });
        }
        let mut client = etcd.client(2).await;
        let mut stream = client.watch("", Some(WatchOptions::new().with_all_keys())).await.unwrap();
        assert!(etcd.cluster.move_leader(1));
        while let Some(Ok(Some(answer))) = etcd.within(20_000, stream.message()).await {
            log.lock().unwrap().push(format!("{} {answer:?}", etcd.control.now().as_nanos()));
        }
        let mut log = log.lock().unwrap().clone();
        log.extend(etcd.recorded());
        log
    })
}

#[test]
fn the_same_run_twice_is_the_same() {
    let first = recorded_run();
    assert!(first.len() > 20, "{first:#?}");
    assert_eq!(first, recorded_run());
}
