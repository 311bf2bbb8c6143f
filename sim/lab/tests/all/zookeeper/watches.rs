//! Watches: the changes that fire them, their order, and the effect of a lost connection.

use std::sync::{Arc, Mutex};

use super::support::in_zoo;
use dlock_zookeeper::{CreateMode, Fired};
use futures_util::FutureExt;

const PLAIN: CreateMode = CreateMode::PERSISTENT;

#[test]
fn each_kind_of_watch_fires_on_its_changes() {
    in_zoo(|zoo| async move {
        let (a, b) = (zoo.client("a"), zoo.client("b"));
        let deadline = zoo.within("a", 9000);
        let (none, created) = a.exists_watched("/t", deadline).await.unwrap();
        assert_eq!(none, None);
        b.create("/t", b"", PLAIN, deadline).await.unwrap();
        assert_eq!(created.await, Fired::Created);

        let (_, _, changed) = a.data_watched("/t", deadline).await.unwrap();
        let (_, came) = a.children_watched("/t", deadline).await.unwrap();
        b.create("/t/x", b"", PLAIN, deadline).await.unwrap();
        assert_eq!(came.await, Fired::ChildrenChanged);
        b.set_data("/t", b"1", None, deadline).await.unwrap();
        assert_eq!(changed.await, Fired::DataChanged);

        let (_, gone) = a.exists_watched("/t/x", deadline).await.unwrap();
        let (_, gone_too) = a.children_watched("/t/x", deadline).await.unwrap();
        let (_, went) = a.children_watched("/t", deadline).await.unwrap();
        b.delete("/t/x", None, deadline).await.unwrap();
        assert_eq!(gone.await, Fired::Deleted);
        assert_eq!(gone_too.await, Fired::Deleted);
        assert_eq!(went.await, Fired::ChildrenChanged);
    });
}

#[test]
fn a_watch_fires_once_for_changes_after_its_read() {
    in_zoo(|zoo| async move {
        let a = zoo.client("a");
        let deadline = zoo.within("a", 9000);
        a.create("/t", b"", PLAIN, deadline).await.unwrap();
        let (_, _, first) = a.data_watched("/t", deadline).await.unwrap();
        let (_, _, second) = a.data_watched("/t", deadline).await.unwrap();
        a.set_data("/t", b"1", None, deadline).await.unwrap();
        assert_eq!((first.await, second.await), (Fired::DataChanged, Fired::DataChanged));
        let (_, _, third) = a.data_watched("/t", deadline).await.unwrap();
        let mut third = Box::pin(third);
        zoo.pass(100).await;
        assert_eq!((&mut third).now_or_never(), None, "a watch does not fire for an earlier change");
        // A failed read sets no watch.
        assert!(a.data_watched("/none", deadline).await.is_err());
    });
}

#[test]
fn the_event_comes_before_a_read_that_shows_the_change() {
    in_zoo(|zoo| async move {
        let (a, b) = (zoo.client("a"), zoo.client("b"));
        let deadline = zoo.within("a", 9000);
        b.create("/t", b"0", PLAIN, deadline).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let (_, _, watch) = a.data_watched("/t", deadline).await.unwrap();
        let mut watch = Box::pin(watch);
        b.set_data("/t", b"1", None, deadline).await.unwrap();
        let (data, _) = a.data("/t", deadline).await.unwrap();
        order.lock().unwrap().push(data);
        assert_eq!((&mut watch).now_or_never(), Some(Fired::DataChanged), "delivered before the answer");
        assert_eq!(*order.lock().unwrap(), [b"1"]);
    });
}

#[test]
fn a_lost_connection_wakes_all_watches() {
    in_zoo(|zoo| async move {
        let a = zoo.client("a");
        let deadline = zoo.within("a", 9000);
        let (_, watch) = a.exists_watched("/t", deadline).await.unwrap();
        zoo.reset_all("a");
        assert_eq!(watch.await, Fired::Disconnected);
        let (_, again) = a.exists_watched("/t", deadline).await.unwrap();
        a.create("/t", b"", PLAIN, deadline).await.unwrap();
        assert_eq!(again.await, Fired::Created, "the session goes on, with a new watch");
    });
}
