//! The peers of a run, and the scenarios of each.

use std::slice::from_ref;
use std::time::Duration;

use dlock::TokioRuntime;

use super::raw_redis::Acquires;
use super::slice::{Peer, Scenario};
use super::{PeerError, elections, foreign, jobs, ours, raw_etcd, raw_redis, redisson};
use crate::servers::{EtcdCluster, Redis, ZooKeeper};
use crate::systems::System;

/// Our lock on Redis over TLS, by the name of its row.
pub(super) const SECURED: &str = "dlock, Redis over TLS";

/// Our lock on Redis with requests that demand no token, by the name of its row.
pub(super) const UNFENCED: &str = "dlock, Redis, without a token";

/// The names of the peers that can be left out.
pub(super) const OPTIONAL: [&str; 8] = [
    "redis-py",
    "node-redlock",
    "rslock",
    "kazoo",
    "kazoo's Election",
    "redis-semaphore",
    "bullmq",
    "pg-boss",
];

/// One peer and its scenarios.
pub(super) struct Entry {
    pub(super) peer: Box<dyn Peer>,
    /// The place of its rows in the tables.
    pub(super) place: usize,
    pub(super) scenarios: &'static [Scenario],
}

/// The scenarios of our locks and of our job queue on Redis.
const EVERY: &[Scenario] = &[
    Scenario::Uncontended,
    Scenario::Hot,
    Scenario::Space,
    Scenario::Take,
    Scenario::Permit,
    Scenario::Crowd,
    Scenario::Read,
    Scenario::Mixed,
    Scenario::Nested,
    Scenario::Several,
    Scenario::Claim,
    Scenario::Drain,
];

/// The scenarios of our locks on systems with a queue, and of kazoo's.
const QUEUE: &[Scenario] = &[
    Scenario::Uncontended,
    Scenario::Hot,
    Scenario::Space,
    Scenario::Permit,
    Scenario::Crowd,
    Scenario::Read,
    Scenario::Mixed,
];

/// The scenarios of Redisson's semaphore and locks.
const REDISSON: &[Scenario] =
    &[Scenario::Permit, Scenario::Crowd, Scenario::Read, Scenario::Mixed, Scenario::Nested];

const PERMITS: &[Scenario] = &[Scenario::Permit, Scenario::Crowd];

const JOBS: &[Scenario] = &[Scenario::Claim, Scenario::Drain];

const UNCONTENDED_ARMS: &[Scenario] = &[Scenario::Uncontended, Scenario::Space, Scenario::Take];

const REDLOCK: &[Scenario] = &[Scenario::Uncontended, Scenario::Hot, Scenario::Space, Scenario::Several];

const LOCK: &[Scenario] = &[Scenario::Uncontended, Scenario::Hot, Scenario::Space];

/// Lists the peers. Those that share a server are neighbours, so that they are measured one right after the
/// other.
pub(super) fn enter(
    redis: &Redis,
    secured: ours::Ours,
    etcd: &EtcdCluster,
    zookeeper: &ZooKeeper,
    jobs: jobs::OnPostgres,
    without: &[String],
    missing: &mut Vec<(&'static str, String)>,
) -> Vec<Entry> {
    let (server, keeper) = (redis.address(), zookeeper.address());
    let mut entries = Vec::new();
    let mut add = |peer: Box<dyn Peer>, scenarios: &'static [Scenario]| {
        let place = entries.len();
        entries.push(Entry { peer, place, scenarios });
    };
    let ours = |name, system, servers: &[String]| {
        let (servers, busy_poll) = (servers.to_vec(), TokioRuntime::BUSY_POLL);
        Box::new(ours::Ours { name, system, servers, tls_roots: None, busy_poll, fenced: true })
    };
    let mut foreign = |name: &str, start: &dyn Fn() -> Result<foreign::Foreign, PeerError>| {
        if without.iter().any(|left_out| left_out == name) {
            return None;
        }
        let started = start();
        started
            .map_err(|error| {
                if let PeerError::Missing { name, why } = error {
                    missing.push((name, why))
                }
            })
            .ok()
    };
    add(Box::new(raw_redis::SocketEvalsha { server: server.clone() }), &[Scenario::Uncontended]);
    for acquires in [Acquires::Evalsha, Acquires::Set] {
        add(Box::new(raw_redis::RedisCrate { server: server.clone(), acquires }), &[Scenario::Uncontended]);
    }
    add(ours("dlock, Redis", System::Redis, from_ref(&server)), EVERY);
    let mut sleepy = ours("dlock, Redis, never polling", System::Redis, from_ref(&server));
    sleepy.busy_poll = Duration::ZERO;
    add(sleepy, EVERY);
    add(Box::new(secured), UNCONTENDED_ARMS);
    let mut unfenced = ours(UNFENCED, System::Redis, from_ref(&server));
    unfenced.fenced = false;
    add(unfenced, UNCONTENDED_ARMS);
    add(Box::new(raw_redis::RedisBenchmark { server: server.clone() }), &[Scenario::Take]);
    for (peer, scenarios) in [
        (foreign("redis-py", &|| foreign::redis_py(&server)), LOCK),
        (foreign("node-redlock", &|| foreign::node_redlock(&server)), REDLOCK),
        (foreign("rslock", &|| foreign::rslock(&server)), LOCK),
    ] {
        peer.into_iter().for_each(|peer| add(Box::new(peer), scenarios));
    }
    add(Box::new(redisson::Redisson { server: server.clone() }), REDISSON);
    for (peer, scenarios) in [
        (foreign("redis-semaphore", &|| foreign::redis_semaphore(&server)), PERMITS),
        (foreign("bullmq", &|| foreign::bullmq(&server)), JOBS),
    ] {
        peer.into_iter().for_each(|peer| add(Box::new(peer), scenarios));
    }
    let pg_boss = foreign("pg-boss", &|| foreign::pg_boss(jobs.url()));
    add(Box::new(jobs), JOBS);
    if let Some(peer) = pg_boss {
        add(Box::new(peer), JOBS);
    }
    let members = etcd.addresses();
    add(Box::new(raw_etcd::RawTxn { members: members.clone() }), &[Scenario::Uncontended]);
    add(ours("dlock, etcd", System::Etcd, &members), QUEUE);
    add(Box::new(raw_etcd::LockService { members: members.clone() }), LOCK);
    let election = |name, system, servers| Box::new(elections::OurElection { name, system, servers });
    add(election("dlock, etcd, election", System::Etcd, members.clone()), &[Scenario::Uncontended]);
    add(Box::new(elections::ElectionService { members }), &[Scenario::Uncontended]);
    add(ours("dlock, ZooKeeper", System::Zookeeper, from_ref(&keeper)), QUEUE);
    if let Some(peer) = foreign("kazoo", &|| foreign::kazoo(&keeper)) {
        add(Box::new(peer), QUEUE);
    }
    add(
        election("dlock, ZooKeeper, election", System::Zookeeper, vec![keeper.clone()]),
        &[Scenario::Uncontended],
    );
    if let Some(peer) = foreign("kazoo's Election", &|| foreign::kazoo_election(&keeper)) {
        add(Box::new(peer), &[Scenario::Uncontended]);
    }
    entries
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The programs of peers in other languages are not run by the tests, since they are fetched.
    #[test]
    fn each_program_has_the_scenarios_of_its_peer() {
        for (program, scenarios) in [
            ("redis_py.py", LOCK),
            ("node_redlock.mjs", REDLOCK),
            ("redis_semaphore.mjs", PERMITS),
            ("bullmq.mjs", JOBS),
            ("pg_boss.mjs", JOBS),
            ("kazoo_lock.py", QUEUE),
        ] {
            let path = format!("{}/peers/{program}", env!("CARGO_MANIFEST_DIR"));
            let source = fs::read_to_string(path).unwrap();
            let table = source.rsplit_once("scenarios = {").or_else(|| source.rsplit_once("serve(")).unwrap();
            let names: Vec<_> = table.1.split(|letter: char| !letter.is_alphanumeric()).collect();
            for scenario in scenarios {
                let name = serde_json::to_value(scenario).unwrap();
                assert!(names.contains(&name.as_str().unwrap()), "{program}: {name}");
            }
        }
    }
}
