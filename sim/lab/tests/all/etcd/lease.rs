//! Leases of the simulated etcd: granted, renewed, ended on the leader's clock, restarted by a new leader.

use super::support::{Etcd, MEMBERS, in_cluster, refusal};
use etcd_client::{Client, LeaseGrantOptions, LeaseTimeToLiveOptions, PutOptions};
use sim::faults::Rate;

async fn leased(client: &mut Client, ttl: i64, key: &str) -> i64 {
    let lease = client.lease_grant(ttl, None).await.unwrap().id();
    client.put(key, "v", Some(PutOptions::new().with_lease(lease))).await.unwrap();
    lease
}

/// Waits until the key is gone. Returns the true time in milliseconds.
async fn gone(etcd: &Etcd, client: &mut Client, key: &str) -> u64 {
    while client.get(key, None).await.unwrap().count() > 0 {
        etcd.pass(10).await;
    }
    etcd.now()
}

#[test]
fn a_grant_has_the_chosen_id_and_etcds_minimum_ttl() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        let chosen = client.lease_grant(10, Some(LeaseGrantOptions::new().with_id(7))).await.unwrap();
        assert_eq!((chosen.id(), chosen.ttl()), (7, 10));
        let own = client.lease_grant(1, None).await.unwrap();
        assert_eq!(own.ttl(), 2, "one and a half election timeouts, in whole seconds");
        assert!(own.id() > 7);
        let again = client.lease_grant(10, Some(LeaseGrantOptions::new().with_id(7))).await;
        assert_eq!(refusal(again), "FailedPrecondition: etcdserver: lease already exists");
        let long = client.lease_grant(9_000_000_001, None).await;
        assert_eq!(refusal(long), "OutOfRange: etcdserver: too large lease TTL");
        let leases = client.leases().await.unwrap();
        let leases: Vec<i64> = leases.leases().iter().map(|lease| lease.id()).collect();
        assert_eq!(leases, [own.id(), 7], "the lease that ends first comes first");
    });
}

#[test]
fn a_revoked_lease_deletes_its_keys_in_one_revision() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        let lease = leased(&mut client, 60, "a").await;
        client.put("b", "v", Some(PutOptions::new().with_lease(lease))).await.unwrap();
        client.put("c", "v", Some(PutOptions::new().with_lease(lease))).await.unwrap();
        client.put("c", "v", None).await.unwrap();
        let options = Some(LeaseTimeToLiveOptions::new().with_keys());
        let life = client.lease_time_to_live(lease, options).await.unwrap();
        assert_eq!((life.granted_ttl(), life.keys().len()), (60, 2));
        assert_eq!(life.ttl(), 59, "whole seconds");
        let revoked = client.lease_revoke(lease).await.unwrap();
        assert_eq!(revoked.header().unwrap().revision(), 6);
        assert_eq!(client.get("a", None).await.unwrap().count(), 0);
        assert_eq!(
            client.get("c", None).await.unwrap().count(),
            1,
            "its last put had detached it from the lease"
        );
        assert_eq!(client.lease_time_to_live(lease, None).await.unwrap().ttl(), -1);
        let again = client.lease_revoke(lease).await;
        assert_eq!(refusal(again), "NotFound: etcdserver: requested lease not found");
    });
}

#[test]
fn a_lease_ends_within_half_a_second_of_its_ttl() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(1).await;
        let began = etcd.now();
        leased(&mut client, 3, "a").await;
        let ended = gone(&etcd, &mut client, "a").await - began;
        assert!((3000..3620).contains(&ended), "{ended}");
    });
}

#[test]
fn an_ended_lease_is_known_until_the_leader_revokes_it() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        let lease = leased(&mut client, 3, "a").await;
        // The leader looks for ended leases twice a second.
        etcd.pass(3100).await;
        let options = Some(LeaseTimeToLiveOptions::new().with_keys());
        let life = client.lease_time_to_live(lease, options).await.unwrap();
        assert_eq!((life.ttl(), life.granted_ttl(), life.keys().len()), (0, 3, 1));
        gone(&etcd, &mut client, "a").await;
        let life = client.lease_time_to_live(lease, None).await.unwrap();
        assert_eq!((life.ttl(), life.granted_ttl()), (-1, 0));
    });
}

#[test]
fn a_keepalive_restarts_a_lease_that_has_not_ended() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(2).await;
        let lease = leased(&mut client, 3, "a").await;
        let (mut keeper, mut answers) = client.lease_keep_alive(lease).await.unwrap();
        let began = etcd.now();
        for _ in 0..5 {
            keeper.keep_alive().await.unwrap();
            assert_eq!(answers.message().await.unwrap().unwrap().ttl(), 3);
            etcd.pass(2000).await;
        }
        assert_eq!(client.get("a", None).await.unwrap().count(), 1);
        let ended = gone(&etcd, &mut client, "a").await - began;
        assert!((10_900..11_700).contains(&ended), "{ended}");
        keeper.keep_alive().await.unwrap();
        assert_eq!(answers.message().await.unwrap().unwrap().ttl(), 0);
    });
}

#[test]
fn a_keepalive_after_the_end_does_not_save_the_lease() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        let lease = leased(&mut client, 3, "a").await;
        let (mut keeper, mut answers) = client.lease_keep_alive(lease).await.unwrap();
        keeper.keep_alive().await.unwrap();
        answers.message().await.unwrap();
        let began = etcd.now();
        // The lease is over and not yet revoked: the leader looks for ended leases twice a second.
        etcd.at(began + 3010).await;
        keeper.keep_alive().await.unwrap();
        assert_eq!(answers.message().await.unwrap().unwrap().ttl(), 0);
        assert_eq!(client.get("a", None).await.unwrap().count(), 0);
    });
}

#[test]
fn a_lease_runs_on_the_clock_of_the_leader() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(1).await;
        etcd.control.strike(Rate::of(MEMBERS[0], 2.0));
        let began = etcd.now();
        leased(&mut client, 4, "a").await;
        let ended = gone(&etcd, &mut client, "a").await - began;
        assert!((1990..2400).contains(&ended), "{ended}");
    });
}

#[test]
fn a_new_leader_restarts_every_lease_in_full() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(1).await;
        leased(&mut client, 5, "a").await;
        etcd.at(4000).await;
        assert!(etcd.cluster.move_leader(2));
        assert_eq!((etcd.cluster.leader(), etcd.cluster.term()), (2, 3));
        let ended = gone(&etcd, &mut client, "a").await;
        // The TTL, an election timeout on top, and up to half a second until the leader looks.
        assert!((10_000..10_620).contains(&ended), "{ended}");
        assert_eq!(etcd.now(), ended);
    });
}
