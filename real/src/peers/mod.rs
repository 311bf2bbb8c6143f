//! Compares these locks with other libraries, side by side in one run.
//!
//! Each peer does the same work in small slices, all in turns, so that disturbances of the machine affect all
//! alike; the result is the ratio between peers. [`mod@slice`] defines a slice. `ours`, `jobs`,
//! `elections`, `raw_redis`, `redisson`, `raw_etcd` and `foreign` are the peers; `entries` lists them, and
//! `arms` what is measured. `cores` pins the Redis and its client to different cores where single requests
//! are timed. [`measure`] runs the slices and combines them into [`results`], [`targets`] compares these
//! with the targets, `table` shows them, and `page` makes docs/peers.md of them.

mod arms;
mod cores;
mod elections;
mod entries;
mod foreign;
mod jobs;
pub mod measure;
mod ours;
mod page;
mod raw_etcd;
mod raw_redis;
mod redisson;
pub mod results;
pub mod slice;
mod table;
pub mod targets;

use std::io;

use crate::lab::Machine;
use crate::servers::{EtcdCluster, Postgres, Redis, ServerError, Stage, TlsFiles, ZooKeeper};
use crate::systems::System;

use dlock::TokioRuntime;
use dlock::tls::Identity;

use self::cores::Cores;
use self::entries::{OPTIONAL, SECURED, enter};
use self::jobs::OnPostgres;
pub use self::page::{PeersPageError, page, stored_page};
use self::results::{Configuration, Results};

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
    let postgres = Postgres::start(&stage)?;
    let jobs = OnPostgres::with_tables(postgres.url())?;
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
    let entries = enter(&redis, secured, &etcd, &zookeeper, jobs, without, &mut missing);
    let mut results =
        measure::measure((command, machine), configuration, entries, (redis.port(), cores), on_round)?;
    results.missing.extend(missing.into_iter().map(|(name, why)| (name.into(), why)));
    results.without = without.to_vec();
    Ok(results)
}

/// Makes a certificate for this machine that is its own root.
fn identity() -> Result<Identity, rcgen::Error> {
    let key = rcgen::KeyPair::generate()?;
    let certificate = rcgen::CertificateParams::new(["127.0.0.1".to_owned()])?.self_signed(&key)?;
    Ok(Identity { certificates: certificate.pem(), key: key.serialize_pem() })
}
