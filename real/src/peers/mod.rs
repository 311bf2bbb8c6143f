//! Our locks and others', side by side in one run.
//!
//! Each peer does the same work in small slices, all in turns, so that whatever else the machine does hits all alike; what
//! counts is the ratio between them. [`mod@slice`] says what a slice is; `ours`, `raw_redis`, `raw_etcd` and `foreign` are the
//! peers; `cores` gives the Redis a core and its client another where one request after the other is timed; [`measure`] goes
//! round and keeps what they measured; [`table`] sets it against the targets.

mod cores;
mod foreign;
pub mod measure;
mod ours;
mod raw_etcd;
mod raw_redis;
pub mod slice;
pub mod table;

use std::io;
use std::time::Duration;

use crate::lab::Machine;
use crate::servers::{EtcdCluster, Persistence, Redis, ServerError, Stage, ZooKeeper};
use crate::systems::System;

use crate::TokioRuntime;

use self::cores::Cores;
use self::measure::{Configuration, Results};
use self::raw_redis::Acquires;
use self::slice::{Peer, Scenario};

/// A comparison that could not be made, or a peer that is not in it.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The peer is not on this machine and could not be had.
    #[error("{name} could not be had: {why}; or leave it out by --without {name}")]
    Missing {
        /// Which.
        name: &'static str,
        /// Why, and what to do.
        why: String,
    },
    /// The peer did not get through its work.
    #[error("{name} failed: {what}")]
    Failed {
        /// Which.
        name: &'static str,
        /// What it said.
        what: String,
    },
    /// No such peer to leave out.
    #[error("there is no peer `{0}`: see `real peers --help` for their names")]
    Unknown(String),
    /// A server.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The machine.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// The names of the peers that can be left out.
pub const OPTIONAL: [&str; 4] = ["redis-py", "node-redlock", "rslock", "kazoo"];

/// One peer, and what it is measured at.
pub(crate) struct Entry {
    pub(crate) peer: Box<dyn Peer>,
    /// Where its rows stand in the tables.
    pub(crate) place: usize,
    pub(crate) scenarios: &'static [Scenario],
}

/// What our locks on Redis do.
const EVERY: &[Scenario] = &[Scenario::Uncontended, Scenario::Hot, Scenario::Space, Scenario::Take];

const LOCK: &[Scenario] = &[Scenario::Uncontended, Scenario::Hot, Scenario::Space];

/// Starts the servers and the peers, but for those in `without`, and measures them.
///
/// # Errors
///
/// [`PeerError`] if a server or one of our own arms failed. A peer that could not be had is in the results, with the reason.
pub fn compare(
    configuration: Configuration,
    without: &[String],
    tell: impl Fn(&str),
) -> Result<Results, PeerError> {
    if let Some(name) = without.iter().find(|name| !OPTIONAL.contains(&name.as_str())) {
        return Err(PeerError::Unknown(name.clone()));
    }
    let stage = Stage::new()?;
    let machine = Machine::this();
    let mut redis = Redis::start(&stage, "redis", Persistence::None)?;
    let etcd = EtcdCluster::start(&stage)?;
    let zookeeper = ZooKeeper::start(&stage)?;
    let cores = Cores::with(redis.process().pid())?;
    let mut missing = Vec::new();
    let entries = enter(&redis, &etcd, &zookeeper, without, &mut missing);
    let mut results = measure::measure(machine, configuration, entries, (redis.port(), cores), tell)?;
    results.missing.extend(missing);
    Ok(results)
}

/// Those that share a server stand next to each other, so that they are measured right after one another.
fn enter(
    redis: &Redis,
    etcd: &EtcdCluster,
    zookeeper: &ZooKeeper,
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
        Box::new(ours::Ours { name, system, servers, busy_poll })
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
    add(ours("dlock, Redis", System::Redis, std::slice::from_ref(&server)), EVERY);
    let mut sleepy = ours("dlock, Redis, never polling", System::Redis, std::slice::from_ref(&server));
    sleepy.busy_poll = Duration::ZERO;
    add(sleepy, EVERY);
    add(Box::new(raw_redis::RedisBenchmark { server: server.clone() }), &[Scenario::Take]);
    for peer in [
        foreign("redis-py", &|| foreign::redis_py(&server)),
        foreign("node-redlock", &|| foreign::node_redlock(&server)),
        foreign("rslock", &|| foreign::rslock(&server)),
    ] {
        peer.into_iter().for_each(|peer| add(Box::new(peer), LOCK));
    }
    let members = etcd.addresses();
    add(Box::new(raw_etcd::RawTxn { members: members.clone() }), &[Scenario::Uncontended]);
    add(ours("dlock, etcd", System::Etcd, &members), LOCK);
    add(Box::new(raw_etcd::LockService { members }), LOCK);
    add(ours("dlock, ZooKeeper", System::Zookeeper, std::slice::from_ref(&keeper)), LOCK);
    if let Some(peer) = foreign("kazoo", &|| foreign::kazoo(&keeper)) {
        add(Box::new(peer), LOCK);
    }
    entries
}
