//! The queue of a lock in an etcd cluster.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use etcd_client::{
    Client, Compare, CompareOp, ConnectOptions, GetOptions, KeyValue, SortOrder, SortTarget, Txn, TxnOp,
};

use super::{Claim, Deleted, Owner, Path, Queue, Session, TIMEOUT, Target};

/// The digits of a key that are shown, as many as of an owner token: they are the same.
const DIGITS_SHOWN: usize = 8;

pub(super) struct Cluster(Client);

impl Cluster {
    pub(super) async fn connect(target: &Target) -> Result<Self, String> {
        let mut options = ConnectOptions::new().with_connect_timeout(TIMEOUT);
        if let Some((user, password)) = &target.login {
            options = options.with_user(user, password);
        }
        Client::connect(&target.servers, Some(options)).await.map(Self).map_err(told)
    }

    /// Reads the queue at one revision, and then the leases of its keys.
    pub(super) async fn read(&mut self, target: &Target) -> Result<Queue, String> {
        let oldest_first = GetOptions::new().with_prefix().with_sort(SortTarget::Create, SortOrder::Ascend);
        let found = self.0.get(target.names.etcd_queue(), Some(oldest_first)).await.map_err(told)?;
        let revision = found.header().and_then(|header| u64::try_from(header.revision()).ok());
        let mut sessions = BTreeMap::new();
        for kv in found.kvs().iter().filter(|kv| kv.lease() != 0) {
            if let Entry::Vacant(vacant) = sessions.entry(kv.lease()) {
                vacant.insert(self.session(kv.lease()).await?);
            }
        }
        let claim = |kv: &KeyValue| claim(kv, sessions.get(&kv.lease()).cloned());
        Ok(Queue { revision, claims: found.kvs().iter().map(claim).collect(), strangers: Vec::new() })
    }

    /// Deletes the key of a claim, if it is still the same one.
    pub(super) async fn delete(&mut self, claim: &Claim) -> Result<Deleted, String> {
        let key = claim.path.0.as_str();
        let created = i64::try_from(claim.token).unwrap_or_default();
        let is_same = [
            Compare::create_revision(key, CompareOp::Equal, created),
            Compare::mod_revision(key, CompareOp::Equal, claim.version),
        ];
        let delete = Txn::new().when(is_same).and_then([TxnOp::delete(key, None)]);
        let answer = self.0.txn(delete).await.map_err(told)?;
        Ok(if answer.succeeded() { Deleted::Done } else { Deleted::Changed })
    }

    async fn session(&mut self, lease: i64) -> Result<Session, String> {
        let answer = self.0.lease_time_to_live(lease, None).await.map_err(told)?;
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
