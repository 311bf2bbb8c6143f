//! A member of an etcd cluster in all lives of its process.

use futures_util::future::BoxFuture;

use super::{Cluster, ClusterOptions, PORT};
use crate::servers::host::{Acted, Action, ActionError, Host};
use crate::world::machine::{Machine, WorldMachine};

const LEAD: Action = Action { name: "lead", argument: None };

/// A member of a [`Cluster`] on port 2379 of its machine. The cluster's data survive the crashes of all
/// members.
///
/// Actions: `lead` makes it the leader, as `etcdctl move-leader` does.
pub struct EtcdHost<M: Machine = WorldMachine> {
    pub(super) cluster: Cluster<M>,
    pub(super) number: usize,
}

impl<M: Machine> EtcdHost<M> {
    /// Creates the one member of a cluster of its own. `address` is the address that it announces to clients,
    /// such as `http://etcd-1:2379`.
    pub fn single(name: &str, address: String) -> Self {
        let members = vec![(name.to_owned(), address)];
        let options = ClusterOptions { members, ..ClusterOptions::new("etcd", [name]) };
        Self { cluster: Cluster::new(options), number: 0 }
    }

    /// Records the key `key` of the whole cluster in the history as the lock called `lock`. The key exists
    /// while the lock is held, and its value is the owner. The keys of `dlock` need no such call.
    #[must_use]
    pub fn lock_key(self, key: impl Into<Vec<u8>>, lock: impl Into<String>) -> Self {
        self.cluster.core().locks.add_key(key.into(), lock.into());
        self
    }

    /// Records the keys of the whole cluster that begin with `prefix` as the queue of the lock called `lock`:
    /// the one with the lowest create revision holds it. Its value is the owner; without a value, the last
    /// part of the key.
    #[must_use]
    pub fn lock_queue(self, prefix: impl Into<Vec<u8>>, lock: impl Into<String>) -> Self {
        self.cluster.core().locks.add_queue(prefix.into(), lock.into());
        self
    }

    /// Records the keys of the whole cluster that begin with `prefix` as the places of those that wait for
    /// the lock called `lock`, which is a key of its own ([`EtcdHost::lock_key`]). The value of a place is
    /// its owner.
    #[must_use]
    pub fn lock_waiters(self, prefix: impl Into<Vec<u8>>, lock: impl Into<String>) -> Self {
        self.cluster.core().locks.add_waiters(prefix.into(), lock.into());
        self
    }

    /// Records the lock called `lock` of the whole cluster as a semaphore: the first `permits` keys of its
    /// queue hold it.
    #[must_use]
    pub fn permits(self, lock: impl Into<String>, permits: usize) -> Self {
        self.cluster.core().locks.set_permits(lock.into(), permits);
        self
    }

    /// Returns the cluster that it belongs to.
    pub fn cluster(&self) -> &Cluster<M> {
        &self.cluster
    }
}

impl<M: Machine> Host<M> for EtcdHost<M> {
    fn noun(&self) -> &'static str {
        "an etcd member"
    }

    fn greeting(&self) -> Option<&'static str> {
        Some("the preface of HTTP/2")
    }

    fn start(&self, machine: M) -> BoxFuture<'static, ()> {
        let (cluster, number) = (self.cluster.clone(), self.number);
        cluster.join(number, machine.clone());
        Box::pin(async move {
            let member = cluster.clone();
            machine.spawn(async move { member.run_member(number).await });
            // It fails only if the process is dead.
            let _ = machine
                .serve(PORT, |stream, client| {
                    let cluster = cluster.clone();
                    async move { cluster.serve_connection(number, stream, &client).await }
                })
                .await;
        })
    }

    fn actions(&self) -> &'static [Action] {
        &[LEAD]
    }

    fn act(&self, action: &str, argument: Option<&str>) -> Result<Acted, ActionError> {
        self.check(action, argument)?;
        Ok(match self.cluster.move_leader(self.number) {
            true => Acted::Done("leads from now on".to_owned()),
            false => Acted::Failed("was to lead, and has no majority".to_owned()),
        })
    }

    fn keeps_on_disk(&self) -> bool {
        true
    }

    fn executed(&self) -> u64 {
        self.cluster.core().members[self.number].executed
    }
}

impl<M: Machine> Clone for EtcdHost<M> {
    fn clone(&self) -> Self {
        Self { cluster: self.cluster.clone(), number: self.number }
    }
}
