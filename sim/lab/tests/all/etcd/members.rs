//! Members of the simulated etcd that are cut off from each other: timeouts without a quorum, elections,
//! stale reads.

use std::time::Duration;

use super::support::{MEMBERS, in_cluster, refusal};
use crate::support::scripts::points;
use etcd_client::{GetOptions, PutOptions};
use sim::faults::{Crash, Pause};

#[test]
fn without_quorum_a_member_times_out_and_reads_stale_data() {
    in_cluster(|etcd| async move {
        let (mut lone, mut client) = (etcd.client(2).await, etcd.client(1).await);
        client.put("a", "1", None).await.unwrap();
        etcd.cut(MEMBERS[2], 0);
        etcd.cut(MEMBERS[2], 1);
        client.put("a", "2", None).await.unwrap();
        let began = etcd.now();
        assert_eq!(refusal(lone.put("a", "3", None).await), "Unavailable: etcdserver: request timed out");
        let waited = etcd.now() - began;
        assert!((7000..7010).contains(&waited), "{waited}");
        assert_eq!(refusal(lone.get("a", None).await), "Unavailable: etcdserver: request timed out");
        // By now it knows of no leader, and etcd answers with other texts.
        assert_eq!(refusal(lone.lease_grant(5, None).await), "Unknown: context deadline exceeded");
        assert_eq!(refusal(lone.lease_time_to_live(5, None).await), "Unavailable: etcdserver: no leader");
        let stale = lone.get("a", Some(GetOptions::new().with_serializable())).await.unwrap();
        assert_eq!((stale.kvs()[0].value(), stale.header().unwrap().revision()), (&b"1"[..], 2));
        assert_eq!(
            client.get("a", None).await.unwrap().kvs()[0].value(),
            b"2",
            "the timed out put did nothing"
        );
    });
}

#[test]
fn a_request_waits_for_the_quorum_to_come_back() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        client.put("a", "1", None).await.unwrap();
        etcd.cluster.isolate(1, true);
        etcd.cluster.isolate(2, true);
        let cluster = etcd.cluster.clone();
        etcd.control.after(Duration::from_millis(3000 - etcd.now()), move |_| cluster.isolate(1, false));
        client.put("a", "2", None).await.unwrap();
        assert!((3000..3010).contains(&etcd.now()), "{}", etcd.now());
    });
}

#[test]
fn a_leader_cut_off_is_replaced_and_its_watches_lag() {
    in_cluster(|etcd| async move {
        let (mut old, mut client) = (etcd.client(0).await, etcd.client(1).await);
        let mut stream = old.watch("a", None).await.unwrap();
        assert!(stream.message().await.unwrap().unwrap().created());
        etcd.cut(MEMBERS[0], 1);
        etcd.cut(MEMBERS[0], 2);
        let began = etcd.now();
        client.put("a", "1", None).await.unwrap();
        let waited = etcd.now() - began;
        assert!((900..1800).contains(&waited), "{waited}");
        assert_ne!(etcd.cluster.leader(), 0);
        assert_eq!(etcd.recorded(), [format!("leader {} term 3", etcd.cluster.leader())]);
        assert!(etcd.within(2000, stream.message()).await.is_none(), "no events without a quorum");
        etcd.heal(MEMBERS[0], 1);
        etcd.heal(MEMBERS[0], 2);
        let news = etcd.within(200, stream.message()).await.expect("it catches up");
        assert_eq!(news.unwrap().unwrap().events()[0].kv().unwrap().value(), b"1");
        assert_eq!(old.get("a", None).await.unwrap().count(), 1);
    });
}

#[test]
fn a_paused_or_crashed_leader_is_replaced_without_data_loss() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(2).await;
        client.put("a", "1", None).await.unwrap();
        let pause = etcd.control.strike(Pause::of(MEMBERS[0]));
        client.put("a", "2", None).await.unwrap();
        let second = etcd.cluster.leader();
        assert_ne!(second, 0);
        pause.heal();
        etcd.pass(500).await;
        assert_eq!(etcd.cluster.leader(), second, "the old leader follows");
        let crash = etcd.control.strike(Crash::of(MEMBERS[second]));
        let mut other = etcd.client(0).await;
        other.put("a", "3", None).await.unwrap();
        assert_ne!(etcd.cluster.leader(), second);
        crash.heal();
        etcd.pass(500).await;
        let mut back = etcd.client(second).await;
        assert_eq!(back.get("a", None).await.unwrap().kvs()[0].value(), b"3");
        assert_eq!(etcd.cluster.term(), 4);
    });
}

#[test]
fn a_lagging_member_does_not_become_the_leader() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(1).await;
        client.put("a", "1", None).await.unwrap();
        etcd.cluster.isolate(2, true);
        client.put("a", "2", None).await.unwrap();
        etcd.cluster.isolate(0, true);
        etcd.cluster.isolate(2, false);
        // Members 1 and 2 don't serve yet, and member 2 lacks the last put.
        client.put("a", "3", None).await.unwrap();
        assert_eq!(etcd.cluster.leader(), 1);
    });
}

#[test]
fn leases_outlive_their_ttl_while_there_is_no_leader() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        let lease = client.lease_grant(2, None).await.unwrap().id();
        client.put("a", "1", Some(PutOptions::new().with_lease(lease))).await.unwrap();
        etcd.cluster.isolate(1, true);
        etcd.cluster.isolate(2, true);
        etcd.at(5000).await;
        let read = Some(GetOptions::new().with_serializable());
        assert_eq!(client.get("a", read.clone()).await.unwrap().count(), 1);
        etcd.cluster.isolate(1, false);
        etcd.at(12_000).await;
        assert_eq!(client.get("a", None).await.unwrap().count(), 0);
    });
}

#[test]
fn a_client_that_requires_a_leader_fails_without_one() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client_that_needs_a_leader(0).await;
        let mut stream = client.watch("a", None).await.unwrap();
        assert!(stream.message().await.unwrap().unwrap().created());
        etcd.cluster.isolate(1, true);
        etcd.cluster.isolate(2, true);
        let ended = stream.message().await;
        assert_eq!(refusal(ended), "Unavailable: etcdserver: no leader");
        assert!((2900..3300).contains(&etcd.now()), "three election timeouts: {}", etcd.now());
        assert_eq!(refusal(client.put("a", "1", None).await), "Unavailable: etcdserver: no leader");
        assert!(etcd.now() < 3310, "{}", etcd.now());
    });
}

#[test]
fn status_names_the_leader_among_the_members() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(1).await;
        let members = client.member_list().await.unwrap();
        let names: Vec<_> = members.members().iter().map(|member| member.name().to_owned()).collect();
        assert_eq!(names, ["etcd-1", "etcd-2", "etcd-3"]);
        assert_eq!(members.members()[1].client_urls(), ["http://etcd-2:2379"]);
        let status = client.status().await.unwrap();
        assert_eq!(status.leader(), members.members()[0].id());
        let target = members.members()[2].id();
        assert_eq!(refusal(client.move_leader(target).await), "FailedPrecondition: etcdserver: not leader");
        etcd.client(0).await.move_leader(target).await.unwrap();
        let status = client.status().await.unwrap();
        assert_eq!((status.leader(), status.raft_term()), (target, 3));
        etcd.cluster.isolate(1, true);
        etcd.pass(2000).await;
        assert_eq!(client.status().await.unwrap().leader(), 0);
    });
}

#[test]
fn each_request_is_a_point_of_its_member() {
    in_cluster(|etcd| async move {
        let points = points(&etcd.control);
        let mut client = etcd.client(1).await;
        client.put("a", "1", None).await.unwrap();
        client.get("a", None).await.unwrap();
        let expected = ["Put", "Range"].map(|call| ("etcd-2".to_owned(), call.to_owned()));
        assert_eq!(*points.lock().unwrap(), expected);
    });
}
