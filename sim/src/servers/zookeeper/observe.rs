//! Observers of an ensemble: for the trace and the history.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use dlock_zookeeper::path;
use history::{Kind, Name};

use super::tree::parent;
use crate::record::tell;
use crate::world::lock;

/// The effect of a transaction.
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
    /// A session has ended.
    SessionClosed {
        /// Its number.
        id: i64,
        /// True if it expired; otherwise its client closed it.
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

/// Receives everything that an ensemble does, in order. It is called while no lock is held, so it may use the
/// servers.
pub trait Observer: Send + Sync {
    /// Receives the changes by a request of `client`. If sessions expired, `client` is the name of the
    /// leader.
    fn changed(&self, client: &str, changes: &[Change]) {
        let _ = (client, changes);
    }

    /// Receives a request of `client` that the member called `server` has executed and not answered yet.
    /// `operation` is its name in ZooKeeper's `ZooDefs`, such as `create2`.
    fn executed(&self, server: &str, client: &str, operation: &'static str) {
        let _ = (server, client, operation);
    }

    /// Receives the name of a lock of the world: `path` is its node, or the parent of its queue.
    fn named(&self, path: &str, lock: &str, is_queue: bool) {
        let _ = (path, lock, is_queue);
    }

    /// Receives the parent of the places of those that wait for a lock of the world, which is another node.
    fn waiters(&self, parent: &str, lock: &str) {
        let _ = (parent, lock);
    }

    /// Receives the number of permits of a lock of the world that is a semaphore.
    fn permits(&self, lock: &str, permits: usize) {
        let _ = (lock, permits);
    }
}

/// Ignores everything.
impl Observer for () {}

/// Records the changes of locks in the history. A lock is granted when an entry becomes the first of its
/// queue, of a semaphore one of those with a permit, or one of the readers before the first writer; it ends
/// when that entry is removed.
///
/// It knows the queues of [`dlock_zookeeper::path`], whose entries hold the owner token, and the nodes that
/// the world has named ([`super::ZooKeeperHost::lock_key`]). It ignores all others. The
/// history has one name for the whole ensemble, whichever member ran the request.
#[derive(Debug, Default)]
pub struct LockView {
    named: Mutex<Named>,
    queues: Mutex<BTreeMap<String, Queue>>,
    /// The places of waiters that are beside their locks, by path.
    places: Mutex<BTreeMap<String, Entry>>,
}

/// The entries of a queue by their numbers.
#[derive(Debug, Default)]
struct Queue(BTreeMap<u32, Entry>);

impl Queue {
    /// Returns the numbers of the entries that hold the lock: the first ones, one for each permit, or the
    /// readers before the first writer.
    fn holders(&self, permits: usize) -> Vec<u32> {
        let readers = self.0.values().take_while(|entry| entry.is_reader).count();
        self.0.keys().take(if readers > 0 { readers } else { permits }).copied().collect()
    }
}

#[derive(Clone, Debug)]
struct Entry {
    is_reader: bool,
    owner: String,
    client: String,
    zxid: i64,
    /// `None` for a node that no session ends.
    timeout: Option<Duration>,
}

/// The locks of a world beside those of `dlock`.
#[derive(Debug, Default)]
struct Named {
    /// Nodes that exist while their lock is held.
    nodes: BTreeMap<String, String>,
    /// Parents of queues.
    queues: BTreeMap<String, String>,
    /// Parents of the places of waiters, which never hold their lock.
    waiters: BTreeMap<String, String>,
    /// The numbers of permits of semaphores.
    permits: BTreeMap<String, usize>,
}

/// The name of an ensemble in the history.
pub const ENSEMBLE: &str = "zookeeper";

impl Observer for LockView {
    fn changed(&self, client: &str, changes: &[Change]) {
        changes.iter().flat_map(|change| self.follow(client, change)).for_each(|kind| tell(ENSEMBLE, kind));
    }

    fn named(&self, path: &str, name: &str, is_queue: bool) {
        let mut named = lock(&self.named);
        let names = if is_queue { &mut named.queues } else { &mut named.nodes };
        names.insert(path.to_owned(), name.to_owned());
    }

    fn waiters(&self, parent: &str, name: &str) {
        lock(&self.named).waiters.insert(parent.to_owned(), name.to_owned());
    }

    fn permits(&self, name: &str, permits: usize) {
        lock(&self.named).permits.insert(name.to_owned(), permits);
    }
}

impl LockView {
    /// Returns the events of locks that a change causes.
    fn follow(&self, client: &str, change: &Change) -> Vec<Kind> {
        match change {
            Change::Created { path, data, zxid, timeout } => {
                let owner = String::from_utf8_lossy(data).into_owned();
                let (client, zxid, timeout) = (client.to_owned(), *zxid, *timeout);
                let is_reader = path.rsplit('/').next().is_some_and(path::is_reader);
                let entry = Entry { is_reader, owner, client, zxid, timeout };
                match self.awaited(path) {
                    Some(_) => drop(lock(&self.places).insert(path.clone(), entry)),
                    None => return self.joined(path, entry).into_iter().collect(),
                }
                Vec::new()
            }
            Change::Deleted { path, cause, .. } => match self.awaited(path) {
                Some(name) => self.left_place(&name, path).into_iter().collect(),
                None => self.left(client, path, *cause),
            },
            _ => Vec::new(),
        }
    }

    /// Returns the lock to which the node belongs, and its number in the queue. A lock of `dlock` has
    /// ephemeral nodes only.
    fn lock_entry(&self, node: &str, is_ephemeral: bool) -> Option<(String, u32)> {
        let named = lock(&self.named).find(node);
        named.or_else(|| lock_entry(node).filter(|_| is_ephemeral))
    }

    /// Returns the lock for which the node is a place of a waiter, if it is one.
    fn awaited(&self, node: &str) -> Option<String> {
        lock(&self.named).waiters.get(parent(node)).cloned()
    }

    /// Returns the end of a waiter's place beside the lock called `name`.
    fn left_place(&self, name: &str, path: &str) -> Option<Kind> {
        let entry = lock(&self.places).remove(path)?;
        Some(waiter_gone(name, &entry))
    }

    fn joined(&self, path: &str, entry: Entry) -> Option<Kind> {
        let (name, number) = self.lock_entry(path, entry.timeout.is_some())?;
        let mut queues = lock(&self.queues);
        let queue = queues.entry(name.clone()).or_default();
        queue.0.insert(number, entry.clone());
        queue.holders(self.permits_of(&name)).contains(&number).then(|| granted(&name, &entry))
    }

    fn permits_of(&self, name: &str) -> usize {
        lock(&self.named).permits.get(name).copied().unwrap_or(1)
    }

    fn left(&self, client: &str, path: &str, cause: Removal) -> Vec<Kind> {
        let Some((name, number)) = self.lock_entry(path, true) else { return Vec::new() };
        let mut queues = lock(&self.queues);
        let Some(queue) = queues.get_mut(&name) else { return Vec::new() };
        let permits = self.permits_of(&name);
        let holders = queue.holders(permits);
        let Some(entry) = queue.0.remove(&number) else { return Vec::new() };
        // Those that move up: readers, too, if a writer that waited is gone.
        let next = queue.holders(permits).into_iter().filter(|holder| !holders.contains(holder));
        let next: Vec<_> = next.filter_map(|number| queue.0.get(&number)).cloned().collect();
        if queue.0.is_empty() {
            queues.remove(&name);
        }
        let gone = match holders.contains(&number) {
            true => removed(client, &name, &entry, cause),
            false => waiter_gone(&name, &entry),
        };
        [gone].into_iter().chain(next.iter().map(|next| granted(&name, next))).collect()
    }
}

impl Named {
    fn find(&self, node: &str) -> Option<(String, u32)> {
        if let Some(name) = self.nodes.get(node) {
            return Some((name.clone(), 0));
        }
        let name = self.queues.get(parent(node))?;
        // A sequential node ends in ten digits.
        let digits = node.get(node.len().checked_sub(10)?..)?;
        Some((name.clone(), digits.parse().ok()?))
    }
}

/// Returns the name of the lock in whose queue the node is, and the node's number there.
fn lock_entry(node: &str) -> Option<(String, u32)> {
    let (_, entry) = node.rsplit_once('/')?;
    Some((path::lock_name(parent(node))?, path::entry_number(entry)?))
}

fn granted(name: &str, entry: &Entry) -> Kind {
    Kind::KeyGranted {
        key: hashed(name),
        owner: owner(entry),
        token: u64::try_from(entry.zxid).ok(),
        ttl_millis: entry.timeout.and_then(|timeout| u64::try_from(timeout.as_millis()).ok()),
        client: Name::from(entry.client.as_str()),
    }
}

fn removed(client: &str, name: &str, entry: &Entry, cause: Removal) -> Kind {
    if cause == Removal::Expired {
        return Kind::KeyExpired { key: hashed(name), owner: Some(owner(entry)) };
    }
    Kind::KeyDeleted { key: hashed(name), owner: owner(entry), client: Name::from(client) }
}

fn waiter_gone(name: &str, entry: &Entry) -> Kind {
    Kind::WaiterGone { key: hashed(name), owner: owner(entry), position: u64::try_from(entry.zxid).ok() }
}

fn hashed(name: &str) -> Name {
    Name::from(dlock::id_hash(name).as_str())
}

fn owner(entry: &Entry) -> Name {
    Name::from(dlock::owner_prefix(&entry.owner))
}
