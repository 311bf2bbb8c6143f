//! A member of a ZooKeeper ensemble in all lives of its process.

use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;

use super::{Ensemble, EnsembleOptions};
use crate::servers::host::{Acted, Action, ActionError, Host};
use crate::world::machine::{Machine, WorldMachine};

/// The port of every member.
pub const PORT: u16 = 2181;

const LEAD: Action = Action { name: "lead", argument: None };

/// A member of an [`Ensemble`] on port 2181 of its machine. The ensemble's data survive the crashes of all
/// members.
///
/// Actions: `lead` makes it the leader.
pub struct ZooKeeperHost<M: Machine = WorldMachine> {
    pub(super) ensemble: Ensemble<M>,
    pub(super) number: usize,
}

impl<M: Machine> ZooKeeperHost<M> {
    /// Creates the first member of an ensemble of its own. With one name in the `options`, it is a standalone
    /// server.
    pub fn first(options: EnsembleOptions) -> Self {
        Self { ensemble: Ensemble::new(options), number: 0 }
    }

    /// Records the node `path` of the whole ensemble in the history as the lock called `lock`. The node
    /// exists while the lock is held, and the data that it is created with is the owner. The nodes of `dlock`
    /// need no such call.
    #[must_use]
    pub fn lock_key(self, path: &str, lock: &str) -> Self {
        self.ensemble.0.options.observer.named(path, lock, false);
        self
    }

    /// Records the sequential nodes below `parent` of the whole ensemble as the queue of the lock called
    /// `lock`: the one with the lowest number holds it, and its data is the owner.
    #[must_use]
    pub fn lock_queue(self, parent: &str, lock: &str) -> Self {
        self.ensemble.0.options.observer.named(parent, lock, true);
        self
    }

    /// Records the nodes below `parent` of the whole ensemble as the places of those that wait for the lock
    /// called `lock`, which is a node of its own ([`ZooKeeperHost::lock_key`]). The data of a place is its
    /// owner.
    #[must_use]
    pub fn lock_waiters(self, parent: &str, lock: &str) -> Self {
        self.ensemble.0.options.observer.waiters(parent, lock);
        self
    }

    /// Records the lock called `lock` of the whole ensemble as a semaphore: the first `permits` nodes of its
    /// queue hold it.
    #[must_use]
    pub fn permits(self, lock: &str, permits: usize) -> Self {
        self.ensemble.0.options.observer.permits(lock, permits);
        self
    }

    /// Returns the ensemble that it belongs to.
    pub fn ensemble(&self) -> &Ensemble<M> {
        &self.ensemble
    }
}

impl<M: Machine> Host<M> for ZooKeeperHost<M> {
    fn noun(&self) -> &'static str {
        "a ZooKeeper server"
    }

    fn greeting(&self) -> Option<&'static str> {
        Some("a request for a session")
    }

    fn start(&self, machine: M) -> BoxFuture<'static, ()> {
        let server = self.ensemble.server(self.number, machine.clone());
        Box::pin(async move {
            let member = server.clone();
            machine.spawn(async move { member.run().await });
            // It fails only if the process is dead.
            let _ = machine
                .serve(PORT, |stream, client| {
                    let server = server.clone();
                    async move { server.serve_connection(stream, &client).await }
                })
                .await;
        })
    }

    fn actions(&self) -> &'static [Action] {
        &[LEAD]
    }

    fn act(&self, action: &str, argument: Option<&str>) -> Result<Acted, ActionError> {
        self.check(action, argument)?;
        Ok(match self.ensemble.lead(self.number) {
            true => Acted::Done("leads from now on".to_owned()),
            false => Acted::Failed("was to lead, and has no majority".to_owned()),
        })
    }

    fn keeps_on_disk(&self) -> bool {
        true
    }

    fn executed(&self) -> u64 {
        self.ensemble.0.members[self.number].executed.load(Ordering::Relaxed)
    }
}

impl<M: Machine> Clone for ZooKeeperHost<M> {
    fn clone(&self) -> Self {
        Self { ensemble: self.ensemble.clone(), number: self.number }
    }
}
