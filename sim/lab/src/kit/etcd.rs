//! Plain requests to a member of etcd, which a lock or a worker with a mistake sends beside the library's
//! transactions.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dlock::{BackendError, Claim, FencingToken, LockKey, Owner, owner_prefix};
use etcd_client::{
    Client, Compare, CompareOp, ConnectOptions, DeleteOptions, Error, GetOptions, KeyValue, PutOptions,
    SortOrder, SortTarget, Txn, TxnOp, TxnOpResponse, TxnResponse,
};
use futures_util::FutureExt;
use sim::clients::{channel, meaning};
use sim::world::runtime::SimRuntime;

/// A client of the first member, for some requests of any. Each request has a connection of its own.
#[derive(Clone)]
pub struct Plain {
    runtime: SimRuntime,
    members: Vec<String>,
    /// The number of the member that gets the next request which goes to any. Clones share it.
    next: Arc<AtomicUsize>,
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
    place(&claim.key, &claim.owner)
}

/// Returns the key of `owner` in the queue of `key`.
fn place(key: &LockKey, owner: &Owner) -> String {
    let owner = owner.as_str();
    key.etcd_queue() + owner.rsplit(':').next().unwrap_or(owner)
}

impl Plain {
    /// Creates the client of the `members` at these addresses.
    pub fn new(runtime: SimRuntime, members: &[String]) -> Self {
        Self { runtime, members: members.to_vec(), next: Arc::default() }
    }

    /// Returns a client for each member alone.
    pub fn each(&self) -> Vec<Self> {
        let members = self.members.iter();
        members.map(|member| Self::new(self.runtime.clone(), std::slice::from_ref(member))).collect()
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

    /// Returns the number of keys in the queue, the holder's included. Asks any member.
    pub async fn count(&self, claim: &Claim) -> Result<u32, BackendError> {
        let options = GetOptions::new().with_prefix().with_count_only();
        let queue = queue(claim);
        let count = |mut client: Client| async move { client.get(queue, Some(options)).await };
        Ok(u32::try_from(self.any(count).await?.count()).unwrap_or(u32::MAX))
    }

    /// Returns the lease of the claim's own key; `None` if the key is not there. Asks any member.
    pub async fn lease(&self, claim: &Claim) -> Result<Option<i64>, BackendError> {
        let key = key(claim);
        let found = self.any(|mut client: Client| async move { client.get(key, None).await }).await?;
        Ok(found.kvs().first().map(KeyValue::lease))
    }

    /// Puts `key` under this lease, with the claim's owner as its value, unless it exists. Returns its create
    /// revision; `None` if another owner has put it. Asks any member.
    pub async fn put_if_free(
        &self,
        key: &str,
        claim: &Claim,
        lease: i64,
    ) -> Result<Option<FencingToken>, BackendError> {
        let owner = claim.owner.as_str();
        let put = TxnOp::put(key, owner, Some(PutOptions::new().with_lease(lease)));
        let txn = Txn::new()
            .when([Compare::create_revision(key, CompareOp::Equal, 0)])
            .and_then([put])
            .or_else([TxnOp::get(key, None)]);
        let answer = self.any(|mut client: Client| async move { client.txn(txn).await }).await?;
        let revision = match answer.succeeded() {
            true => answer.header().map(etcd_client::ResponseHeader::revision),
            false => {
                found(&answer).filter(|kv| kv.value() == owner.as_bytes()).map(|kv| kv.create_revision())
            }
        };
        Ok(revision.and_then(|revision| FencingToken::new(revision.unsigned_abs())))
    }

    /// Deletes `key` if its value is the claim's owner. Returns whether it was. Asks any member.
    pub async fn delete_own(&self, key: &str, claim: &Claim) -> Result<bool, BackendError> {
        let txn = Txn::new()
            .when([Compare::value(key, CompareOp::Equal, claim.owner.as_str())])
            .and_then([TxnOp::delete(key, None)]);
        let answer = self.any(|mut client: Client| async move { client.txn(txn).await }).await?;
        Ok(answer.succeeded())
    }

    /// Puts the key of `owner` in the queue of `key` again. It keeps its lease and its place. Returns the
    /// revision of the put. Asks any member.
    pub async fn put_again(&self, key: &LockKey, owner: &Owner) -> Result<u64, BackendError> {
        let (place, owner) = (place(key, owner), owner.as_str().to_owned());
        let options = PutOptions::new().with_ignore_lease();
        let put = |mut client: Client| async move { client.put(place, owner, Some(options)).await };
        let answer = self.any(put).await?;
        Ok(answer.header().map_or(0, |header| header.revision().unsigned_abs()))
    }

    /// Reads the first key of the queue as the first member has it, which may lag behind the cluster. Returns
    /// the prefix of its owner, and its token.
    pub async fn first_here(&self, key: &LockKey) -> Result<Option<(String, u64)>, BackendError> {
        let options = GetOptions::new()
            .with_prefix()
            .with_sort(SortTarget::Create, SortOrder::Ascend)
            .with_limit(1)
            .with_serializable();
        let mut client = self.connect(0, false)?;
        let found = client.get(key.etcd_queue(), Some(options)).await.map_err(meaning)?.take_kvs();
        let first = |kv: KeyValue| {
            let owner = owner_prefix(kv.value_str().unwrap_or_default()).to_owned();
            (owner, kv.create_revision().unsigned_abs())
        };
        Ok(found.into_iter().next().map(first))
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

    /// Sends a request to the member that has answered last, or to the next one if that one did not answer.
    async fn any<T, F>(&self, send: impl FnOnce(Client) -> F) -> Result<T, BackendError>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let member = self.next.fetch_add(1, Ordering::Relaxed);
        let answer = send(self.client_of(member)?).await.map_err(meaning)?;
        self.next.store(member, Ordering::Relaxed);
        Ok(answer)
    }

    fn client(&self) -> Result<Client, BackendError> {
        self.client_of(0)
    }

    /// Returns a client of the member with this number, counted around.
    fn client_of(&self, number: usize) -> Result<Client, BackendError> {
        self.connect(number, true)
    }

    /// Returns a client as [`Plain::client_of`] does. The member answers it without a leader unless
    /// `requires_leader`.
    fn connect(&self, number: usize, requires_leader: bool) -> Result<Client, BackendError> {
        let address = self.members.get(number % self.members.len().max(1));
        let address = address.cloned().unwrap_or_default();
        let channel = channel(&self.runtime, &address)
            .map_err(|error| BackendError::Unreachable { address, reason: error.to_string() })?;
        // Without a user, `from_channel` sends nothing: the future is ready at once.
        let options = ConnectOptions::new().with_require_leader(requires_leader);
        let client = Client::from_channel(channel, Some(options)).now_or_never();
        client.unwrap_or(Err(Error::InvalidArgs("a login is not supported".to_owned()))).map_err(meaning)
    }
}

/// Returns the key that a transaction has read.
fn found(answer: &TxnResponse) -> Option<KeyValue> {
    answer.op_responses().into_iter().find_map(|answer| match answer {
        TxnOpResponse::Get(mut range) => range.take_kvs().into_iter().next(),
        _ => None,
    })
}
