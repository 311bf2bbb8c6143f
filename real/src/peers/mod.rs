//! Compares these locks with other libraries, side by side in one run.
//!
//! Each peer does the same work in small slices, all in turns, so that disturbances of the machine affect all
//! alike; the result is the ratio between peers. [`mod@slice`] defines a slice. `ours`, `raw_redis`,
//! `raw_etcd`, `permits`, `elections` and `foreign` are the peers. `cores` pins the Redis and its client to
//! different cores where single requests are timed. [`measure`] runs the slices and combines them,
//! [`table`] compares the results with the targets, and `page` makes docs/peers.md of them.

mod cores;
mod elections;
mod foreign;
pub mod measure;
mod ours;
mod page;
mod permits;
mod raw_etcd;
mod raw_redis;
pub mod slice;
pub mod table;

use std::io;
use std::slice::from_ref;
use std::time::Duration;

use crate::lab::Machine;
use crate::servers::{EtcdCluster, Redis, ServerError, Stage, TlsFiles, ZooKeeper};
use crate::systems::System;

use dlock::TokioRuntime;
use dlock::tls::Identity;

use self::cores::Cores;
use self::measure::{Configuration, Results};
pub use self::page::{PeersPageError, page, stored_page};
use self::raw_redis::Acquires;
use self::slice::{Peer, Scenario};

/// A comparison that could not be made, or a peer that is not in it.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The peer is not installed on this machine and could not be installed.
    #[error("{name} could not be installed: {why}; or leave it out with --without {name}")]
    Missing {
        /// The peer.
        name: &'static str,
        /// The reason and the remedy.
        why: String,
    },
    /// The peer failed during its work.
    #[error("{name} failed: {what}")]
    Failed {
        /// The peer.
        name: &'static str,
        /// Its message.
        what: String,
    },
    /// No peer of this name can be left out.
    #[error("there is no peer `{0}`: see `real peers --help` for their names")]
    Unknown(String),
    /// A server failed.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The operating system failed.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Our lock on Redis over TLS, by the name of its row.
const SECURED: &str = "dlock, Redis over TLS";

/// Our lock on Redis with requests that demand no token, by the name of its row.
const UNFENCED: &str = "dlock, Redis, without a token";

/// The names of the peers that can be left out.
pub const OPTIONAL: [&str; 6] =
    ["redis-py", "node-redlock", "rslock", "kazoo", "kazoo's Election", "redis-semaphore"];

/// One peer and its scenarios.
pub(crate) struct Entry {
    pub(crate) peer: Box<dyn Peer>,
    /// The place of its rows in the tables.
    pub(crate) place: usize,
    pub(crate) scenarios: &'static [Scenario],
}

/// The scenarios of our locks on Redis.
const EVERY: &[Scenario] = &[
    Scenario::Uncontended,
    Scenario::Hot,
    Scenario::Space,
    Scenario::Take,
    Scenario::Permit,
    Scenario::Crowd,
    Scenario::Read,
    Scenario::Mixed,
];

/// The scenarios of our locks on systems with a queue.
const QUEUE: &[Scenario] = &[
    Scenario::Uncontended,
    Scenario::Hot,
    Scenario::Space,
    Scenario::Permit,
    Scenario::Crowd,
    Scenario::Read,
    Scenario::Mixed,
];

/// The scenarios of kazoo's locks, those of readers and a writer included.
const KAZOO: &[Scenario] =
    &[Scenario::Uncontended, Scenario::Hot, Scenario::Space, Scenario::Read, Scenario::Mixed];

const PERMITS: &[Scenario] = &[Scenario::Permit, Scenario::Crowd];

const UNCONTENDED_ARMS: &[Scenario] = &[Scenario::Uncontended, Scenario::Space, Scenario::Take];

const LOCK: &[Scenario] = &[Scenario::Uncontended, Scenario::Hot, Scenario::Space];

/// Starts the servers and the peers, except those in `without`, and measures them.
///
/// # Errors
///
/// [`PeerError`] if a server or one of our own peers failed. A peer that could not be installed is listed in
/// the results with the reason.
pub fn compare(
    command: String,
    configuration: Configuration,
    without: &[String],
    on_round: impl Fn(&str),
) -> Result<Results, PeerError> {
    if let Some(name) = without.iter().find(|name| !OPTIONAL.contains(&name.as_str())) {
        return Err(PeerError::Unknown(name.clone()));
    }
    let stage = Stage::new()?;
    let machine = Machine::this();
    let identity =
        identity().map_err(|error| PeerError::Failed { name: SECURED, what: error.to_string() })?;
    // One server with a port of each kind.
    let files = TlsFiles::write(&stage, "certificates", &identity, None)?;
    let (mut redis, secured, _) = Redis::start_secured(&stage, "redis", &files)?;
    let etcd = EtcdCluster::start(&stage)?;
    let zookeeper = ZooKeeper::start(&stage)?;
    let cores = Cores::with(redis.process().pid())?;
    let mut missing = Vec::new();
    let secured = ours::Ours {
        name: SECURED,
        system: System::Redis,
        servers: vec![secured],
        tls_roots: Some(identity.certificates),
        busy_poll: TokioRuntime::BUSY_POLL,
        fenced: true,
    };
    let entries = enter(&redis, secured, &etcd, &zookeeper, without, &mut missing);
    let mut results =
        measure::measure((command, machine), configuration, entries, (redis.port(), cores), on_round)?;
    results.missing.extend(missing.into_iter().map(|(name, why)| (name.into(), why)));
    Ok(results)
}

/// Makes a certificate for this machine that is its own root.
fn identity() -> Result<Identity, rcgen::Error> {
    let key = rcgen::KeyPair::generate()?;
    let certificate = rcgen::CertificateParams::new(["127.0.0.1".to_owned()])?.self_signed(&key)?;
    Ok(Identity { certificates: certificate.pem(), key: key.serialize_pem() })
}

/// Lists the peers. Those that share a server are neighbours, so that they are measured one right after the
/// other.
fn enter(
    redis: &Redis,
    secured: ours::Ours,
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
    for peer in [
        foreign("redis-py", &|| foreign::redis_py(&server)),
        foreign("node-redlock", &|| foreign::node_redlock(&server)),
        foreign("rslock", &|| foreign::rslock(&server)),
    ] {
        peer.into_iter().for_each(|peer| add(Box::new(peer), LOCK));
    }
    add(Box::new(permits::Redisson { server: server.clone() }), PERMITS);
    if let Some(peer) = foreign("redis-semaphore", &|| foreign::redis_semaphore(&server)) {
        add(Box::new(peer), PERMITS);
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
        add(Box::new(peer), KAZOO);
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
