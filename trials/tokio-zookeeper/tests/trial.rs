//! tokio-zookeeper 0.4: an ephemeral node is the lock.

use std::time::Duration;

use common::{Form, SmallLock, try_both};
use sim::Rules;
use sim::servers::zookeeper::{EnsembleOptions, ZooKeeperHost};
use tokio_zookeeper::{Acl, CreateMode, ZooKeeper};

const LOCK: &str = "orders:42";
const NODE: &str = "/orders-42";
const SESSION: Duration = Duration::from_secs(4);

struct Lock(ZooKeeper);

impl SmallLock for Lock {
    type Error = String;

    async fn acquire(&mut self, owner: &str, _: Form) -> Result<bool, String> {
        let data = owner.as_bytes().to_vec();
        let created = self.0.create(NODE, data, Acl::open_unsafe(), CreateMode::Ephemeral).await;
        Ok(created.map_err(|error| error.to_string())?.is_ok())
    }

    async fn release(&mut self, owner: &str, form: Form) -> Result<(), String> {
        if form == Form::Wrong {
            // The session that made the node could not delete another's after its own end; a new one can.
            return connect().await?.0.delete(NODE, None).await.map(drop).map_err(|error| error.to_string());
        }
        let found = self.0.get_data(NODE).await.map_err(|error| error.to_string())?;
        let Some((data, stat)) = found else { return Ok(()) };
        if data == owner.as_bytes() {
            self.0.delete(NODE, Some(stat.version)).await.map_err(|error| error.to_string())?.ok();
        }
        Ok(())
    }
}

async fn connect() -> Result<Lock, String> {
    let address = tokio::net::lookup_host("zookeeper:2181").await.map_err(|error| error.to_string())?.next();
    let connected = ZooKeeper::connect(&address.ok_or("no address")?).await;
    Ok(Lock(connected.map_err(|error| error.to_string())?.0))
}

#[test]
fn an_ephemeral_node_carries_a_lock() {
    try_both("tokio_zookeeper", "foreign_release", |sim, form| {
        sim.host("zookeeper", ZooKeeperHost::first(EnsembleOptions::new(["zookeeper"])).lock_key(NODE, LOCK))
            .key(LOCK)
            .scale(SESSION);
        // Each request prolongs its session, and the server ends sessions at its ticks.
        sim.rules(Rules { sessions: true, grace: SESSION, ..Rules::default() });
        common::contend(sim, form, connect);
    });
}
