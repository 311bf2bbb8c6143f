//! The queue of a lock in an etcd cluster.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use dlock::{Runtime, timeout_at};
use etcd_client::{Client, Compare, CompareOp, GetOptions, KeyValue, SortOrder, SortTarget, Txn, TxnOp};
use futures_util::future::try_join_all;

use super::{Claim, Deleted, Owner, Path, Queue, Session, TIMEOUT, Target, Wire};

/// The digits of a key that are shown, as many as of an owner token: they are the same.
const DIGITS_SHOWN: usize = 8;

/// The key that a raise writes, and deletes at its end. The user of the locks has the rights for it.
const RAISING: &str = "lock/guard/raise";

/// The number of writes that a raise has under way.
const WRITES_AT_A_TIME: u64 = 64;

/// A connection to one member. After an error the next call opens another one.
pub(super) struct Cluster {
    wire: Wire,
    client: Option<Client>,
}

impl Cluster {
    pub(super) async fn connect(wire: Wire, target: &Target) -> Result<Self, String> {
        let client = open(&wire, target).await?;
        Ok(Self { wire, client: Some(client) })
    }

    /// Reads the queue at one revision, and then the leases of its keys.
    pub(super) async fn read(&mut self, target: &Target) -> Result<Queue, String> {
        let mut client = self.take(target).await?;
        let queue = queue(&mut client, target).await.map_err(|error| self.wire.explained(error))?;
        self.client = Some(client);
        Ok(queue)
    }

    /// Deletes the key of a claim, if it is still the same one.
    pub(super) async fn delete(&mut self, target: &Target, claim: &Claim) -> Result<Deleted, String> {
        let mut client = self.take(target).await?;
        let key = claim.path.0.as_str();
        let created = i64::try_from(claim.token).unwrap_or_default();
        let is_same = [
            Compare::create_revision(key, CompareOp::Equal, created),
            Compare::mod_revision(key, CompareOp::Equal, claim.version),
        ];
        let delete = Txn::new().when(is_same).and_then([TxnOp::delete(key, None)]);
        let answer = client.txn(delete).await.map_err(|error| self.wire.explained(told(error)))?;
        self.client = Some(client);
        Ok(if answer.succeeded() { Deleted::Done } else { Deleted::Changed })
    }

    /// Writes until the revision is at least `to`. Returns true with the revision before if it was lower.
    pub(super) async fn raise(&mut self, target: &Target, to: u64) -> Result<(bool, u64), String> {
        let client = self.take(target).await?;
        let from = self.within(revision(&client)).await?;
        let mut now = from;
        while now < to {
            let writes = (0..(to - now).min(WRITES_AT_A_TIME)).map(|_| write(&client));
            self.within(try_join_all(writes)).await?;
            now = self.within(revision(&client)).await?;
        }
        if from < to {
            self.within(async { client.kv_client().delete(RAISING, None).await.map_err(told) }).await?;
        }
        self.client = Some(client);
        Ok((from < to, from))
    }

    async fn within<T>(&self, step: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        let done = timeout_at(&self.wire, self.wire.now() + TIMEOUT, step).await;
        done.unwrap_or_else(|_| Err(format!("no answer within {} s", TIMEOUT.as_secs())))
            .map_err(|error| self.wire.explained(error))
    }

    /// Returns the connection, or a new one if it was lost. To be put back after an answer.
    async fn take(&mut self, target: &Target) -> Result<Client, String> {
        match self.client.take() {
            Some(client) => Ok(client),
            None => open(&self.wire, target).await,
        }
    }
}

async fn open(wire: &Wire, target: &Target) -> Result<Client, String> {
    let (deadline, place) = (wire.now() + TIMEOUT, &target.place);
    let opened = dlock::etcd::client(wire.clone(), &place.addresses, place.login.as_ref(), deadline).await;
    opened.map_err(|error| wire.explained(error))
}

async fn revision(client: &Client) -> Result<u64, String> {
    let found = client.kv_client().get(RAISING, None).await.map_err(told)?;
    let revision = found.header().and_then(|header| u64::try_from(header.revision()).ok());
    revision.ok_or_else(|| "it told no revision".to_owned())
}

async fn write(client: &Client) -> Result<(), String> {
    client.kv_client().put(RAISING, "", None).await.map(drop).map_err(told)
}

async fn queue(client: &mut Client, target: &Target) -> Result<Queue, String> {
    let oldest_first = GetOptions::new().with_prefix().with_sort(SortTarget::Create, SortOrder::Ascend);
    let found = client.get(target.names.etcd_queue(), Some(oldest_first)).await.map_err(told)?;
    let revision = found.header().and_then(|header| u64::try_from(header.revision()).ok());
    let mut sessions = BTreeMap::new();
    for kv in found.kvs().iter().filter(|kv| kv.lease() != 0) {
        if let Entry::Vacant(vacant) = sessions.entry(kv.lease()) {
            vacant.insert(session(client, kv.lease()).await?);
        }
    }
    let claim = |kv: &KeyValue| claim(kv, sessions.get(&kv.lease()).cloned());
    Ok(Queue { revision, claims: found.kvs().iter().map(claim).collect(), strangers: Vec::new() })
}

async fn session(client: &mut Client, lease: i64) -> Result<Session, String> {
    let answer = client.lease_time_to_live(lease, None).await.map_err(told)?;
    let millis = |seconds: i64| u64::try_from(seconds).ok().map(|seconds| seconds * 1000);
    // etcd answers -1 for a lease that it does not know.
    let is_gone = answer.ttl() < 0;
    Ok(Session {
        id: format!("{lease:x}"),
        ttl_ms: millis(answer.granted_ttl()).filter(|_| !is_gone),
        left_ms: millis(answer.ttl()),
        client: None,
        is_gone: Some(is_gone),
        received: None,
    })
}

fn claim(kv: &KeyValue, session: Option<Session>) -> Claim {
    let path = String::from_utf8_lossy(kv.key()).into_owned();
    let (queue, digits) = path.rsplit_once('/').unwrap_or(("", &path));
    Claim {
        name: format!("{queue}/{}…", digits.chars().take(DIGITS_SHOWN).collect::<String>()),
        owner: Owner(String::from_utf8_lossy(kv.value()).into_owned()),
        token: u64::try_from(kv.create_revision()).unwrap_or_default(),
        session,
        is_used_up: false,
        version: kv.mod_revision(),
        path: Path(path.clone()),
    }
}

/// Returns the words of etcd's own error, without the metadata around them.
fn told(error: etcd_client::Error) -> String {
    match error {
        etcd_client::Error::GRpcStatus(status) => status.message().to_owned(),
        other => other.to_string(),
    }
}
