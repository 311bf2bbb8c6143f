//! Plain requests to one member of etcd, which a lock with a mistake sends beside the library's transactions.

use dlock::{BackendError, Claim};
use etcd_client::{
    Client, ConnectOptions, DeleteOptions, Error, GetOptions, KeyValue, SortOrder, SortTarget,
};
use futures_util::FutureExt;
use sim::clients::{channel, meaning};
use sim::world::runtime::SimRuntime;

/// A client of one member. Each request has a connection of its own.
#[derive(Clone)]
pub struct Plain {
    runtime: SimRuntime,
    address: String,
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
    /// Creates the client of the member at `address`.
    pub fn new(runtime: SimRuntime, address: &str) -> Self {
        Self { runtime, address: address.to_owned() }
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
        let unreachable =
            |reason: String| BackendError::Unreachable { address: self.address.clone(), reason };
        let channel =
            channel(&self.runtime, &self.address).map_err(|error| unreachable(error.to_string()))?;
        // Without a user, `from_channel` sends nothing: the future is ready at once.
        let options = ConnectOptions::new().with_require_leader(true);
        let client = Client::from_channel(channel, Some(options)).now_or_never();
        client.unwrap_or(Err(Error::InvalidArgs("a login is not supported".to_owned()))).map_err(meaning)
    }
}
