//! Many locks on etcd: the cost of holding them, how long they stay after their leases have ended, and the
//! cost of their history.

use std::cell::{Cell, RefCell};
use std::fs;
use std::time::Duration;

use dlock::etcd::{Etcd, EtcdOptions};
use dlock::{Lock, LockKey, Options, Runtime};
use etcd_client::{Client, GetOptions};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle};

use super::Configuration;
use crate::experiments::ExperimentError;
use crate::fill::etcd::{EtcdFill, EtcdFilled, Leases, database_bytes, fill_etcd};
use crate::lab::Machine;
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
    #[serde(default = "one")]
    pub(super) members: usize,
    pub(super) locks: u64,
    pub(super) per_second: f64,
    pub(super) database_bytes_per_lock: f64,
    /// Memory of the member that takes most, as counted by the kernel.
    pub(super) memory_bytes_per_lock: f64,
    /// The memory of the machine, in bytes.
    #[serde(default)]
    pub(super) machine_bytes: u64,
    /// The same member at a quarter, half and the whole of the fill. Earlier results have none.
    #[serde(default)]
    pub(super) reached: Vec<Reached>,
}

/// The state of a fill when it has made a number of locks.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Reached {
    pub(super) locks: u64,
    /// Since the begin of the fill.
    pub(super) at_s: f64,
    /// Growth of the member's memory, in bytes.
    pub(super) memory_bytes: u64,
}

impl Reached {
    /// Returns the growth of the memory for each lock, in bytes.
    pub(super) fn bytes_per_lock(&self) -> f64 {
        self.memory_bytes as f64 / self.locks.max(1) as f64
    }
}

/// Earlier results are of one member.
fn one() -> usize {
    1
}

/// A run in which all leases end.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Expiry {
    pub(super) locks: u64,
    /// The keys after the fill.
    #[serde(default)]
    pub(super) filled: u64,
    pub(super) samples: Vec<Left>,
    /// From the end of the last lease until no key was left, in seconds.
    pub(super) reclaimed_after_s: Option<f64>,
}

impl Expiry {
    /// Returns the locks removed a second, from the end of the last lease on; `None` if some stayed, or if
    /// less than a tenth was left then: the removal had kept up with the leases as they ended.
    pub(super) fn per_second(&self) -> Option<f64> {
        let (after, first) = (self.reclaimed_after_s?, self.samples.first()?);
        (first.keys.saturating_mul(10) >= self.locks).then(|| first.keys as f64 / after.max(1e-3))
    }
}

/// The keys that are left at one time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Left {
    /// Since the last lease ended.
    pub(super) at_s: f64,
    pub(super) keys: u64,
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

/// Fills an etcd of three members twice: with a lease for each lock, and with one lease for all.
pub(super) fn hold(configuration: &Configuration) -> Result<Vec<Held>, ExperimentError> {
    [Leases::Each, Leases::Shared].into_iter().map(|leases| measure(configuration, leases)).collect()
}

fn measure(configuration: &Configuration, leases: Leases) -> Result<Held, ExperimentError> {
    let stage = Stage::new()?;
    let mut etcd = EtcdCluster::start(&stage)?;
    let members: Vec<_> = etcd.members.iter_mut().map(|member| member.process().pid()).collect();
    let grown = grown_since(&members);
    let keys = configuration.etcd_keys;
    let (made, samples) = (Cell::new(0_u64), RefCell::new(Vec::new()));
    let filled = block_on(async {
        let runtime = TokioRuntime::new(Handle::current());
        let begun = runtime.now();
        let on_lock = |locks: u64| {
            made.set(made.get() + locks);
            if [keys / 4, keys / 2, keys].contains(&made.get()) {
                let at_s = runtime.now().saturating_since(begun).as_secs_f64();
                samples.borrow_mut().push((made.get(), at_s, grown()));
            }
        };
        fill(configuration, &etcd, (leases, configuration.ttl.0), on_lock).await
    })?;
    let grown = grown();
    // The member that takes most at the end.
    let (member, most) = grown.into_iter().enumerate().max_by_key(|(_, bytes)| *bytes).unwrap_or_default();
    let reached = |(locks, at_s, grown): (u64, f64, Vec<u64>)| {
        let memory_bytes = grown.get(member).copied().unwrap_or_default();
        Reached { locks, at_s, memory_bytes }
    };
    Ok(Held {
        is_shared: leases == Leases::Shared,
        members: members.len(),
        locks: keys,
        per_second: filled.per_second(),
        database_bytes_per_lock: filled.bytes_per_lock(),
        memory_bytes_per_lock: most as f64 / keys as f64,
        machine_bytes: Machine::this().memory_mib * 1024 * 1024,
        reached: samples.into_inner().into_iter().map(reached).collect(),
    })
}

/// Returns a function that returns the growth of each process's memory since now, in bytes.
fn grown_since(processes: &[u32]) -> impl Fn() -> Vec<u64> {
    let before: Vec<_> = processes.iter().map(|pid| (*pid, resident_bytes(*pid))).collect();
    move || before.iter().map(|(pid, before)| resident_bytes(*pid).saturating_sub(*before)).collect()
}

/// Fills the etcd; calls `on_lock` for each lock.
async fn fill(
    configuration: &Configuration,
    etcd: &EtcdCluster,
    (leases, ttl): (Leases, Duration),
    on_lock: impl Fn(u64),
) -> Result<EtcdFilled, ExperimentError> {
    let order = EtcdFill {
        servers: etcd.addresses(),
        keys: configuration.etcd_keys,
        key: KEY.to_owned(),
        seed: configuration.seed,
        ttl,
        leases,
    };
    let runtime = TokioRuntime::new(Handle::current());
    fill_etcd(&runtime, order, on_lock).await.map_err(|error| failed(&error))
}

/// Fills an etcd of three members with locks that each have a lease, and counts those that are left after
/// their leases have ended.
pub(super) fn expire(configuration: &Configuration) -> Result<Expiry, ExperimentError> {
    let stage = Stage::new()?;
    let etcd = EtcdCluster::start(&stage)?;
    block_on(async {
        let etcd_failed =
            |error: etcd_client::Error| ExperimentError::Failed(format!("the etcd failed: {error}"));
        let runtime = TokioRuntime::new(Handle::current());
        let ttl = configuration.expiry_ttl.0;
        fill(configuration, &etcd, (Leases::Each, ttl), |_| ()).await?;
        let ended = runtime.now() + ttl;
        let mut client = Client::connect(etcd.addresses(), None).await.map_err(etcd_failed)?;
        let filled = count(&mut client).await.map_err(etcd_failed)?;
        runtime.sleep_until(ended).await;
        let mut samples = Vec::new();
        loop {
            let keys = count(&mut client).await.map_err(etcd_failed)?;
            let at_s = runtime.now().saturating_since(ended).as_secs_f64();
            samples.push(Left { at_s, keys });
            let is_over = at_s >= configuration.expiry_timeout.0.as_secs_f64();
            if keys == 0 || is_over {
                let reclaimed_after_s = (keys == 0).then_some(at_s);
                return Ok(Expiry { locks: configuration.etcd_keys, filled, samples, reclaimed_after_s });
            }
            runtime.sleep_until(runtime.now() + configuration.every.0).await;
        }
    })
}

/// Counts the keys of locks.
async fn count(client: &mut Client) -> Result<u64, etcd_client::Error> {
    let options = GetOptions::new().with_prefix().with_count_only();
    Ok(client.get(LockKey::ETCD_PREFIX, Some(options)).await?.count().unsigned_abs())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removal_that_kept_up_has_no_rate() {
        let expiry = |keys| Expiry {
            locks: 1000,
            filled: 1000,
            samples: vec![Left { at_s: 0.0, keys }],
            reclaimed_after_s: Some(2.0),
        };
        assert_eq!(expiry(500).per_second(), Some(250.0));
        assert_eq!(expiry(99).per_second(), None, "what was left says nothing about the others");
    }
}
