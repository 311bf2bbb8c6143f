//! Faults between hosts, under a real lock and a real cluster: a cable pulled, packets dropped in one
//! direction, connections reset, packets lost at random. Needs root, `ip` and `nft`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test on live servers fails by panicking"
)]

#[path = "support/eventually.rs"]
mod eventually;

use std::fs;
use std::path::Path;
use std::time::Duration;

use dlock::TokioRuntime;
use dlock::redis::{Redis as Backend, RedisOptions};
use dlock::{BackendError, Lock, LockKey, Options, Runtime, TryAcquireError};
use eventually::eventually;
use real::faults::{Filter, Network};
use real::servers::{EtcdCluster, Host, Persistence, Redis, Stage, ask, ask_http, end_left_stage};

/// A Redis on one host, and a client on another.
struct Scene {
    _stage: Stage,
    network: Network,
    redis: Redis,
}

impl Scene {
    fn new() -> Self {
        let stage = Stage::new().unwrap();
        let network = Network::new(&stage, 2).unwrap();
        let redis = Redis::start_at(&stage, "redis", Persistence::None, &network.hosts()[0]).unwrap();
        Self { _stage: stage, network, redis }
    }

    fn server(&self) -> &Host {
        &self.network.hosts()[0]
    }

    fn client(&self) -> &Host {
        &self.network.hosts()[1]
    }

    fn key_exists(&self, id: &str) -> bool {
        let question = format!("EXISTS {}\r\n", key(id).owner_key());
        let answer = || ask(self.redis.port(), &question, |answer| answer.ends_with("\r\n")).unwrap();
        self.server().run(answer).unwrap() == ":1\r\n"
    }

    /// Acquires one lock on the client's host, so that its connection is open; then runs `fault`, and tries
    /// another lock once.
    fn try_after(&self, id: &str, fault: impl FnOnce() + Send) -> Result<(), TryAcquireError> {
        let address = self.redis.address();
        self.client()
            .run(|| {
                let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                executor.block_on(async {
                    let mut options = Options::new(Duration::from_secs(3600));
                    options.request_timeout = Duration::from_secs(2);
                    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
                    let redis = Backend::new(runtime.clone(), &address, RedisOptions::default()).unwrap();
                    let lock = Lock::new(redis, options).unwrap();
                    let deadline = runtime.now() + Duration::from_secs(60);
                    let first = LockKey::new("first", id).unwrap();
                    lock.acquire(&first, deadline).await.unwrap().release().await.unwrap();
                    fault();
                    lock.try_acquire(&key(id)).await.map(dlock::Handle::leave)
                })
            })
            .unwrap()
    }
}

fn key(id: &str) -> LockKey {
    LockKey::new("k", id).unwrap()
}

/// Returns the number of segments that the host has retransmitted.
fn retransmitted(host: &Host) -> u64 {
    let snmp = host.run(|| fs::read_to_string("/proc/thread-self/net/snmp")).unwrap().unwrap();
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let place = lines.next().unwrap().split(' ').position(|name| name == "RetransSegs").unwrap();
    lines.next().unwrap().split(' ').nth(place).unwrap().parse().unwrap()
}

#[test]
fn a_lock_fails_under_each_network_fault_and_recovers() {
    let scene = Scene::new();
    let (server, client) = (scene.server(), scene.client());
    scene.try_after("healthy", || ()).unwrap();
    assert!(scene.key_exists("healthy"));

    let unplugged = scene.try_after("unplugged", || server.unplug().unwrap());
    assert!(matches!(unplugged, Err(TryAcquireError::Backend(_))), "{unplugged:?}");
    server.plug_in().unwrap();

    // The request arrives, its answer does not: the lock is taken, and the client can't know.
    let answers = scene.try_after("answers", || client.filter(server, Filter::Drop).unwrap());
    assert!(matches!(answers, Err(TryAcquireError::Backend(_))), "{answers:?}");
    assert!(scene.key_exists("answers"));
    client.clear().unwrap();

    let requests = scene.try_after("requests", || server.filter(client, Filter::Drop).unwrap());
    assert!(matches!(requests, Err(TryAcquireError::Backend(_))), "{requests:?}");
    assert!(!scene.key_exists("requests"));
    server.clear().unwrap();

    let reset = scene.try_after("reset", || server.filter(client, Filter::Reset).unwrap());
    let broken = matches!(
        reset,
        Err(TryAcquireError::Backend(BackendError::Disconnected { .. } | BackendError::Unreachable { .. }))
    );
    assert!(broken, "{reset:?}");
    server.clear().unwrap();

    let before = retransmitted(client);
    server.filter(client, Filter::Lose(40)).unwrap();
    eventually("a segment is lost and retransmitted", || {
        let _ = scene.try_after("loss", || ());
        (retransmitted(client) > before).then_some(())
    });
    server.clear().unwrap();
    scene.try_after("healed", || ()).unwrap();
}

/// Returns the leader that member `n` knows, and the member's own id.
fn status(cluster: &EtcdCluster, hosts: &[Host], n: usize) -> Option<(String, String)> {
    let ask = || ask_http(cluster.members[n].port(), "POST", "/v3/maintenance/status", "", "{}");
    let answer = hosts[n].run(ask).unwrap().ok()?;
    let body: serde_json::Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    Some((text(&body["leader"]), text(&body["header"]["member_id"])))
}

#[test]
fn a_leader_cut_off_from_the_others_is_replaced() {
    let stage = Stage::new().unwrap();
    let network = Network::new(&stage, 3).unwrap();
    let hosts = network.hosts();
    let cluster = EtcdCluster::start_at(&stage, [&hosts[0], &hosts[1], &hosts[2]]).unwrap();
    let old = eventually("there is a leader", || cluster.leader());
    let id = status(&cluster, hosts, old).unwrap().1;
    let others: Vec<_> = (0..3).filter(|n| *n != old).collect();
    for other in &others {
        hosts[old].filter(&hosts[*other], Filter::Drop).unwrap();
        hosts[*other].filter(&hosts[old], Filter::Drop).unwrap();
    }
    let leader_of =
        |n| status(&cluster, hosts, n).map(|(leader, _)| leader).filter(|leader| !leader.is_empty());
    eventually("the majority has another leader", || {
        let seen: Vec<_> = others.iter().filter_map(|n| leader_of(*n)).collect();
        (seen.len() == 2 && seen[0] == seen[1] && seen[0] != "0" && seen[0] != id).then_some(())
    });
    hosts.iter().for_each(|host| host.clear().unwrap());
    eventually("the old leader follows the new one", || {
        let new = leader_of(others[0])?;
        (leader_of(old)? == new && new != "0").then_some(())
    });
}

fn namespaces_exist(host: &Host) -> bool {
    host.run(|| ()).is_ok()
}

#[test]
fn a_network_leaves_no_namespaces_behind() {
    let stage = Stage::new().unwrap();
    let network = Network::new(&stage, 2).unwrap();
    let host = network.hosts()[0].clone();
    assert!(namespaces_exist(&host));
    drop(network);
    assert!(!namespaces_exist(&host), "dropped");
    let network = Network::new(&stage, 2).unwrap();
    let host = network.hosts()[0].clone();
    let redis = Redis::start_at(&stage, "redis", Persistence::None, &host).unwrap();
    // As after a crash: nothing is dropped, and the guard must clean up.
    std::mem::forget((network, redis));
    let directory = stage.directory().to_owned();
    end_left_stage(&directory).unwrap();
    assert!(!namespaces_exist(&host), "left to the guard");
    assert!(!Path::new(&directory).exists());
}
