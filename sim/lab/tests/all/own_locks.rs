//! Locks of a user's own in hashes of Redis, on etcd and on ZooKeeper: the history has their
//! grants and releases, the examples with a mistake are convicted, and their correct twins are not.

use std::time::Duration;

use history::{Event, Kind};
use sim::clients::dlock_zookeeper::CreateMode;
use sim::clients::etcd_client::DeleteOptions;
use sim::servers::etcd::EtcdHost;
use sim::servers::zookeeper::{EnsembleOptions, ZooKeeperHost};
use sim::{Control, Sim};

use crate::support::share;

#[allow(dead_code, reason = "its main is not run here")]
#[path = "../../../examples/etcd_lock.rs"]
mod etcd_lock;
#[allow(dead_code, reason = "its main is not run here")]
#[path = "../../../examples/hash_lock.rs"]
mod hash_lock;
#[allow(dead_code, reason = "its main is not run here")]
#[path = "../../../examples/zookeeper_lock.rs"]
mod zookeeper_lock;

const SCHEDULES: u64 = 300;

/// Searches the schedules of a world; returns the problems of the first that fails.
fn problems(name: &str, world: fn(&mut Sim), schedules: u64) -> Vec<String> {
    let folder = std::env::temp_dir().join(format!("sim-own-locks-{}-{name}", std::process::id()));
    let found = sim::check(name, world).keep_in(&folder).schedules(schedules).find().unwrap();
    let _ = std::fs::remove_dir_all(folder);
    found.map_or_else(Vec::new, |failure| failure.problems)
}

fn assert_convicted(name: &str, world: fn(&mut Sim)) {
    let problems = problems(name, world, SCHEDULES);
    let is_foreign = |problem: &String| problem.starts_with("foreign_release");
    assert!(problems.first().is_some_and(is_foreign), "{problems:?}");
}

fn assert_acquitted(name: &str, world: fn(&mut Sim)) {
    assert_eq!(problems(name, world, share(SCHEDULES)), [""; 0]);
}

#[test]
fn an_etcd_lock_that_deletes_any_key_is_convicted() {
    assert_convicted("deletes_always", etcd_lock::deletes_always);
}

#[test]
fn an_etcd_lock_that_deletes_its_own_key_is_acquitted() {
    assert_acquitted("deletes_own", etcd_lock::deletes_own);
}

#[test]
fn a_hash_lock_that_deletes_any_key_is_convicted() {
    assert_convicted("releases_any", hash_lock::releases_any);
}

#[test]
fn a_hash_lock_that_deletes_its_own_key_is_acquitted() {
    assert_acquitted("releases_own", hash_lock::releases_own);
}

#[test]
fn a_zookeeper_lock_that_deletes_the_holders_node_is_convicted() {
    assert_convicted("impatient", zookeeper_lock::impatient);
}

#[test]
fn a_zookeeper_lock_that_waits_is_acquitted() {
    assert_acquitted("patient", zookeeper_lock::patient);
}

/// Describes the events of lock servers as `granted to a`.
fn events(history: &[Event]) -> Vec<String> {
    let described = |event: &Event| match &event.kind {
        Kind::KeyGranted { owner, .. } => Some(format!("granted to {owner}")),
        Kind::KeyExtended { owner, .. } => Some(format!("extended for {owner}")),
        Kind::KeyDeleted { owner, client, .. } => Some(format!("deleted {owner} by {client}")),
        Kind::WaiterGone { owner, .. } => Some(format!("left {owner}")),
        _ => None,
    };
    history.iter().filter_map(described).collect()
}

#[test]
fn the_history_has_the_changes_of_an_etcd_key() {
    let etcd = EtcdHost::single("etcd", "http://etcd:2379".to_owned()).lock_key("k", "lock");
    let mut sim = Sim::new(1);
    sim.host("etcd", etcd).empty_process("a").empty_process("b");
    let script = |control: Control| async move {
        control.sleep(Duration::from_millis(1)).await;
        let mut a = sim::clients::etcd(&control.process("a"), "etcd:2379").await.unwrap();
        let mut b = sim::clients::etcd(&control.process("b"), "etcd:2379").await.unwrap();
        a.put("k", "a", None).await.unwrap();
        b.put("k", "b", None).await.unwrap();
        b.delete("k", None).await.unwrap();
        a.put("other", "a", None).await.unwrap();
    };
    let (report, ()) = sim.run_script(script).unwrap();
    assert_eq!(events(&report.events), ["granted to a", "granted to b", "deleted b by b"]);
}

#[test]
fn the_history_has_the_changes_of_an_etcd_queue() {
    let etcd = EtcdHost::single("etcd", "http://etcd:2379".to_owned()).lock_queue("q/", "lock");
    let mut sim = Sim::new(1);
    sim.host("etcd", etcd).empty_process("a");
    let script = |control: Control| async move {
        control.sleep(Duration::from_millis(1)).await;
        let mut a = sim::clients::etcd(&control.process("a"), "etcd:2379").await.unwrap();
        for key in ["q/one", "q/two", "q/three"] {
            a.put(key, "", None).await.unwrap();
        }
        a.delete("q/three", None).await.unwrap();
        a.delete("q/one", Some(DeleteOptions::new())).await.unwrap();
    };
    let (report, ()) = sim.run_script(script).unwrap();
    let expected = ["granted to one", "left three", "deleted one by a", "granted to two"];
    assert_eq!(events(&report.events), expected);
}

#[test]
fn the_history_has_the_changes_of_zookeeper_nodes() {
    let zookeeper = ZooKeeperHost::first(EnsembleOptions::new(["zookeeper"]));
    let zookeeper = zookeeper.lock_key("/k", "lock").lock_queue("/q", "queue");
    let mut sim = Sim::new(1);
    sim.host("zookeeper", zookeeper).empty_process("a");
    let script = |control: Control| async move {
        let session = Duration::from_secs(4);
        let a = sim::clients::zookeeper(&control.process("a"), ["zookeeper:2181"], session);
        let by = control.process("a").now() + Duration::from_secs(10);
        let plain = CreateMode { ephemeral: false, sequential: false };
        let entry = CreateMode { ephemeral: true, sequential: true };
        a.create("/k", b"a", plain, by).await.unwrap();
        a.create("/q", b"", plain, by).await.unwrap();
        let first = a.create("/q/e-", b"one", entry, by).await.unwrap();
        a.create("/q/e-", b"two", entry, by).await.unwrap();
        a.delete(&first.path, None, by).await.unwrap();
        a.delete("/k", None, by).await.unwrap();
    };
    let (report, ()) = sim.run_script(script).unwrap();
    let expected = ["granted to a", "granted to one", "deleted one by a", "granted to two", "deleted a by a"];
    assert_eq!(events(&report.events)[..5], expected);
}
