//! Watching an ensemble from outside: for traces, histories and faults that wait for an operation.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use dlock::zookeeper::path;

use super::tree::parent;
use crate::world::lock;

/// What a transaction did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A node was created.
    Created {
        /// Its path.
        path: String,
        /// Its data.
        data: Vec<u8>,
        /// The transaction.
        zxid: i64,
        /// The timeout of the session that it ends with, if it is ephemeral.
        timeout: Option<Duration>,
    },
    /// A node was deleted.
    Deleted {
        /// Its path.
        path: String,
        /// The transaction.
        zxid: i64,
        /// Why.
        cause: Removal,
    },
    /// A node's data was set.
    DataSet {
        /// Its path.
        path: String,
        /// The transaction.
        zxid: i64,
    },
    /// A session was opened.
    SessionOpened {
        /// Its number.
        id: i64,
    },
    /// A session is over.
    SessionClosed {
        /// Its number.
        id: i64,
        /// Whether the leader let it expire; else its client has closed it.
        expired: bool,
    },
}

/// Why a node was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// A client deleted it.
    Request,
    /// Its session was closed by its client.
    Closed,
    /// Its session expired.
    Expired,
}

/// Told of everything that an ensemble does, in order. It is called while no lock is held, so it may use the servers.
pub trait Observer: Send + Sync {
    /// What a request of `client` did. Sessions that expire come with the name of the leader as the client.
    fn changed(&self, client: &str, changes: &[Change]) {
        let _ = (client, changes);
    }

    /// The member called `server` has executed a request of `client` and not answered it yet. `operation` is its name in
    /// ZooKeeper's `ZooDefs`, such as `create2`.
    fn executed(&self, server: &str, client: &str, operation: &'static str) {
        let _ = (server, client, operation);
    }
}

/// Watches nothing.
impl Observer for () {}

/// Tells the story of the locks among the nodes, as `tracing` events of the target `server`: `key_granted` when an entry
/// becomes the first of its queue, `key_deleted` and `key_expired` when the first is gone.
///
/// It knows the queues of [`dlock::zookeeper::path`], whose entries hold the owner token, and leaves all other nodes alone.
#[derive(Debug, Default)]
pub struct LockView {
    queues: Mutex<BTreeMap<String, BTreeMap<u32, Entry>>>,
}

#[derive(Clone, Debug)]
struct Entry {
    owner: String,
    client: String,
    zxid: i64,
    timeout: Duration,
}

impl Observer for LockView {
    fn changed(&self, client: &str, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Created { path, data, zxid, timeout: Some(timeout) } => {
                    let owner = String::from_utf8_lossy(data).into_owned();
                    let entry = Entry { owner, client: client.to_owned(), zxid: *zxid, timeout: *timeout };
                    self.joined(path, entry);
                }
                Change::Deleted { path, cause, .. } => self.left(client, path, *cause),
                _ => {}
            }
        }
    }
}

impl LockView {
    fn joined(&self, path: &str, entry: Entry) {
        let Some((name, number)) = lock_entry(path) else { return };
        let mut queues = lock(&self.queues);
        let queue = queues.entry(name.clone()).or_default();
        queue.insert(number, entry.clone());
        let is_first = queue.first_key_value().is_some_and(|(first, _)| *first == number);
        drop(queues);
        if is_first {
            granted(&name, &entry);
        }
    }

    fn left(&self, client: &str, path: &str, cause: Removal) {
        let Some((name, number)) = lock_entry(path) else { return };
        let mut queues = lock(&self.queues);
        let Some(queue) = queues.get_mut(&name) else { return };
        let was_first = queue.first_key_value().is_some_and(|(first, _)| *first == number);
        let Some(entry) = queue.remove(&number) else { return };
        let next = queue.first_key_value().map(|(_, entry)| entry.clone());
        if next.is_none() {
            queues.remove(&name);
        }
        drop(queues);
        if was_first {
            removed(client, &name, &entry, cause);
            next.iter().for_each(|next| granted(&name, next));
        }
    }
}

/// The name of the lock that the node queues for, and its number there.
fn lock_entry(node: &str) -> Option<(String, u32)> {
    let (_, entry) = node.rsplit_once('/')?;
    Some((path::lock_name(parent(node))?, path::entry_number(entry)?))
}

fn granted(name: &str, entry: &Entry) {
    tracing::info!(
        target: "server",
        event = "key_granted",
        resource_id_hash = dlock::id_hash(name),
        owner_token_prefix = dlock::owner_prefix(&entry.owner),
        fencing_token = u64::try_from(entry.zxid).unwrap_or_default(),
        ttl_millis = u64::try_from(entry.timeout.as_millis()).unwrap_or(u64::MAX),
        client = entry.client,
    );
}

fn removed(client: &str, name: &str, entry: &Entry, cause: Removal) {
    let event = if cause == Removal::Expired { "key_expired" } else { "key_deleted" };
    tracing::info!(
        target: "server",
        event,
        resource_id_hash = dlock::id_hash(name),
        owner_token_prefix = dlock::owner_prefix(&entry.owner),
        fencing_token = u64::try_from(entry.zxid).unwrap_or_default(),
        client = (cause != Removal::Expired).then_some(client),
    );
}
