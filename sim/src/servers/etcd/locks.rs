//! Finds the locks among the keys, for the history.
//!
//! A lock `NAME` is the queue of the keys `lock/v1/NAME/…`, in the order of their create revisions; the first
//! one holds it, or of a semaphore as many as there are permits ([`EtcdHost::permits`]). If the first one is
//! a reader (`~read-…`), all readers before the first writer hold it. That is the layout of our lock library,
//! and of etcd's own Lock service for the name `lock/v1/NAME`. A world may name further keys and queues
//! ([`EtcdHost::lock_key`], [`EtcdHost::lock_queue`]).
//!
//! [`EtcdHost::lock_key`]: super::EtcdHost::lock_key
//! [`EtcdHost::lock_queue`]: super::EtcdHost::lock_queue
//! [`EtcdHost::permits`]: super::EtcdHost::permits

use std::collections::BTreeMap;

use dlock::LockKey;
use etcd_client::proto::PbKeyValue;
use history::{Kind, Name};

use super::Observer;
use super::store::Change;
use crate::record::tell;

/// A change of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockChange {
    /// The lock's name ([`dlock::LockKey::name`]).
    pub name: String,
    /// The holder's owner token: the value of its key, or the key's last part if it has none (the Lock
    /// service's do not).
    pub owner: String,
    /// The client that put the holder's key; empty for a waiter whose place is beside the lock's key.
    pub holder: String,
    /// The change.
    pub what: LockEvent,
}

/// Records the changes of locks in the history, under the name of the cluster, whichever member ran the
/// request.
#[derive(Clone, Debug)]
pub struct History {
    cluster: String,
}

impl History {
    /// Creates an observer of the cluster called `cluster`.
    pub fn of(cluster: &str) -> Self {
        Self { cluster: cluster.to_owned() }
    }
}

impl Observer for History {
    fn locks_changed(&self, client: &str, changes: &[LockChange]) {
        changes.iter().for_each(|change| tell(&self.cluster, change.kind(client)));
    }
}

/// The cause of a change of the keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cause<'a> {
    /// The client whose request it was, or the cluster's name.
    pub(super) client: &'a str,
    /// True if the end of a lease caused it.
    pub(super) is_expired: bool,
}

/// The kinds of changes of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockEvent {
    /// The holder's key became the first of the queue, or one of those with a permit.
    Granted {
        /// The create revision of the key: the fencing token.
        token: u64,
        /// The time to live of the key's lease, if it has one.
        ttl_millis: Option<u64>,
    },
    /// The holder's lease was renewed.
    Extended {
        /// Its time to live.
        ttl_millis: u64,
    },
    /// A client deleted the holder's key, or revoked its lease.
    Deleted,
    /// The holder's lease ended.
    Expired,
    /// The key of a waiter was removed.
    WaiterGone {
        /// The create revision of the key: the waiter's place in the queue.
        position: u64,
    },
}

impl LockChange {
    /// Returns the event for the history; `client` caused it. The cause of a grant may be another client than
    /// the new holder.
    pub fn kind(&self, client: &str) -> Kind {
        let key = Name::from(dlock::id_hash(&self.name).as_str());
        let owner = Name::from(prefix(&self.owner));
        let client = Name::from(client);
        match self.what {
            LockEvent::Granted { token, ttl_millis } => {
                let client = Name::from(self.holder.as_str());
                Kind::KeyGranted { key, owner, token: Some(token), ttl_millis, client }
            }
            LockEvent::Extended { ttl_millis } => {
                Kind::KeyExtended { key, owner, ttl_millis: Some(ttl_millis), client }
            }
            LockEvent::Deleted => Kind::KeyDeleted { key, owner, client },
            LockEvent::Expired => Kind::KeyExpired { key, owner: Some(owner) },
            LockEvent::WaiterGone { position } => Kind::WaiterGone { key, owner, position: Some(position) },
        }
    }
}

/// Returns the part of an owner token that may appear in the history: see [`dlock::Owner::prefix`].
fn prefix(owner: &str) -> &str {
    let digits = owner.rfind(':').map_or(0, |colon| colon + 1);
    owner.char_indices().nth(digits + 8).map_or(owner, |(end, _)| &owner[..end])
}

/// The locks of a world beside those of `lock/v1/`.
#[derive(Debug, Default)]
struct Named {
    /// Keys that exist while their lock is held.
    keys: BTreeMap<Vec<u8>, String>,
    /// Prefixes of queues.
    queues: Vec<(Vec<u8>, String)>,
    /// Prefixes of the places of waiters, which never hold their lock.
    waiters: Vec<(Vec<u8>, String)>,
    /// The numbers of permits of semaphores.
    permits: BTreeMap<String, usize>,
}

/// The lock to which a key belongs.
struct Found<'a> {
    name: &'a str,
    /// The last part of the key.
    last: &'a str,
    /// The key alone is the lock: a client that puts another value takes it over.
    is_single: bool,
}

impl Named {
    fn permits(&self, name: &str) -> usize {
        self.permits.get(name).copied().unwrap_or(1)
    }

    /// Returns the lock for which the key is a place of a waiter, if it is one.
    fn awaited(&self, key: &[u8]) -> Option<&str> {
        self.waiters.iter().find(|(prefix, _)| key.starts_with(prefix)).map(|(_, name)| name.as_str())
    }

    fn find<'a>(&'a self, key: &'a [u8]) -> Option<Found<'a>> {
        let text = || std::str::from_utf8(key).unwrap_or_default();
        let last = |name, is_single| {
            Some(Found { name, last: text().rsplit('/').next().unwrap_or_default(), is_single })
        };
        if let Some(name) = self.keys.get(key) {
            return last(name, true);
        }
        if let Some((_, name)) = self.queues.iter().find(|(prefix, _)| key.starts_with(prefix)) {
            return last(name, false);
        }
        lock_name(key).map(|(name, last)| Found { name, last, is_single: false })
    }
}

/// All queues.
#[derive(Debug, Default)]
pub(super) struct LockView {
    named: Named,
    queues: BTreeMap<String, Queue>,
}

/// The entries of a queue by their create revisions.
#[derive(Debug, Default)]
struct Queue(BTreeMap<i64, Entry>);

impl Queue {
    /// Returns the entries that hold the lock, with their create revisions: the first ones, one for each
    /// permit, or the readers before the first writer.
    fn holders(&self, permits: usize) -> impl Iterator<Item = (&i64, &Entry)> {
        let readers = self.0.values().take_while(|entry| entry.is_reader).count();
        self.0.iter().take(if readers > 0 { readers } else { permits })
    }
}

#[derive(Debug)]
struct Entry {
    is_reader: bool,
    owner: String,
    client: String,
    lease: i64,
}

impl LockView {
    /// Names the lock that is held while `key` exists.
    pub(super) fn add_key(&mut self, key: Vec<u8>, lock: String) {
        self.named.keys.insert(key, lock);
    }

    /// Names the lock whose queue is the keys that begin with `prefix`.
    pub(super) fn add_queue(&mut self, prefix: Vec<u8>, lock: String) {
        self.named.queues.push((prefix, lock));
    }

    /// Names the lock for which the keys that begin with `prefix` wait.
    pub(super) fn add_waiters(&mut self, prefix: Vec<u8>, lock: String) {
        self.named.waiters.push((prefix, lock));
    }

    /// Sets the number of entries that hold the lock called `lock`.
    pub(super) fn set_permits(&mut self, lock: String, permits: usize) {
        self.named.permits.insert(lock, permits);
    }

    /// Follows a change of the keys, and appends the changes of locks that it causes.
    pub(super) fn follow(
        &mut self,
        change: &Change,
        cause: Cause<'_>,
        ttl: impl Fn(i64) -> Option<u64>,
        changes: &mut Vec<LockChange>,
    ) {
        if let Some(name) = self.named.awaited(&change.kv.key) {
            changes.extend(left(name, change));
            return;
        }
        let Some(Found { name, last, is_single }) = self.named.find(&change.kv.key) else { return };
        let permits = self.named.permits(name);
        let queue = self.queues.entry(name.to_owned()).or_default();
        let holders: Vec<i64> = queue.holders(permits).map(|(token, _)| *token).collect();
        if change.is_delete {
            let position = change.former.as_ref().map_or(0, |kv| kv.create_revision);
            let what = match holders.contains(&position) {
                false => LockEvent::WaiterGone { position: position.unsigned_abs() },
                true if cause.is_expired => LockEvent::Expired,
                true => LockEvent::Deleted,
            };
            changes.extend(queue.0.remove(&position).map(|entry| entry.change(name, what)));
        } else {
            let (owner, client) = (owner(&change.kv, last), cause.client.to_owned());
            let is_reader = last.starts_with(LockKey::ETCD_READER);
            let entry = Entry { is_reader, owner, client, lease: change.kv.lease };
            if is_single {
                changes.extend(entry.overwritten(name, change, &ttl));
            }
            queue.0.insert(change.kv.create_revision, entry);
        }
        let granted = queue.holders(permits).filter(|(token, _)| !holders.contains(token));
        changes.extend(granted.map(|(token, entry)| {
            let token = u64::try_from(*token).unwrap_or_default();
            entry.change(name, LockEvent::Granted { token, ttl_millis: ttl(entry.lease) })
        }));
        if queue.0.is_empty() {
            self.queues.remove(name);
        }
    }

    /// Appends the extension of each lock that one of the lease's keys holds.
    pub(super) fn extended<'a>(
        &self,
        keys: impl Iterator<Item = &'a Vec<u8>>,
        lease: i64,
        ttl_millis: u64,
        changes: &mut Vec<LockChange>,
    ) {
        let names = keys.filter_map(|key| self.named.find(key)).map(|found| found.name);
        for name in names {
            let permits = self.named.permits(name);
            let holders = self.queues.get(name).into_iter().flat_map(|queue| queue.holders(permits));
            let extended = holders.filter(|(_, entry)| entry.lease == lease);
            changes.extend(extended.map(|(_, entry)| entry.change(name, LockEvent::Extended { ttl_millis })));
        }
    }
}

impl Entry {
    /// Returns the change of a lock that is one key, when the key existed and is put again: another value
    /// takes the lock over, the same one extends it.
    fn overwritten(
        &self,
        name: &str,
        change: &Change,
        ttl: impl Fn(i64) -> Option<u64>,
    ) -> Option<LockChange> {
        let (former, ttl_millis) = (change.former.as_ref()?, ttl(self.lease));
        let token = change.kv.mod_revision.unsigned_abs();
        let what = match former.value == change.kv.value {
            true => LockEvent::Extended { ttl_millis: ttl_millis? },
            false => LockEvent::Granted { token, ttl_millis },
        };
        Some(self.change(name, what))
    }

    fn change(&self, name: &str, what: LockEvent) -> LockChange {
        let (owner, holder) = (self.owner.clone(), self.client.clone());
        LockChange { name: name.to_owned(), owner, holder, what }
    }
}

/// Returns the end of a waiter's place beside the lock called `name`, if the change is one.
fn left(name: &str, change: &Change) -> Option<LockChange> {
    let former = change.former.as_ref().filter(|_| change.is_delete)?;
    let what = LockEvent::WaiterGone { position: former.create_revision.unsigned_abs() };
    Some(LockChange { name: name.to_owned(), owner: owner(former, ""), holder: String::new(), what })
}

/// Returns the name of the lock in whose queue the key is, and the last part of the key.
fn lock_name(key: &[u8]) -> Option<(&str, &str)> {
    let key = std::str::from_utf8(key).ok()?;
    key.strip_prefix(LockKey::ETCD_PREFIX)?.rsplit_once('/').filter(|(name, _)| !name.is_empty())
}

fn owner(kv: &PbKeyValue, last: &str) -> String {
    match std::str::from_utf8(&kv.value) {
        Ok(value) if !value.is_empty() => value.to_owned(),
        _ => last.to_owned(),
    }
}
