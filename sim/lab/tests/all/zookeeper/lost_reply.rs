//! Requests whose answers are lost: the client's errors, and the protected name that finds the created node.

use super::support::{SERVERS, Zoo, in_zoo};
use dlock_zookeeper::{Client, CreateMode, Error, path};
use sim::world::runtime::SimRuntime;

const PLAIN: CreateMode = CreateMode::PERSISTENT;
const QUEUED: CreateMode = CreateMode::EPHEMERAL_SEQUENTIAL;

/// Returns a client that has created a queue.
async fn with_queue(zoo: &Zoo) -> Client<SimRuntime> {
    let client = zoo.client("a");
    let deadline = zoo.within("a", 3000);
    client.create("/locks", b"", PLAIN, deadline).await.unwrap();
    client.create("/locks/x", b"", PLAIN, deadline).await.unwrap();
    client
}

fn each_server(act: impl Fn(&'static str)) {
    SERVERS.into_iter().for_each(act);
}

#[test]
fn a_protected_name_finds_a_node_whose_reply_was_lost() {
    in_zoo(|zoo| async move {
        let a = with_queue(&zoo).await;
        let session = a.session().unwrap();
        let prefix = path::entry_prefix(&path::guid(&zoo.runtime("a")));
        each_server(|server| zoo.cut(server, "a"));
        let entry = format!("/locks/x/{prefix}");
        let breaks = async {
            zoo.pass(20).await;
            zoo.reset_all("a");
            each_server(|server| zoo.heal(server, "a"));
        };
        let create = a.create(&entry, b"owner", QUEUED, zoo.within("a", 3000));
        let (created, ()) = futures_util::future::join(create, breaks).await;
        assert_eq!(created, Err(Error::ConnectionLoss));

        let deadline = zoo.within("a", 3000);
        a.sync("/locks/x", deadline).await.unwrap();
        let names = a.children("/locks/x", deadline).await.unwrap().names;
        let ours: Vec<_> = names.iter().filter(|name| name.starts_with(&prefix)).collect();
        assert_eq!((names.len(), ours.len()), (1, 1));
        assert_eq!(path::entry_number(ours[0]), Some(0));
        let (data, stat) = a.data(&format!("/locks/x/{}", ours[0]), deadline).await.unwrap();
        assert_eq!((data, stat.ephemeral_owner), (b"owner".to_vec(), session.id));
    });
}

#[test]
fn no_answer_and_not_sent_are_different_errors() {
    in_zoo(|zoo| async move {
        let a = with_queue(&zoo).await;
        each_server(|server| zoo.cut(server, "a"));
        let created = a.create("/sent", b"", PLAIN, zoo.within("a", 50)).await;
        assert_eq!(created, Err(Error::NoAnswer));
        // The client closes the connection after a third of the timeout; from then on nothing is sent.
        zoo.pass(600).await;
        let created = a.create("/unsent", b"", PLAIN, zoo.within("a", 100)).await;
        assert!(matches!(created, Err(Error::NotSent { .. })), "{created:?}");
        each_server(|server| zoo.heal(server, "a"));
        assert!(a.exists("/sent", zoo.within("a", 3000)).await.unwrap().is_some());
        assert_eq!(a.exists("/unsent", zoo.within("a", 3000)).await, Ok(None));
    });
}

#[test]
fn a_request_dropped_before_it_was_sent_has_no_effect() {
    in_zoo(|zoo| async move {
        let a = zoo.client("a");
        // Polled once, the request waits for the first connection.
        let mut create = Box::pin(a.create("/dropped", b"", PLAIN, zoo.within("a", 3000)));
        assert!(futures_util::poll!(&mut create).is_pending());
        drop(create);
        assert_eq!(a.exists("/dropped", zoo.within("a", 3000)).await, Ok(None));
    });
}

#[test]
fn requests_are_pipelined_and_executed_in_order() {
    in_zoo(|zoo| async move {
        let a = with_queue(&zoo).await;
        let deadline = zoo.within("a", 3000);
        let creates = (0..50).map(|_| a.create("/locks/x/n-", b"", QUEUED, deadline));
        let created = futures_util::future::try_join_all(creates).await.unwrap();
        let before = zoo.now();
        for (number, created) in created.iter().enumerate() {
            assert_eq!(created.path, format!("/locks/x/n-{number:010}"));
        }
        assert!(created.is_sorted_by_key(|created| created.stat.czxid));
        assert!(before < 20 * super::support::MS, "pipelined: not a round trip each");
    });
}
