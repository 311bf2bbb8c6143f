//! Calls a second to the simulated etcd on one core: etcd-client, gRPC, HTTP/2, the simulated network, the
//! store.
//!
//! `cargo bench --bench etcd_calls`. One client on one member of three: a lease, then put, get, a
//! transaction and a delete in turn.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark reads the clock"
)]

#[path = "../tests/all/etcd/support.rs"]
#[allow(dead_code, unreachable_pub, reason = "the tests use more of it")]
mod etcd_support;

#[path = "../tests/all/support"]
#[allow(dead_code, unreachable_pub, reason = "the tests use more of it")]
mod support {
    pub(crate) mod scripts;
}

use std::time::{Duration, Instant};

use etcd_client::{Compare, CompareOp, PutOptions, Txn, TxnOp};
use etcd_support::{Etcd, in_cluster_with};
use sim::allocator::Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const ROUNDS: u64 = 2500;
/// Number of runs. The fastest counts, since noise can only slow a run down.
const RUNS: usize = 7;

fn main() {
    Allocator::keep_freed_memory();
    let mut best = 0.0_f64;
    for _ in 0..RUNS {
        let began = Instant::now();
        let calls = one_run();
        best = best.max(calls as f64 / began.elapsed().as_secs_f64());
    }
    println!("simulated etcd through etcd-client: {best:.0} calls a second, one core");
}

/// Runs the benchmark once and returns the number of calls that the cluster executed.
fn one_run() -> u64 {
    in_cluster_with(
        Duration::from_micros(100),
        |options| options,
        |etcd| async move {
            calls(&etcd).await;
            etcd.cluster.executed()
        },
    )
}

async fn calls(etcd: &Etcd) {
    let mut client = etcd.client(1).await;
    let lease = client.lease_grant(60, None).await.unwrap().id();
    for round in 0..ROUNDS {
        let key = format!("lock/v1/orders:{}/entry", round % 100);
        client.put(key.as_str(), "owner", Some(PutOptions::new().with_lease(lease))).await.unwrap();
        client.get(key.as_str(), None).await.unwrap();
        let absent = Compare::create_revision(key.as_str(), CompareOp::Equal, 0);
        let txn = Txn::new().when([absent]).and_then([TxnOp::put(key.as_str(), "owner", None)]);
        client.txn(txn.or_else([TxnOp::get(key.as_str(), None)])).await.unwrap();
        client.delete(key.as_str(), None).await.unwrap();
    }
}
