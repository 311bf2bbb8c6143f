//! Locks on the simulated etcd, with faults: the same run twice gives the same order, to the nanosecond.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lab::{LONG, Lab, key};
use super::support::{MEMBERS, in_cluster};
use dlock::Runtime;
use sim::faults::Reset;

/// Runs twelve clients with faults. Returns the grants, with tokens and times, and the log of the observer.
fn run() -> (Vec<String>, Vec<String>) {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let grants = Arc::new(Mutex::new(Vec::new()));
        for number in 0..12_u64 {
            let client = lab.client(["a", "b"][number as usize % 2]);
            let (grants, control) = (Arc::clone(&grants), etcd.control.clone());
            client.runtime.clone().spawn(async move {
                let wait = Duration::from_millis(number * 7);
                client.runtime.sleep_until(client.runtime.now() + wait).await;
                let timeout = if number % 3 == 0 { Duration::from_millis(900) } else { LONG };
                let acquired = client.lock.acquire(&key(), client.within(timeout)).await;
                let Ok(handle) = acquired else { return };
                grants.lock().unwrap().push(format!(
                    "{number} {} {}",
                    handle.fence(),
                    control.now().as_nanos()
                ));
                client.runtime.sleep_until(client.runtime.now() + Duration::from_millis(300)).await;
                drop(handle.release().await);
            });
        }
        etcd.at(1000).await;
        etcd.control.strike(Reset::between("a", MEMBERS[0]));
        etcd.at(1500).await;
        etcd.cluster.isolate(0, true);
        etcd.at(30_000).await;
        let grants = grants.lock().unwrap().clone();
        (grants, etcd.recorded())
    })
}

#[test]
fn the_same_run_twice_gives_the_same_order() {
    let first = run();
    assert!(first.0.len() >= 8, "too few grants: {:?}", first.0);
    assert_eq!(first, run());
}
