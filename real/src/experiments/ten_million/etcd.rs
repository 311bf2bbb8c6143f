//! Many locks on etcd: the cost of holding them, and the cost of their history.

use std::fs;
use std::time::Duration;

use dlock::etcd::{Etcd, EtcdOptions};
use dlock::{Lock, LockKey, Options, Runtime};
use etcd_client::Client;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle};

use super::Configuration;
use crate::experiments::ExperimentError;
use crate::fill::etcd::{EtcdFill, Leases, database_bytes, fill_etcd};
use crate::servers::{EtcdCluster, Stage};
use dlock::TokioRuntime;

/// The prefix of the keys.
const KEY: &str = "account";
/// The timeout of an acquire.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);
/// The TTL of the client's session.
const SESSION_TTL: Duration = Duration::from_secs(30);

/// The cost of locks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Held {
    /// True if all locks share one lease.
    pub(super) is_shared: bool,
    pub(super) locks: u64,
    pub(super) per_second: f64,
    pub(super) database_bytes_per_lock: f64,
    /// Memory of the process, as counted by the kernel.
    pub(super) memory_bytes_per_lock: f64,
}

/// The cost of one lock's history. Sizes are those of the database, in bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Growth {
    /// Acquires and releases.
    pub(super) rounds: u64,
    pub(super) revisions: i64,
    pub(super) before: u64,
    pub(super) after: u64,
    pub(super) compacted: u64,
    pub(super) defragmented: u64,
}

/// Fills an etcd of one member twice: with a lease for each lock, and with one lease for all.
pub(super) fn hold(configuration: &Configuration) -> Result<Vec<Held>, ExperimentError> {
    [Leases::Each, Leases::Shared].into_iter().map(|leases| fill(configuration, leases)).collect()
}

fn fill(configuration: &Configuration, leases: Leases) -> Result<Held, ExperimentError> {
    let stage = Stage::new()?;
    let mut etcd = EtcdCluster::start_one(&stage)?;
    let pid = etcd.members[0].process().pid();
    let before = resident_bytes(pid);
    let order = EtcdFill {
        servers: etcd.addresses(),
        keys: configuration.etcd_keys,
        key: KEY.to_owned(),
        seed: configuration.seed,
        ttl: configuration.ttl.0,
        leases,
    };
    let filled = block_on(async {
        let runtime = TokioRuntime::new(Handle::current());
        fill_etcd(&runtime, order, |_| ()).await.map_err(|error| failed(&error))
    })?;
    let grown = resident_bytes(pid).saturating_sub(before);
    Ok(Held {
        is_shared: leases == Leases::Shared,
        locks: configuration.etcd_keys,
        per_second: filled.per_second(),
        database_bytes_per_lock: filled.bytes_per_lock(),
        memory_bytes_per_lock: grown as f64 / configuration.etcd_keys as f64,
    })
}

/// Acquires and releases one lock repeatedly, then compacts the history and defragments the file.
pub(super) fn grow(configuration: &Configuration) -> Result<Growth, ExperimentError> {
    let stage = Stage::new()?;
    let etcd = EtcdCluster::start_one(&stage)?;
    let rounds = configuration.etcd_rounds;
    block_on(async {
        let failed = |error: etcd_client::Error| ExperimentError::Failed(format!("the etcd failed: {error}"));
        let mut client = Client::connect(etcd.addresses(), None).await.map_err(failed)?;
        let before = database_bytes(&mut client).await.map_err(failed)?;
        let first = revision(&mut client).await.map_err(failed)?;
        take_turns(&etcd.addresses(), rounds).await?;
        let last = revision(&mut client).await.map_err(failed)?;
        let after = database_bytes(&mut client).await.map_err(failed)?;
        let physical = etcd_client::CompactionOptions::new().with_physical();
        client.compact(last, Some(physical)).await.map_err(failed)?;
        let compacted = database_bytes(&mut client).await.map_err(failed)?;
        client.defragment().await.map_err(failed)?;
        let defragmented = database_bytes(&mut client).await.map_err(failed)?;
        Ok(Growth { rounds, revisions: last - first, before, after, compacted, defragmented })
    })
}

async fn take_turns(members: &[String], rounds: u64) -> Result<(), ExperimentError> {
    let runtime = TokioRuntime::new(Handle::current());
    let backend = Etcd::new(runtime.clone(), members, EtcdOptions::new(SESSION_TTL));
    let options = Options::new(SESSION_TTL / 2);
    let lock =
        Lock::new(backend.map_err(|error| failed(&error))?, options).map_err(|error| failed(&error))?;
    let key = LockKey::new(KEY, "0").map_err(|error| failed(&error))?;
    for _ in 0..rounds {
        let handle =
            lock.acquire(&key, runtime.now() + ACQUIRE_TIMEOUT).await.map_err(|error| failed(&error))?;
        handle.release().await.map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// Returns the store's revision.
async fn revision(client: &mut Client) -> Result<i64, etcd_client::Error> {
    let answer = client.get("nothing", None).await?;
    Ok(answer.header().map_or(0, etcd_client::ResponseHeader::revision))
}

/// Returns the resident memory of a process; zero if the kernel does not report it.
fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn block_on<T>(work: impl Future<Output = Result<T, ExperimentError>>) -> Result<T, ExperimentError> {
    Builder::new_current_thread().enable_all().build().map_err(|error| failed(&error))?.block_on(work)
}

fn failed(error: &dyn std::error::Error) -> ExperimentError {
    ExperimentError::Failed(error.to_string())
}
