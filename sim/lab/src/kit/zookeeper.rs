//! Reads of a lock's queue on ZooKeeper, which a lock with a mistake sends beside the library's requests.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dlock::{BackendError, Claim, Instant};
use dlock_zookeeper::path::queue;
use dlock_zookeeper::{Client, ClientOptions, Error, SessionState};
use futures_util::future::join_all;
use sim::world::runtime::SimRuntime;

/// A client with a session of its own, which the first request opens. Clones share it.
#[derive(Clone)]
pub struct Plain {
    runtime: SimRuntime,
    options: ClientOptions,
    latest: Arc<Mutex<Option<Client<SimRuntime>>>>,
}

/// An entry in the queue of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of its node.
    pub name: String,
    /// Its place: the transaction that created it, which is its token, too.
    pub position: u64,
}

impl Plain {
    /// Creates the client of the ensemble of `servers`, not connected yet.
    pub fn new(runtime: SimRuntime, servers: &[String], session_timeout: Duration) -> Self {
        let options = ClientOptions::new(servers.to_vec(), session_timeout);
        Self { runtime, options, latest: Arc::default() }
    }

    /// Returns the number of entries in the queue, the holder's included.
    ///
    /// # Errors
    ///
    /// [`BackendError`] if no server answers by `deadline`.
    pub async fn count(&self, claim: &Claim, deadline: Instant) -> Result<u32, BackendError> {
        let names = self.names(claim, deadline).await.map_err(failure)?;
        Ok(u32::try_from(names.len()).unwrap_or(u32::MAX))
    }

    /// Returns the entry right before `position` in the queue; `None` if that is the first one.
    ///
    /// # Errors
    ///
    /// As [`Plain::count`].
    pub async fn ahead(
        &self,
        claim: &Claim,
        position: u64,
        deadline: Instant,
    ) -> Result<Option<Entry>, BackendError> {
        let entries = self.entries(claim, deadline).await.map_err(failure)?;
        Ok(entries.into_iter().filter(|entry| entry.position < position).max_by_key(|entry| entry.position))
    }

    /// Reads the entries of the queue, in no particular order. Leaves out those that end meanwhile.
    async fn entries(&self, claim: &Claim, deadline: Instant) -> Result<Vec<Entry>, Error> {
        let (client, queue) = (self.client(), queue(claim.key.name()));
        let read = |name: String| {
            let (client, path) = (&client, format!("{queue}/{name}"));
            async move {
                let stat = client.exists(&path, deadline).await?;
                Ok(stat.map(|stat| Entry { name, position: stat.czxid.unsigned_abs() }))
            }
        };
        let names = self.names(claim, deadline).await?;
        let entries: Result<Vec<_>, Error> =
            join_all(names.into_iter().map(read)).await.into_iter().collect();
        Ok(entries?.into_iter().flatten().collect())
    }

    /// Reads the names of the queue's entries; none if there is no queue.
    async fn names(&self, claim: &Claim, deadline: Instant) -> Result<Vec<String>, Error> {
        match self.client().children(&queue(claim.key.name()), deadline).await {
            Err(Error::NoNode { .. }) => Ok(Vec::new()),
            children => Ok(children?.names),
        }
    }

    /// Returns the session, or another one if that is over.
    fn client(&self) -> Client<SimRuntime> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let lives = |client: &&Client<SimRuntime>| {
            !matches!(client.state(), SessionState::Expired | SessionState::Closed)
        };
        if let Some(client) = latest.as_ref().filter(lives) {
            return client.clone();
        }
        latest.insert(Client::new(self.runtime.clone(), self.options.clone())).clone()
    }
}

/// Returns a failure to read as one of the lock. The end of this session says nothing about the lock's.
fn failure(error: Error) -> BackendError {
    BackendError::Disconnected { reason: error.to_string() }
}
