//! A claim's place in the queue: its keys, the transactions that create, read and delete them, and the
//! reading of their answers.
//!
//! A lock is the queue of the keys `lock/v1/NAME/…`, ordered by create revision; the first has the lock. Of a
//! semaphore with N permits, the first N have one. A claim's key ends with the random digits of its owner
//! token, and its value is the whole token.
//!
//! A reader's key is `lock/v1/NAME/~read-…`. It has the lock when no other kind of key is ahead; the key of a
//! writer is that of a mutex, which waits for all ahead. So a writer is served in its turn, whatever readers
//! come behind it. The queue with named kinds is that of Curator's `InterProcessReadWriteLock`.
//!
//! # Late puts
//!
//! Each request has a stream of its own, and members answer them independently: a delete may overtake the put
//! that it undoes, and the key would then stay in the queue for as long as the session lives. Each put is
//! therefore conditional on the revision of a *guard*, a key of the session. A release that may have an
//! unanswered put writes the guard in the transaction that deletes the key: a late put then finds another
//! revision and does nothing. Puts of other claims in flight at that time receive the new revision, and are
//! sent again.

use etcd_client::{
    Compare, CompareOp, GetOptions, GetResponse, KeyValue, PutOptions, SortOrder, SortTarget, Txn, TxnOp,
    TxnOpResponse, TxnResponse,
};

use super::session::Session;
use crate::backend::Claim;
use crate::key::LockKey;

/// The prefix of the guard keys of all sessions.
const GUARDS: &str = "lock/guard/";

/// The most readers that a grant to a reader names.
const READERS_MAX: i64 = 1000;

/// The keys of one claim.
pub(super) struct Place {
    /// The prefix of the keys of the queue.
    queue: String,
    key: String,
    owner: String,
    /// The number of keys at the head of the queue that have a permit.
    permits: usize,
    /// True if the claim is for reading.
    is_shared: bool,
}

/// The answer to a transaction of a claim, sent by itself or in a batch.
pub(super) struct Reply {
    /// The revision of the store after the transaction, which all its writes have.
    pub(super) revision: i64,
    /// True if the transaction's conditions were met.
    pub(super) succeeded: bool,
    /// The result of each of its range requests.
    ranges: Vec<Vec<KeyValue>>,
}

/// The result of [`Place::enter`].
pub(super) enum Entry {
    /// The key was put, at this create revision.
    New { position: i64, ahead: Ahead },
    /// The key was there already.
    Known { position: i64 },
    /// The guard's revision differs from the one sent; nothing was done.
    Fenced { guard: i64 },
}

/// The result of [`Place::look`].
pub(super) enum Sight {
    /// The key is in the queue.
    InQueue(Ahead),
    /// The key is gone, with its lease or deleted by another client.
    Gone,
}

/// The claims directly ahead in the queue, at most one for each permit.
///
/// A claim is served once fewer are ahead than there are permits. So long as each of these is there, it is
/// not: they are the only ones worth watching. Ahead of a reader only writers count.
pub(super) struct Ahead {
    /// The keys of the claims and their create revisions, the last one in the queue first.
    pub(super) claims: Vec<(Vec<u8>, i64)>,
    /// The create revisions of the readers ahead of a reader, the last one first.
    pub(super) readers: Vec<i64>,
    /// True if all permits are taken by claims ahead.
    pub(super) is_full: bool,
    /// The revision of the store at which the keys were there.
    pub(super) seen: i64,
}

impl Place {
    pub(super) fn of(claim: &Claim) -> Self {
        let owner = claim.owner.as_str();
        // The name of the process, before the colon, may have a slash.
        let digits = owner.rsplit(':').next().unwrap_or(owner);
        let queue = claim.key.etcd_queue();
        let permits = usize::try_from(claim.permits).unwrap_or(usize::MAX);
        let is_shared = claim.is_shared();
        let kind = if is_shared { LockKey::ETCD_READER } else { "" };
        Self { key: [&queue, kind, digits].concat(), queue, owner: owner.to_owned(), permits, is_shared }
    }

    #[cfg(test)]
    pub(super) fn in_queue(queue: &str) -> Self {
        let (key, owner) = (queue.to_owned() + "/1", "1".to_owned());
        Self { queue: queue.to_owned(), key, owner, permits: 1, is_shared: false }
    }

    /// Returns the prefix of the keys of the queue.
    pub(super) fn queue(&self) -> &str {
        &self.queue
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Returns whether both are places in one queue.
    pub(super) fn shares_queue(&self, other: &Self) -> bool {
        self.queue == other.queue
    }

    /// Puts the key at the end of the queue, unless it is there or the guard has changed. If the queue was
    /// empty, one round trip is enough.
    pub(super) fn enter(&self, session: &Session) -> Txn {
        let guard = guard_key(session);
        let put = PutOptions::new().with_lease(session.lease());
        Txn::new()
            .when([
                Compare::mod_revision(guard.as_str(), CompareOp::Equal, session.guard()),
                Compare::create_revision(self.key.as_str(), CompareOp::Equal, 0),
            ])
            .and_then(
                // The range requests see the put before them.
                [TxnOp::put(self.key.as_str(), self.owner.as_str(), Some(put))]
                    .into_iter()
                    .chain(self.get_ahead(newest_first(), 1))
                    .collect::<Vec<_>>(),
            )
            .or_else([TxnOp::get(self.key.as_str(), None), TxnOp::get(guard, None)])
    }

    pub(super) fn entry(&self, reply: Reply) -> Entry {
        let Reply { revision, succeeded, ranges } = reply;
        let mut found = ranges.into_iter();
        if succeeded {
            return Entry::New { position: revision, ahead: self.ahead(found, revision) };
        }
        let own = found.next().unwrap_or_default();
        match own.first() {
            Some(own) => Entry::Known { position: own.create_revision() },
            None => {
                let guard = found.next().unwrap_or_default();
                Entry::Fenced { guard: guard.first().map_or(0, KeyValue::mod_revision) }
            }
        }
    }

    /// Reads the key ahead of this one, if this one is at `position`.
    pub(super) fn look(&self, position: i64) -> Txn {
        let before = newest_first().with_max_create_revision(position - 1);
        Txn::new()
            .when([Compare::create_revision(self.key.as_str(), CompareOp::Equal, position)])
            .and_then(self.get_ahead(before, 0))
    }

    pub(super) fn sight(&self, reply: Reply) -> Sight {
        let Reply { revision, succeeded, ranges } = reply;
        if !succeeded {
            return Sight::Gone;
        }
        Sight::InQueue(self.ahead(ranges.into_iter(), revision))
    }

    /// Makes the range requests for the claims directly ahead, by `options`, and `own` more: for the claim's
    /// own key, if it may be among them. A reader asks for the last writer, and for the readers.
    fn get_ahead(&self, options: GetOptions, own: i64) -> Vec<TxnOp> {
        let queue = self.queue.as_str();
        if !self.is_shared {
            return vec![TxnOp::get(queue, Some(options.with_prefix().with_limit(self.count(own))))];
        }
        let readers = [queue, LockKey::ETCD_READER].concat();
        let writer = options.clone().with_range(readers.as_str()).with_limit(1);
        let others = options.with_prefix().with_limit(READERS_MAX + own);
        vec![TxnOp::get(queue, Some(writer)), TxnOp::get(readers.as_str(), Some(others))]
    }

    /// Returns the number of permits, and `more`.
    fn count(&self, more: i64) -> i64 {
        i64::try_from(self.permits).unwrap_or(i64::MAX).saturating_add(more)
    }

    /// Reads the claims ahead from the answers to [`Place::get_ahead`], the newest first, which may contain
    /// this claim's key.
    fn ahead(&self, mut ranges: impl Iterator<Item = Vec<KeyValue>>, seen: i64) -> Ahead {
        let mut others = || {
            let range = ranges.next().unwrap_or_default();
            range.into_iter().filter(|kv| kv.key() != self.key.as_bytes())
        };
        let (others, readers) = (others(), others());
        let readers = readers.map(|kv| kv.create_revision()).collect();
        let claims = others.map(|kv| (kv.create_revision(), kv.into_key_value().0));
        let claims: Vec<_> = claims.map(|(revision, key)| (key, revision)).take(self.permits).collect();
        Ahead { is_full: claims.len() >= self.permits, claims, readers, seen }
    }

    /// Deletes the key, if it is at `position`. For claims whose requests have all been answered.
    pub(super) fn delete(&self, position: i64) -> Txn {
        Txn::new()
            .when([Compare::create_revision(self.key.as_str(), CompareOp::Equal, position)])
            .and_then([TxnOp::delete(self.key.as_str(), None)])
    }

    /// Deletes the key, if it exists, and rewrites the guard, so that no late put creates it.
    pub(super) fn delete_for_good(&self, session: &Session) -> Txn {
        let move_on = || {
            let options = PutOptions::new().with_lease(session.lease());
            TxnOp::put(guard_key(session), "", Some(options))
        };
        Txn::new()
            .when([Compare::create_revision(self.key.as_str(), CompareOp::Greater, 0)])
            .and_then([move_on(), TxnOp::delete(self.key.as_str(), None)])
            .or_else([move_on()])
    }
}

impl Reply {
    pub(super) fn of(answer: &TxnResponse) -> Self {
        let ranges = |answer| match answer {
            TxnOpResponse::Get(mut range) => Some(GetResponse::take_kvs(&mut range)),
            _ => None,
        };
        let ranges = answer.op_responses().into_iter().filter_map(ranges).collect();
        Self { revision: revision(answer), succeeded: answer.succeeded(), ranges }
    }

    /// Sets the revision, which the answer to a nested transaction lacks.
    pub(super) fn at(self, revision: i64) -> Self {
        Self { revision, ..self }
    }
}

/// Returns the revision of the store after a transaction.
pub(super) fn revision(answer: &TxnResponse) -> i64 {
    answer.header().map_or(0, etcd_client::ResponseHeader::revision)
}

/// Returns the guard key of the session.
pub(super) fn guard_key(session: &Session) -> String {
    format!("{GUARDS}{:x}", session.lease())
}

fn newest_first() -> GetOptions {
    GetOptions::new().with_sort(SortTarget::Create, SortOrder::Descend).with_keys_only()
}
