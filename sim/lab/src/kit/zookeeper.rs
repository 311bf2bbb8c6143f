//! Plain requests to a ZooKeeper ensemble, which a lock or a worker with a mistake sends beside the library's
//! requests.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dlock::{BackendError, Claim, FencingToken, Instant, LockKey, Owner, Runtime, owner_prefix};
use dlock_zookeeper::path::{entry_number, queue};
use dlock_zookeeper::{Client, ClientOptions, CreateMode, Error, SessionState, Stat};
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

/// A node of the session, and the time for which the session is proven to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// The transaction that created the node.
    pub token: FencingToken,
    /// A time before the request that proved the session alive.
    pub since: Instant,
    /// The time for which it lives from then on.
    pub left: Duration,
}

impl Plain {
    /// Creates the client of the ensemble of `servers`, not connected yet.
    pub fn new(runtime: SimRuntime, servers: &[String], session_timeout: Duration) -> Self {
        let options = ClientOptions::new(servers.to_vec(), session_timeout);
        Self { runtime, options, latest: Arc::default() }
    }

    /// Returns a client with a session of its own for each server alone.
    pub fn each(&self) -> Vec<Self> {
        let server = |server: &String| {
            Self::new(self.runtime.clone(), std::slice::from_ref(server), self.options.session_timeout)
        };
        self.options.servers.iter().map(server).collect()
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

    /// Creates the node `path` for as long as the session lives, with the claim's owner as its data, unless
    /// it exists. Returns `None` if another owner or another session has created it.
    ///
    /// # Errors
    ///
    /// As [`Plain::count`].
    pub async fn create_if_free(
        &self,
        path: &str,
        claim: &Claim,
        deadline: Instant,
    ) -> Result<Option<Own>, BackendError> {
        let (client, owner) = (self.client(), claim.owner.as_str().as_bytes());
        let create = async {
            client.established(deadline).await?;
            let mode = CreateMode { ephemeral: true, sequential: false };
            match client.create(path, owner, mode, deadline).await {
                Ok(_) | Err(Error::NodeExists { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        };
        create.await.map_err(failure)?;
        self.own(path, claim, deadline).await
    }

    /// Reads the node `path`; returns `None` unless this session has created it for the claim's owner.
    ///
    /// # Errors
    ///
    /// As [`Plain::count`].
    pub async fn own(
        &self,
        path: &str,
        claim: &Claim,
        deadline: Instant,
    ) -> Result<Option<Own>, BackendError> {
        let (client, runtime) = (self.client(), &self.runtime);
        let read = async {
            let session = client.established(deadline).await?;
            let since = runtime.now();
            // The leader takes part in the answer to a sync, and earlier requests have been executed by then.
            client.sync(path, deadline).await?;
            let (data, stat) = match client.data(path, deadline).await {
                Err(Error::NoNode { .. }) => return Ok(None),
                read => read?,
            };
            let is_own = stat.ephemeral_owner == session.id && data == claim.owner.as_str().as_bytes();
            let token = token_of(&stat).filter(|_| is_own);
            Ok(token.map(|token| Own { token, since, left: session.timeout }))
        };
        read.await.map_err(failure)
    }

    /// Deletes the node `path` if this session has created it for the claim's owner. Returns whether it has.
    ///
    /// # Errors
    ///
    /// As [`Plain::count`].
    pub async fn delete_own(
        &self,
        path: &str,
        claim: &Claim,
        deadline: Instant,
    ) -> Result<bool, BackendError> {
        let client = self.client();
        if self.own(path, claim, deadline).await?.is_none() {
            return Ok(false);
        }
        match client.delete(path, None, deadline).await {
            Err(Error::NoNode { .. }) => Ok(false),
            deleted => deleted.map(|()| true).map_err(failure),
        }
    }

    /// Sets the data of the entry of `owner` in the queue of `key` again. Returns the transaction; `None` if
    /// there is no such entry.
    ///
    /// # Errors
    ///
    /// As [`Plain::count`].
    pub async fn set_again(
        &self,
        key: &LockKey,
        owner: &Owner,
        deadline: Instant,
    ) -> Result<Option<u64>, BackendError> {
        let (client, data) = (self.client(), owner.as_str().as_bytes());
        let set = async {
            for (path, found, _) in self.read(key, deadline).await? {
                if found == data {
                    let stat = client.set_data(&path, data, None, deadline).await?;
                    return Ok(Some(stat.mzxid.unsigned_abs()));
                }
            }
            Ok(None)
        };
        set.await.map_err(failure)
    }

    /// Reads the first entry of the queue as its server has it, which may lag behind the ensemble. Returns
    /// the prefix of its owner, and its token.
    ///
    /// # Errors
    ///
    /// As [`Plain::count`].
    pub async fn first_here(
        &self,
        key: &LockKey,
        deadline: Instant,
    ) -> Result<Option<(String, u64)>, BackendError> {
        let entries = self.read(key, deadline).await.map_err(failure)?;
        let first = entries.into_iter().min_by_key(|(path, ..)| entry_number(path));
        Ok(first.map(|(_, data, stat)| {
            let owner = owner_prefix(&String::from_utf8_lossy(&data)).to_owned();
            (owner, stat.czxid.unsigned_abs())
        }))
    }

    /// Reads the entries of the queue: paths, data and stats. Leaves out those that end meanwhile.
    async fn read(&self, key: &LockKey, deadline: Instant) -> Result<Vec<(String, Vec<u8>, Stat)>, Error> {
        let (client, queue) = (self.client(), queue(key.name()));
        let names = match client.children(&queue, deadline).await {
            Err(Error::NoNode { .. }) => return Ok(Vec::new()),
            children => children?.names,
        };
        let mut entries = Vec::new();
        for path in names.iter().map(|name| format!("{queue}/{name}")) {
            match client.data(&path, deadline).await {
                Err(Error::NoNode { .. }) => {}
                read => {
                    let (data, stat) = read?;
                    entries.push((path, data, stat));
                }
            }
        }
        Ok(entries)
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

/// Returns the transaction that created a node.
fn token_of(stat: &Stat) -> Option<FencingToken> {
    FencingToken::new(stat.czxid.unsigned_abs())
}
