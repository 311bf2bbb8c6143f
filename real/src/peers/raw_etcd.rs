//! The fastest that an etcd allows: the single transaction that a lock needs; and etcd's own Lock service.
//! Both use etcd-client as its manual shows, with one lease for each client.
#![allow(clippy::disallowed_methods, reason = "peers are measured on the machine's own clock and scheduler")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use dlock::LockKey;
use etcd_client::{
    Client, Compare, CompareOp, Error, GetOptions, LockOptions, PutOptions, SortOrder, SortTarget, Txn, TxnOp,
};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::PeerError;
use super::slice::{Job, Peer, Scenario, Slice, nanos};
use crate::timer;

/// Longer than any slice, since it is not kept alive.
const LEASE_SECONDS: i64 = 120;

/// The transaction that puts a key into a lock's queue under the session's lease, and reads the queue's first
/// key.
pub(super) struct RawTxn {
    pub(super) members: Vec<String>,
}

impl Peer for RawTxn {
    fn name(&self) -> &'static str {
        "raw etcd transaction"
    }

    fn run(&mut self, job: &Job) -> Result<Slice, PeerError> {
        debug_assert_eq!(job.scenario, Scenario::Uncontended);
        block_on(self.name(), transactions(&self.members, job))
    }
}

/// etcd's own Lock service.
pub(super) struct LockService {
    pub(super) members: Vec<String>,
}

impl Peer for LockService {
    fn name(&self) -> &'static str {
        "etcd's Lock service"
    }

    fn run(&mut self, job: &Job) -> Result<Slice, PeerError> {
        let slice = async {
            match job.scenario {
                Scenario::Uncontended => uncontended(&self.members, job).await,
                Scenario::Hot => hot(&self.members, job).await,
                // It has no semaphores, and is in none of their scenarios.
                _ => space(&self.members, job).await,
            }
        };
        block_on(self.name(), slice)
    }
}

fn block_on(
    name: &'static str,
    slice: impl Future<Output = Result<Slice, Error>>,
) -> Result<Slice, PeerError> {
    let failed = |what: String| PeerError::Failed { name, what };
    let executor = Builder::new_current_thread().enable_all().build();
    let executor = executor.map_err(|error| failed(error.to_string()))?;
    executor.block_on(slice).map_err(|error| failed(error.to_string()))
}

async fn open(members: &[String]) -> Result<(Client, i64), Error> {
    // One member, as our peer uses.
    let mut client = Client::connect(&members[..1], None).await?;
    let lease = client.lease_grant(LEASE_SECONDS, None).await?.id();
    Ok((client, lease))
}

async fn transactions(members: &[String], job: &Job) -> Result<Slice, Error> {
    let (client, lease) = open(members).await?;
    let mut kv = client.kv_client();
    let queue = LockKey::new(&job.name, "0").map_err(io::Error::other)?.etcd_queue();
    let mut slice = Slice { completed: job.operations, ..Slice::default() };
    let begun = Instant::now();
    for round in 0..=job.operations {
        let key = format!("{queue}{round:032x}");
        let enter = enter(&queue, &key, lease);
        let called = Instant::now();
        kv.txn(enter).await?;
        let granted = Instant::now();
        kv.delete(key, None).await?;
        // The first round includes the connection's setup.
        if round > 0 {
            slice.acquire_ns.push(nanos(granted - called));
            slice.release_ns.push(nanos(granted.elapsed()));
        }
    }
    slice.elapsed_ns = nanos(begun.elapsed());
    end(client, lease).await?;
    Ok(slice)
}

fn enter(queue: &str, key: &str, lease: i64) -> Txn {
    let newest = GetOptions::new().with_prefix().with_limit(2).with_keys_only();
    let newest = newest.with_sort(SortTarget::Create, SortOrder::Descend);
    Txn::new().when([Compare::create_revision(key, CompareOp::Equal, 0)]).and_then([
        TxnOp::put(key, key, Some(PutOptions::new().with_lease(lease))),
        TxnOp::get(queue, Some(newest)),
    ])
}

async fn uncontended(members: &[String], job: &Job) -> Result<Slice, Error> {
    let (client, lease) = open(members).await?;
    let mut locks = client.lock_client();
    let mut slice = Slice { completed: job.operations, ..Slice::default() };
    let begun = Instant::now();
    for round in 0..=job.operations {
        let called = Instant::now();
        let options = LockOptions::new().with_lease(lease);
        let held = locks.lock(format!("{}:0", job.name), Some(options)).await?;
        let granted = Instant::now();
        locks.unlock(held.key()).await?;
        if round > 0 {
            slice.acquire_ns.push(nanos(granted - called));
            slice.release_ns.push(nanos(granted.elapsed()));
        }
    }
    slice.elapsed_ns = nanos(begun.elapsed());
    end(client, lease).await?;
    Ok(slice)
}

/// Contends for one key. The service identifies a waiter by its lease, so each contender has one of its own,
/// and a connection, since a waiting call occupies one of a connection's few streams.
async fn hot(members: &[String], job: &Job) -> Result<Slice, Error> {
    let mut clients = Vec::new();
    for _ in 0..job.contenders {
        clients.push(open(members).await?);
    }
    let begun = Instant::now();
    let until = begun + job.lasts();
    let mut contenders = JoinSet::new();
    for (client, lease) in &clients {
        contenders.spawn(contend(client.clone(), *lease, job.clone(), begun, until));
    }
    let mut all = Slice::default();
    while let Some(ended) = contenders.join_next().await {
        // A panic is a defect of this program: propagate it.
        let slice = ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
        all.acquire_ns.extend(slice.acquire_ns);
        all.release_ns.extend(slice.release_ns);
        all.completed += slice.completed;
        all.elapsed_ns = all.elapsed_ns.max(slice.elapsed_ns);
    }
    for (client, lease) in clients {
        end(client, lease).await?;
    }
    Ok(all)
}

async fn contend(client: Client, lease: i64, job: Job, begun: Instant, end: Instant) -> Result<Slice, Error> {
    let mut locks = client.lock_client();
    let mut slice = Slice::default();
    while Instant::now() < end {
        let called = Instant::now();
        let options = LockOptions::new().with_lease(lease);
        let asked = locks.lock(format!("{}:0", job.name), Some(options));
        let Ok(held) = tokio::time::timeout_at(end.into(), asked).await else { break };
        let held = held?;
        let granted = Instant::now();
        timer::sleep(job.work()).await;
        let before = Instant::now();
        locks.unlock(held.key()).await?;
        slice.acquire_ns.push(nanos(granted - called));
        slice.release_ns.push(nanos(before.elapsed()));
        slice.completed += 1;
        slice.elapsed_ns = nanos(begun.elapsed());
        tokio::time::sleep(job.work()).await;
    }
    Ok(slice)
}

async fn space(members: &[String], job: &Job) -> Result<Slice, Error> {
    let (client, lease) = open(members).await?;
    let count = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let until = begun + job.lasts();
    let mut tasks = JoinSet::new();
    for _ in 0..job.contenders {
        let (mut locks, name, count) = (client.lock_client(), job.name.clone(), Arc::clone(&count));
        tasks.spawn(async move {
            while Instant::now() < until {
                let number = count.fetch_add(1, Ordering::Relaxed);
                let options = LockOptions::new().with_lease(lease);
                let held = locks.lock(format!("{name}:{number}"), Some(options)).await?;
                locks.unlock(held.key()).await?;
            }
            Ok::<_, Error>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
    }
    let elapsed_ns = nanos(begun.elapsed());
    end(client, lease).await?;
    Ok(Slice { completed: count.load(Ordering::Relaxed), elapsed_ns, ..Slice::default() })
}

async fn end(mut client: Client, lease: i64) -> Result<(), Error> {
    client.lease_revoke(lease).await.map(drop)
}
