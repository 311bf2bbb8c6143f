//! Finds the mistake of a lock on etcd: it releases by deleting the key, whoever holds it by then. A second
//! lock deletes the key only if it is still its own, and no schedule breaks it.
//!
//! `cargo run --features etcd --example etcd_lock`

use std::time::Duration;

use sim::clients::etcd_client::{Client, Compare, CompareOp, Error, PutOptions, Txn, TxnOp};
use sim::servers::etcd::EtcdHost;
use sim::{Process, Sim};

/// The lock's key in etcd.
const KEY: &str = "locks/account-7";

/// The time to live of the lease behind the key, in seconds.
const TTL_SECONDS: i64 = 2;

/// The condition under which a holder deletes its key.
#[derive(Clone, Copy)]
enum Release {
    /// None: the mistake.
    Always,
    /// The key is the one that it has put.
    IfOwn,
}

fn main() {
    for (name, world) in [("deletes_always", deletes_always as fn(&mut Sim)), ("deletes_own", deletes_own)] {
        match sim::check(name, world).keep_in("target/sim-regressions").schedules(300).find() {
            Ok(Some(failure)) => println!("{failure}\n"),
            Ok(None) => println!("no schedule broke {name}"),
            Err(problem) => eprintln!("{problem}"),
        }
    }
}

/// Builds the world of the lock with the mistake.
pub fn deletes_always(sim: &mut Sim) {
    transfers(sim, Release::Always);
}

/// Builds the world of its correct twin.
pub fn deletes_own(sim: &mut Sim) {
    transfers(sim, Release::IfOwn);
}

fn transfers(sim: &mut Sim, release: Release) {
    // The history knows the key as the lock `account:7`.
    let etcd = EtcdHost::single("etcd", "http://etcd:2379".to_owned()).lock_key(KEY, "account:7");
    sim.host("etcd", etcd).key("account:7").scale(Duration::from_secs(2));
    for name in ["a", "b"] {
        sim.process(name, move |process| async move {
            for _ in 0..3 {
                // A request that fails ends the round; the next one begins anew.
                let _ = transfer(&process, release).await;
                process.sleep(Duration::from_millis(20)).await;
            }
        });
    }
}

async fn transfer(process: &Process, release: Release) -> Result<(), Error> {
    let mut etcd = sim::clients::etcd(process, "etcd:2379").await?;
    let revision = acquire(process, &mut etcd).await?;
    let section = process.section("account:7");
    process.point("moving money");
    process.sleep(Duration::from_millis(100)).await;
    drop(section);
    match release {
        Release::Always => etcd.delete(KEY, None).await.map(drop),
        Release::IfOwn => {
            let is_own = Compare::create_revision(KEY, CompareOp::Equal, revision);
            etcd.txn(Txn::new().when([is_own]).and_then([TxnOp::delete(KEY, None)])).await.map(drop)
        }
    }
}

/// Puts the key under a lease once it does not exist, and returns its create revision.
async fn acquire(process: &Process, etcd: &mut Client) -> Result<i64, Error> {
    let lease = etcd.lease_grant(TTL_SECONDS, None).await?.id();
    loop {
        let is_free = Compare::create_revision(KEY, CompareOp::Equal, 0);
        let put = TxnOp::put(KEY, process.name(), Some(PutOptions::new().with_lease(lease)));
        let answer = etcd.txn(Txn::new().when([is_free]).and_then([put])).await?;
        if answer.succeeded() {
            return Ok(answer.header().map_or(0, |header| header.revision()));
        }
        process.sleep(Duration::from_millis(50)).await;
    }
}
