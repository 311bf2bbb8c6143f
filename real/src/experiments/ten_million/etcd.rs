//! Many locks on etcd: the cost of holding them, how long they stay after their leases have ended, and the
//! cost of their history.

use std::ops::ControlFlow;
use std::time::Duration;

use dlock::etcd::{Etcd, EtcdOptions};
use dlock::{Lock, LockKey, Options, Runtime};
use etcd_client::{Client, GetOptions};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle};

use super::Configuration;
use super::gauge::{Gauge, Reached};
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
    pub(super) members: usize,
    pub(super) locks: u64,
    pub(super) end: End,
    pub(super) per_second: f64,
    pub(super) database_bytes_per_lock: f64,
    /// Memory of the member that takes most, as counted by the kernel.
    pub(super) memory_bytes_per_lock: f64,
    /// The memory of the machine, in bytes.
    pub(super) machine_bytes: u64,
    /// The same member during the fill.
    pub(super) reached: Vec<Reached>,
}

/// The reason why a fill ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum End {
    /// All locks were made.
    Made,
    /// A member took all the memory that was meant for it.
    Memory,
    /// The etcd, with this error.
    Etcd(String),
}

/// A run in which all leases end within about one second.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Expiry {
    pub(super) locks: u64,
    /// The keys after the fill.
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

/// Fills an etcd of three members twice, as far as their memory allows: with a lease for each lock, and
/// with one lease for all.
pub(super) fn hold(configuration: &Configuration) -> Result<Vec<Held>, ExperimentError> {
    [Leases::Each, Leases::Shared].into_iter().map(|leases| measure(configuration, leases)).collect()
}

fn measure(configuration: &Configuration, leases: Leases) -> Result<Held, ExperimentError> {
    let Configuration { etcd_every, etcd_member_bytes, .. } = *configuration;
    let stage = Stage::new()?;
    let mut etcd = EtcdCluster::start_for_fill(&stage)?;
    let members: Vec<_> = etcd.members.iter_mut().map(|member| member.process().pid()).collect();
    let machine_bytes = Machine::this().memory_mib * 1024 * 1024;
    let (filled, (reached, is_full)) = block_on(async {
        let runtime = TokioRuntime::new(Handle::current());
        let gauge = Gauge::begin(runtime, &members, etcd_every, etcd_member_bytes);
        let order = order(configuration, &etcd, configuration.etcd_keys, leases);
        let filled = fill(order, |locks| gauge.on_locks(locks)).await?;
        Ok((filled, gauge.end()))
    })?;
    let end = match &filled.failed {
        Some(error) => End::Etcd(error.clone()),
        None if is_full => End::Memory,
        None => End::Made,
    };
    Ok(Held {
        is_shared: leases == Leases::Shared,
        members: members.len(),
        locks: filled.locks,
        end,
        per_second: filled.per_second(),
        database_bytes_per_lock: filled.bytes_per_lock(),
        memory_bytes_per_lock: reached.last().map_or(f64::NAN, Reached::bytes_per_lock),
        machine_bytes,
        reached,
    })
}

/// Returns the order to fill an etcd with `keys` locks.
fn order(configuration: &Configuration, etcd: &EtcdCluster, keys: u64, leases: Leases) -> EtcdFill {
    let ttl = if leases == Leases::Together { configuration.etcd_expiry_ttl } else { configuration.ttl };
    EtcdFill {
        servers: etcd.addresses(),
        keys,
        key: KEY.to_owned(),
        seed: configuration.seed,
        ttl: ttl.0,
        leases,
    }
}

/// Fills the etcd; calls `on_locks` as locks are made.
async fn fill(
    order: EtcdFill,
    on_locks: impl Fn(u64) -> ControlFlow<()>,
) -> Result<EtcdFilled, ExperimentError> {
    let runtime = TokioRuntime::new(Handle::current());
    fill_etcd(&runtime, order, on_locks).await.map_err(|error| failed(&error))
}

/// Fills an etcd of three members with locks that each have a lease, and counts those that are left after
/// their leases have ended, all together: else the count would depend on the speed of the fill.
pub(super) fn expire(configuration: &Configuration) -> Result<Expiry, ExperimentError> {
    let stage = Stage::new()?;
    let etcd = EtcdCluster::start(&stage)?;
    block_on(async {
        let etcd_failed =
            |error: etcd_client::Error| ExperimentError::Failed(format!("the etcd failed: {error}"));
        let runtime = TokioRuntime::new(Handle::current());
        let order = order(configuration, &etcd, configuration.etcd_expiry_keys, Leases::Together);
        let ended = runtime.now() + order.ttl;
        let filled = fill(order, |_| ControlFlow::Continue(())).await?;
        if let Some(error) = filled.failed {
            return Err(ExperimentError::Failed(format!("the etcd failed: {error}")));
        }
        let locks = filled.locks;
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
                return Ok(Expiry { locks, filled, samples, reclaimed_after_s });
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
