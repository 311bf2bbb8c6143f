//! Operations on nodes of the simulated ZooKeeper. Each behaviour was also seen on a live 3.8.0.

use std::time::Duration;

use super::support::in_zoo;
use crate::support::scripts::points;
use dlock_zookeeper::{CreateMode, Error};

const PLAIN: CreateMode = CreateMode::PERSISTENT;
const QUEUED: CreateMode = CreateMode::EPHEMERAL_SEQUENTIAL;

#[test]
fn invalid_requests_get_the_errors_of_zookeeper() {
    in_zoo(|zoo| async move {
        let client = zoo.client("a");
        let deadline = zoo.within("a", 5000);
        let create = |path: &'static str, mode| {
            let client = client.clone();
            async move { client.create(path, b"", mode, deadline).await.map(|created| created.path) }
        };
        assert_eq!(create("/t", PLAIN).await, Ok("/t".to_owned()));
        assert_eq!(create("/t", PLAIN).await, Err(Error::NodeExists { path: "/t".to_owned() }));
        assert_eq!(create("/n/b", PLAIN).await, Err(Error::NoNode { path: "/n/b".to_owned() }));
        assert_eq!(create("/t/s-", QUEUED).await, Ok("/t/s-0000000000".to_owned()));
        let below = "/t/s-0000000000/x";
        let refused = Error::NoChildrenForEphemerals { path: below.to_owned() };
        assert_eq!(create(below, PLAIN).await, Err(refused));
        for path in ["t", "/t/", "/t//x", "/t/.", "/t/..", "/t/\u{1}", "/t/\u{e000}", "/t/😀"] {
            let refused = create(path, PLAIN).await;
            // The parent of a path with two slashes is missing already, which is another error.
            let known =
                matches!(&refused, Err(Error::BadArguments { .. })) || (path == "/t//x" && refused.is_err());
            assert!(known, "{path}: {refused:?}");
        }
        let t = "/t".to_owned();
        assert_eq!(client.delete("/t", None, deadline).await, Err(Error::NotEmpty { path: t }));
        let entry = "/t/s-0000000000".to_owned();
        assert_eq!(client.delete(&entry, Some(3), deadline).await, Err(Error::BadVersion { path: entry }));
        let none = "/t/none".to_owned();
        assert_eq!(client.delete(&none, None, deadline).await, Err(Error::NoNode { path: none.clone() }));
        assert_eq!(client.data(&none, deadline).await, Err(Error::NoNode { path: none.clone() }));
        assert_eq!(client.exists(&none, deadline).await, Ok(None));
    });
}

#[test]
fn sequence_numbers_count_all_children_ever_created() {
    in_zoo(|zoo| async move {
        let client = zoo.client("a");
        let deadline = zoo.within("a", 5000);
        client.create("/t", b"", PLAIN, deadline).await.unwrap();
        let mut numbers = Vec::new();
        for (name, mode) in [("/t/s-", QUEUED), ("/t/plain", PLAIN), ("/t/s-", QUEUED), ("/t/r-", QUEUED)] {
            let path = client.create(name, b"", mode, deadline).await.unwrap().path;
            client.delete(&path, None, deadline).await.unwrap();
            numbers.push(path);
        }
        assert_eq!(numbers, ["/t/s-0000000000", "/t/plain", "/t/s-0000000002", "/t/r-0000000003"]);
    });
}

#[test]
fn stats_count_as_the_real_ones() {
    in_zoo(|zoo| async move {
        let client = zoo.client("a");
        let deadline = zoo.within("a", 5000);
        let session = client.established(deadline).await.unwrap();
        let t = client.create("/t", b"x", PLAIN, deadline).await.unwrap().stat;
        let base = t.czxid;
        let entry = client.create("/t/s-", b"me", QUEUED, deadline).await.unwrap();
        assert_eq!(entry.stat.ephemeral_owner, session.id);
        assert_eq!((entry.stat.czxid - base, entry.stat.data_length), (1, 2));
        // A refused write uses up a zxid.
        client.create("/t", b"", PLAIN, deadline).await.unwrap_err();
        let set = client.set_data("/t", b"yyy", Some(0), deadline).await.unwrap();
        assert_eq!((set.mzxid - base, set.version, set.data_length), (3, 1, 3));
        assert_eq!((set.cversion, set.num_children, set.pzxid - base), (1, 1, 1));
        client.delete(&entry.path, Some(0), deadline).await.unwrap();
        let t = client.exists("/t", deadline).await.unwrap().unwrap();
        assert_eq!((t.cversion, t.num_children, t.pzxid - base, t.czxid), (2, 0, 4, base));
        let root = client.children("/", deadline).await.unwrap();
        assert_eq!((root.names.len(), root.stat.cversion), (2, 0), "cversion begins at -1");
        assert_eq!(base >> 32, 1, "the first epoch of an ensemble");
    });
}

#[test]
fn a_data_version_guards_the_write() {
    in_zoo(|zoo| async move {
        let client = zoo.client("a");
        let deadline = zoo.within("a", 5000);
        client.create("/t", b"0", PLAIN, deadline).await.unwrap();
        client.set_data("/t", b"1", Some(0), deadline).await.unwrap();
        let late = client.set_data("/t", b"2", Some(0), deadline).await;
        assert_eq!(late, Err(Error::BadVersion { path: "/t".to_owned() }));
        assert_eq!(client.data("/t", deadline).await.unwrap().0, b"1");
    });
}

#[test]
fn reads_of_the_empty_path_read_the_root() {
    in_zoo(|zoo| async move {
        let client = zoo.client("a");
        let deadline = zoo.within("a", 5000);
        let root = client.exists("/", deadline).await.unwrap();
        assert_eq!(client.exists("", deadline).await, Ok(root));
        assert_eq!(client.children("", deadline).await.unwrap().names, ["zookeeper"]);
        let refused = Error::BadArguments { path: String::new() };
        assert_eq!(client.set_data("", b"", None, deadline).await, Err(refused.clone()));
        assert_eq!(client.delete("", None, deadline).await, Err(refused));
    });
}

#[test]
fn the_servers_own_nodes_are_protected() {
    in_zoo(|zoo| async move {
        let client = zoo.client("a");
        let deadline = zoo.within("a", 5000);
        for path in ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"] {
            let refused = Error::BadArguments { path: path.to_owned() };
            assert_eq!(client.delete(path, None, deadline).await, Err(refused));
        }
        let none = "/zookeeper/none".to_owned();
        assert_eq!(client.delete(&none, None, deadline).await, Err(Error::NoNode { path: none.clone() }));
        let config = "/zookeeper/config".to_owned();
        let stat = client.exists(&config, deadline).await.unwrap().unwrap();
        assert_eq!(stat.aversion, -1);
        let refused = client.set_data(&config, b"", None, deadline).await;
        assert_eq!(refused, Err(Error::NoAuth { path: config }));
        let below = "/zookeeper/config/x".to_owned();
        let refused = client.create(&below, b"", PLAIN, deadline).await.map(|created| created.path);
        assert_eq!(refused, Err(Error::NoAuth { path: below }));
    });
}

#[test]
fn a_zero_byte_is_in_no_path() {
    in_zoo(|zoo| async move {
        let client = zoo.client("a");
        let deadline = zoo.within("a", 5000);
        for path in ["/t\0", "/none\0/x"] {
            let refused = Error::BadArguments { path: path.to_owned() };
            assert_eq!(client.exists(path, deadline).await, Err(refused.clone()));
            assert_eq!(client.delete(path, None, deadline).await, Err(refused.clone()));
            let created = client.create(path, b"", PLAIN, deadline).await.map(|created| created.path);
            assert_eq!(created, Err(refused.clone()));
        }
        let read = client.data("/t\0", deadline).await;
        assert_eq!(read, Err(Error::NoNode { path: "/t\0".to_owned() }));
    });
}

#[test]
fn each_request_is_a_point_of_its_server() {
    in_zoo(|zoo| async move {
        let points = points(&zoo.control);
        let client = zoo.client_of("a", &["zk-2"], Duration::from_secs(1));
        client.create("/t", b"", PLAIN, zoo.within("a", 5000)).await.unwrap();
        let expected = ["createSession", "create2"].map(|name| ("zk-2".to_owned(), name.to_owned()));
        assert_eq!(*points.lock().unwrap(), expected);
    });
}
