//! Finds the mistake of a lock on ZooKeeper: a client that has waited for long takes the holder for dead and
//! deletes its node. A second lock leaves that to the end of the session, and no schedule breaks it.
//!
//! `cargo run --features zookeeper --example zookeeper_lock`

use std::time::Duration;

use sim::clients::dlock_zookeeper::{CreateMode, Error};
use sim::servers::zookeeper::{EnsembleOptions, ZooKeeperHost};
use sim::{Process, Sim};

/// The lock's node.
const NODE: &str = "/account-7";

/// The session timeout, after which ZooKeeper deletes the node of a dead holder.
const SESSION: Duration = Duration::from_secs(4);

/// The time for which the impatient client waits.
const WAIT_MAX: Duration = Duration::from_secs(1);

fn main() {
    for (name, world) in [("impatient", impatient as fn(&mut Sim)), ("patient", patient)] {
        match sim::check(name, world).keep_in("target/sim-regressions").schedules(300).find() {
            Ok(Some(failure)) => println!("{failure}\n"),
            Ok(None) => println!("no schedule broke {name}"),
            Err(problem) => eprintln!("{problem}"),
        }
    }
}

/// Builds the world of the lock with the mistake.
pub fn impatient(sim: &mut Sim) {
    transfers(sim, Some(WAIT_MAX));
}

/// Builds the world of its correct twin.
pub fn patient(sim: &mut Sim) {
    transfers(sim, None);
}

fn transfers(sim: &mut Sim, wait_max: Option<Duration>) {
    // The history knows the node as the lock `account:7`.
    let zookeeper = ZooKeeperHost::first(EnsembleOptions::new(["zookeeper"])).lock_key(NODE, "account:7");
    sim.host("zookeeper", zookeeper).key("account:7").scale(SESSION);
    for name in ["a", "b"] {
        sim.process(name, move |process| async move {
            for _ in 0..3 {
                // A request that fails ends the round, and its session.
                let _ = transfer(&process, wait_max).await;
                process.sleep(Duration::from_millis(20)).await;
            }
        });
    }
}

async fn transfer(process: &Process, wait_max: Option<Duration>) -> Result<(), Error> {
    let zookeeper = sim::clients::zookeeper(process, ["zookeeper:2181"], SESSION);
    let (asked_at, mode) = (process.now(), CreateMode { ephemeral: true, sequential: false });
    let deadline = || process.now() + SESSION;
    loop {
        match zookeeper.create(NODE, process.name().as_bytes(), mode, deadline()).await {
            Ok(_) => break,
            Err(Error::NodeExists { .. }) => process.sleep(Duration::from_millis(50)).await,
            Err(error) => return Err(error),
        }
        if wait_max.is_some_and(|wait_max| process.now() > asked_at + wait_max) {
            // The mistake: the holder may be alive.
            zookeeper.delete(NODE, None, deadline()).await?;
        }
    }
    let section = process.section("account:7");
    process.point("moving money");
    process.sleep(Duration::from_millis(100)).await;
    drop(section);
    // Without the session, the node is gone, and so is this request.
    zookeeper.delete(NODE, None, deadline()).await
}
