//! The lock servers of an experiment, as many as the lab uses for each system.

use crate::place::Place;
use crate::servers::{EtcdCluster, Persistence, Redis, ServerError, Stage, ZooKeeper};
use crate::systems::System;

/// Redlock tolerates the failure of two of five.
const REDLOCK_NODES: usize = 5;

/// The data that a single Redis keeps, as a page says.
pub(crate) const PERSISTENCE: Persistence = Persistence::None;

/// Running lock servers of one system.
#[derive(Debug)]
pub(crate) enum Fleet {
    Redis(Vec<Redis>),
    Etcd(EtcdCluster),
    ZooKeeper(Box<ZooKeeper>),
}

impl Fleet {
    /// Starts the servers and waits until they are ready.
    pub(crate) fn start(stage: &Stage, system: System) -> Result<Self, ServerError> {
        Ok(match system {
            System::Redis => Self::Redis(vec![Redis::start(stage, "redis", PERSISTENCE)?]),
            System::Redlock => Self::Redis(Redis::start_many(stage, REDLOCK_NODES)?),
            System::Etcd => Self::Etcd(EtcdCluster::start(stage)?),
            System::Zookeeper => Self::ZooKeeper(Box::new(ZooKeeper::start(stage)?)),
        })
    }

    /// Returns their addresses, as `--servers` takes them.
    pub(crate) fn addresses(&self) -> String {
        self.all_addresses().join(",")
    }

    /// Returns the servers as those of `system`.
    pub(crate) fn place(&self, system: System) -> Place {
        Place::new(system, self.all_addresses())
    }

    fn all_addresses(&self) -> Vec<String> {
        match self {
            Self::Redis(servers) => servers.iter().map(Redis::address).collect(),
            Self::Etcd(cluster) => cluster.addresses(),
            Self::ZooKeeper(server) => vec![server.address()],
        }
    }
}
