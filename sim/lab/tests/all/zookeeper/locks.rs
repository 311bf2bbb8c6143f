//! The history of locks that servers derive from the nodes of their queues.

use std::sync::{Arc, Mutex};

use super::support::{Zoo, in_zoo, observed_zoo};
use dlock::LockKey;
use dlock_zookeeper::{Client, CreateMode, path};
use history::{Event, Kind};
use sim::faults::Crash;
use sim::servers::zookeeper::{Change, LockView, Observer};
use sim::world::runtime::SimRuntime;

async fn enter(zoo: &Zoo, client: &Client<SimRuntime>, name: &str, owner: &str) -> String {
    let key = LockKey::for_tenant("acme", "orders", "42").unwrap();
    let deadline = zoo.within(name, 2000);
    for parent in [path::ROOT, &path::queue(key.name())] {
        let _ = client.create(parent, b"", CreateMode::PERSISTENT, deadline).await;
    }
    let entry = format!("{}/{}", path::queue(key.name()), path::entry_prefix(&path::guid(client.runtime())));
    let mode = CreateMode::EPHEMERAL_SEQUENTIAL;
    client.create(&entry, owner.as_bytes(), mode, deadline).await.unwrap().path
}

fn lock_changes(events: &[Event]) -> Vec<String> {
    let describe = |kind: &Kind| match kind {
        Kind::KeyGranted { owner, client, .. } => Some(format!("granted {owner} by {client}")),
        Kind::KeyDeleted { owner, client, .. } => Some(format!("deleted {owner} by {client}")),
        Kind::KeyExpired { owner, .. } => owner.as_ref().map(|owner| format!("expired {owner}")),
        _ => None,
    };
    events.iter().filter_map(|event| describe(&event.kind)).collect()
}

#[test]
fn the_first_entry_of_a_queue_holds_the_lock() {
    let (report, ()) = observed_zoo(Arc::new(LockView::default()), |zoo| async move {
        let (a, b) = (zoo.client("a"), zoo.client("b"));
        let first = enter(&zoo, &a, "a", "a:0123456789").await;
        enter(&zoo, &b, "b", "b:abcdefabcd").await;
        let third = enter(&zoo, &a, "a", "a:9999999999").await;
        a.delete(&third, None, zoo.within("a", 900)).await.unwrap();
        a.delete(&first, None, zoo.within("a", 900)).await.unwrap();
        zoo.control.strike(Crash { power_loss: true, ..Crash::of("b") });
        zoo.pass(2000).await;
    });
    let events = report.events;
    assert_eq!(
        lock_changes(&events),
        [
            "granted a:01234567 by a",
            "deleted a:01234567 by a",
            "granted b:abcdefab by b",
            "expired b:abcdefab"
        ]
    );
    let tokens: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            Kind::KeyGranted { key, token, ttl_millis, .. } => {
                assert_eq!(key.as_str(), dlock::id_hash("acme/orders:42"));
                assert_eq!(*ttl_millis, Some(1000));
                *token
            }
            _ => None,
        })
        .collect();
    assert!(tokens[0] < tokens[1] && tokens[0] > 1 << 32, "zxids of creations: {tokens:?}");
}

/// Records each executed operation: server, client, name.
#[derive(Default)]
struct Operations(Mutex<Vec<(String, String, &'static str)>>);

impl Observer for Operations {
    fn executed(&self, server: &str, client: &str, operation: &'static str) {
        self.0.lock().unwrap().push((server.to_owned(), client.to_owned(), operation));
    }

    fn changed(&self, _: &str, changes: &[Change]) {
        assert!(!changes.is_empty());
    }
}

#[test]
fn observers_receive_operations_by_name() {
    let operations = Arc::new(Operations::default());
    observed_zoo(Arc::clone(&operations) as Arc<dyn Observer>, |zoo| async move {
        let a = zoo.client_of("a", &["zk-2"], std::time::Duration::from_secs(1));
        a.create("/t", b"", CreateMode::PERSISTENT, zoo.within("a", 900)).await.unwrap();
        a.children("/t", zoo.within("a", 900)).await.unwrap();
        a.close(zoo.within("a", 900)).await.unwrap();
    });
    let executed = operations.0.lock().unwrap();
    assert!(executed.iter().all(|(server, client, _)| (server.as_str(), client.as_str()) == ("zk-2", "a")));
    let names: Vec<_> = executed.iter().map(|(_, _, name)| *name).collect();
    assert_eq!(names, ["createSession", "create2", "getChildren2", "closeSession"]);
}

#[test]
fn the_same_run_twice_is_the_same_to_the_byte() {
    let once = || {
        in_zoo(|zoo| async move {
            let (a, b) = (zoo.client("a"), zoo.client("b"));
            let paths = [enter(&zoo, &a, "a", "a:1").await, enter(&zoo, &b, "b", "b:2").await];
            (paths, a.session(), a.valid_until(), b.session(), zoo.now())
        })
    };
    assert_eq!(once(), once());
}
