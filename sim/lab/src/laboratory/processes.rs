//! The processes of the laboratory's world.

use super::options::{Options, RESOURCE};
use super::point::ProcessKind;
use super::postgres::POSTGRES;

impl Options {
    /// Returns the names of all processes: workers, lock servers, PostgreSQL, then the resource.
    pub fn processes(&self) -> Vec<String> {
        let workers = self.workers.iter().map(|worker| worker.name.clone());
        let postgres = self.has_postgres().then(|| POSTGRES.to_owned());
        workers.chain(self.servers()).chain(postgres).chain([RESOURCE.to_owned()]).collect()
    }

    /// Returns the names of the lock servers.
    pub fn servers(&self) -> Vec<String> {
        self.system.get().servers(self).into_iter().map(|(name, _)| name).collect()
    }

    /// Returns the name of the cluster in the history, if the lock servers are a cluster. Faults are aimed at
    /// points of the cluster.
    pub fn cluster(&self) -> Option<&'static str> {
        self.system.get().cluster().map(|(name, _)| name)
    }

    /// Returns the kind of the process `name`, or of the cluster's members if `name` is the cluster.
    pub fn kind_of(&self, name: &str) -> Option<ProcessKind> {
        if self.worker(name).is_some() {
            return Some(ProcessKind::Worker);
        }
        if name == RESOURCE {
            return Some(ProcessKind::Resource);
        }
        if name == POSTGRES && self.has_postgres() {
            return Some(ProcessKind::Postgres);
        }
        let system = self.system.get();
        if let Some((_, kind)) = system.cluster().filter(|(cluster, _)| *cluster == name) {
            return Some(kind);
        }
        system.servers(self).into_iter().find(|(server, _)| server == name).map(|(_, kind)| kind)
    }
}
