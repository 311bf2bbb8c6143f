//! Watches of the simulated etcd: from now, from the past, with filters, progress, cancel and compaction.

use super::support::{in_cluster, refusal};
use etcd_client::{
    EventType, PutOptions, Txn, TxnOp, WatchFilterType, WatchOptions, WatchResponse, WatchStream,
};

async fn next(stream: &mut WatchStream) -> String {
    text(&stream.message().await.unwrap().expect("the stream goes on"))
}

fn text(answer: &WatchResponse) -> String {
    let mut parts = vec![format!("#{} r{}", answer.watch_id(), answer.header().unwrap().revision())];
    if answer.created() {
        parts.push("created".to_owned());
    }
    if answer.canceled() {
        parts.push(format!("canceled {} {}", answer.compact_revision(), answer.cancel_reason()));
    }
    for event in answer.events() {
        let kind = if event.event_type() == EventType::Put { "put" } else { "delete" };
        let kv = event.kv().unwrap();
        let former =
            event.prev_kv().map(|kv| format!(" was {}", kv.value_str().unwrap())).unwrap_or_default();
        let (key, value) = (kv.key_str().unwrap(), kv.value_str().unwrap());
        parts.push(format!("{kind} {key}={value}@{}{former}", kv.mod_revision()));
    }
    parts.join(" ").trim_end().to_owned()
}

#[test]
fn a_watch_receives_a_transaction_in_one_answer() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(1).await;
        client.put("a", "0", None).await.unwrap();
        let mut stream =
            client.watch("a", Some(WatchOptions::new().with_range("c").with_prev_key())).await.unwrap();
        assert_eq!(next(&mut stream).await, "#0 r2 created");
        let mut other = etcd.client_of("b", 2).await;
        other.put("a", "1", None).await.unwrap();
        assert_eq!(next(&mut stream).await, "#0 r3 put a=1@3 was 0");
        other.put("c", "1", None).await.unwrap();
        let ops = [TxnOp::put("b", "2", None), TxnOp::delete("a", None), TxnOp::put("x", "", None)];
        other.txn(Txn::new().and_then(ops)).await.unwrap();
        assert_eq!(next(&mut stream).await, "#0 r5 put b=2@5 delete a=@5 was 1");
    });
}

#[test]
fn a_watch_starts_at_a_past_or_future_revision() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        for value in ["1", "2", "3"] {
            client.put("a", value, None).await.unwrap();
        }
        client.delete("a", None).await.unwrap();
        let mut stream = client.watch("a", Some(WatchOptions::new().with_start_revision(3))).await.unwrap();
        assert_eq!(next(&mut stream).await, "#0 r5 created");
        assert_eq!(next(&mut stream).await, "#0 r5 put a=2@3 put a=3@4 delete a=@5");
        stream.watch("a", Some(WatchOptions::new().with_start_revision(7))).await.unwrap();
        assert_eq!(next(&mut stream).await, "#1 r5 created");
        stream.cancel(0).await.unwrap();
        assert_eq!(next(&mut stream).await, "#0 r5 canceled 0");
        client.put("a", "6", None).await.unwrap();
        client.put("a", "7", None).await.unwrap();
        assert_eq!(next(&mut stream).await, "#1 r7 put a=7@7");
    });
}

#[test]
fn watches_have_filters_and_ids_and_refuse_invalid_requests() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        let deletes = WatchOptions::new().with_filters([WatchFilterType::NoPut]).with_watch_id(9);
        let mut stream = client.watch("a", Some(deletes)).await.unwrap();
        assert_eq!(next(&mut stream).await, "#9 r1 created");
        stream.watch("a", Some(WatchOptions::new().with_filters([WatchFilterType::NoDelete]))).await.unwrap();
        assert_eq!(next(&mut stream).await, "#0 r1 created");
        client.put("a", "1", None).await.unwrap();
        client.delete("a", None).await.unwrap();
        assert_eq!(next(&mut stream).await, "#0 r2 put a=1@2");
        assert_eq!(next(&mut stream).await, "#9 r3 delete a=@3");
        stream.watch("a", Some(WatchOptions::new().with_watch_id(9))).await.unwrap();
        assert_eq!(
            next(&mut stream).await,
            "#-1 r3 created canceled 0 mvcc: duplicate watch ID provided on the WatchStream"
        );
        stream.watch("b", Some(WatchOptions::new().with_range("a"))).await.unwrap();
        assert_eq!(next(&mut stream).await, "#-1 r3 created canceled 0 mvcc: watcher range is empty");
    });
}

#[test]
fn a_watch_below_the_compaction_is_cancelled_with_its_revision() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        for value in ["1", "2", "3"] {
            client.put("a", value, None).await.unwrap();
        }
        client.compact(3, None).await.unwrap();
        let mut stream = client.watch("a", Some(WatchOptions::new().with_start_revision(2))).await.unwrap();
        assert_eq!(next(&mut stream).await, "#0 r4 created");
        assert_eq!(next(&mut stream).await, "#0 r0 canceled 3");
        stream.watch("a", Some(WatchOptions::new().with_start_revision(3))).await.unwrap();
        assert_eq!(next(&mut stream).await, "#1 r4 created");
        assert_eq!(next(&mut stream).await, "#1 r4 put a=2@3 put a=3@4");
    });
}

#[test]
fn a_compacted_watch_keeps_its_id_until_cancelled_again() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        for value in ["1", "2", "3"] {
            client.put("a", value, None).await.unwrap();
        }
        client.compact(3, None).await.unwrap();
        let early = || WatchOptions::new().with_start_revision(2).with_watch_id(7);
        let mut stream = client.watch("a", Some(early())).await.unwrap();
        assert_eq!(next(&mut stream).await, "#7 r4 created");
        assert_eq!(next(&mut stream).await, "#7 r0 canceled 3");
        client.put("a", "4", None).await.unwrap();
        stream.watch("a", Some(WatchOptions::new().with_watch_id(7))).await.unwrap();
        assert!(next(&mut stream).await.contains("duplicate watch ID"));
        stream.cancel(7).await.unwrap();
        assert_eq!(next(&mut stream).await, "#7 r5 canceled 0");
        stream.watch("a", Some(WatchOptions::new().with_watch_id(7))).await.unwrap();
        assert_eq!(next(&mut stream).await, "#7 r5 created");
    });
}

#[test]
fn progress_comes_on_request_and_every_ten_minutes() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        let mut stream = client.watch("a", Some(WatchOptions::new().with_progress_notify())).await.unwrap();
        assert_eq!(next(&mut stream).await, "#0 r1 created");
        client.put("b", "1", None).await.unwrap();
        stream.request_progress().await.unwrap();
        assert_eq!(next(&mut stream).await, "#-1 r2");
        assert_eq!(next(&mut stream).await, "#0 r2");
        assert!((600_000..600_300).contains(&etcd.now()), "{}", etcd.now());
    });
}

#[test]
fn the_end_of_a_lease_is_seen_as_a_deletion() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        let lease = client.lease_grant(2, None).await.unwrap().id();
        client.put("a", "1", Some(PutOptions::new().with_lease(lease))).await.unwrap();
        let mut stream = client.watch("a", Some(WatchOptions::new().with_prev_key())).await.unwrap();
        assert_eq!(next(&mut stream).await, "#0 r2 created");
        assert_eq!(next(&mut stream).await, "#0 r3 delete a=@3 was 1");
        assert!((2000..2620).contains(&etcd.now()), "{}", etcd.now());
        assert_eq!(
            refusal(client.lease_revoke(lease).await),
            "NotFound: etcdserver: requested lease not found"
        );
    });
}
