//! Plain requests to a member of etcd, which a lock with a mistake sends beside the library's transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dlock::{BackendError, Claim};
use etcd_client::{
    Client, ConnectOptions, DeleteOptions, Error, GetOptions, KeyValue, SortOrder, SortTarget,
};
use futures_util::FutureExt;
use sim::clients::{channel, meaning};
use sim::world::runtime::SimRuntime;

/// A client of the first member; counts are read from any. Each request has a connection of its own.
#[derive(Clone)]
pub struct Plain {
    runtime: SimRuntime,
    members: Vec<String>,
    /// The number of the member that counts next. Clones share it.
    counting: Arc<AtomicUsize>,
}

/// A key of the queue, and the revision of the store when it was read.
pub struct Seen {
    /// The key with its value; `None` if there is none.
    pub kv: Option<KeyValue>,
    /// The revision of the store.
    pub revision: u64,
}

/// Returns the prefix of the keys of the lock's queue, as in `dlock::etcd` and in the history.
pub fn queue(claim: &Claim) -> String {
    claim.key.etcd_queue()
}

/// Returns the claim's own key in the queue.
pub fn key(claim: &Claim) -> String {
    let owner = claim.owner.as_str();
    queue(claim) + owner.rsplit(':').next().unwrap_or(owner)
}

impl Plain {
    /// Creates the client of the `members` at these addresses.
    pub fn new(runtime: SimRuntime, members: &[String]) -> Self {
        Self { runtime, members: members.to_vec(), counting: Arc::default() }
    }

    /// Reads the claim's own key.
    pub async fn own(&self, claim: &Claim) -> Result<Seen, BackendError> {
        self.read(key(claim), GetOptions::new()).await
    }

    /// Reads the key right before `position` in the queue.
    pub async fn ahead(&self, claim: &Claim, position: u64) -> Result<Seen, BackendError> {
        let before = i64::try_from(position).unwrap_or(i64::MAX) - 1;
        let last = GetOptions::new()
            .with_prefix()
            .with_sort(SortTarget::Create, SortOrder::Descend)
            .with_max_create_revision(before)
            .with_limit(1);
        self.read(queue(claim), last).await
    }

    /// Returns the number of keys in the queue, the holder's included.
    pub async fn count(&self, claim: &Claim) -> Result<u32, BackendError> {
        // The next member counts if this one does not answer, or too late.
        let member = self.counting.fetch_add(1, Ordering::Relaxed);
        let options = GetOptions::new().with_prefix().with_count_only();
        let found = self.client_of(member)?.get(queue(claim), Some(options)).await.map_err(meaning)?;
        self.counting.store(member, Ordering::Relaxed);
        Ok(u32::try_from(found.count()).unwrap_or(u32::MAX))
    }

    /// Deletes a key, or all keys with this prefix.
    pub async fn delete(&self, key: impl Into<Vec<u8>>, is_prefix: bool) -> Result<(), BackendError> {
        let options = is_prefix.then(|| DeleteOptions::new().with_prefix());
        self.client()?.delete(key, options).await.map_err(meaning).map(drop)
    }

    /// Puts the claim's own key, without a lease.
    pub async fn put_without_lease(&self, claim: &Claim) -> Result<(), BackendError> {
        self.client()?.put(key(claim), claim.owner.as_str(), None).await.map_err(meaning).map(drop)
    }

    async fn read(&self, key: String, options: GetOptions) -> Result<Seen, BackendError> {
        let mut found = self.client()?.get(key, Some(options)).await.map_err(meaning)?;
        let revision = found.header().map_or(0, |header| header.revision().unsigned_abs());
        Ok(Seen { kv: found.take_kvs().into_iter().next(), revision })
    }

    fn client(&self) -> Result<Client, BackendError> {
        self.client_of(0)
    }

    /// Returns a client of the member with this number, counted around.
    fn client_of(&self, number: usize) -> Result<Client, BackendError> {
        let address = self.members.get(number % self.members.len().max(1));
        let address = address.cloned().unwrap_or_default();
        let channel = channel(&self.runtime, &address)
            .map_err(|error| BackendError::Unreachable { address, reason: error.to_string() })?;
        // Without a user, `from_channel` sends nothing: the future is ready at once.
        let options = ConnectOptions::new().with_require_leader(true);
        let client = Client::from_channel(channel, Some(options)).now_or_never();
        client.unwrap_or(Err(Error::InvalidArgs("a login is not supported".to_owned()))).map_err(meaning)
    }
}
