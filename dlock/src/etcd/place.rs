//! A claim's place in the queue: its keys, the transactions that create, read and delete them, and the
//! reading of their answers.
//!
//! A lock is the queue of the keys `lock/v1/NAME/…`, ordered by create revision; the first has the lock. A
//! claim's key ends with the random digits of its owner token, and its value is the whole token.
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

/// The prefix of the guard keys of all sessions.
const GUARDS: &str = "lock/guard/";

/// The keys of one claim.
pub(super) struct Place {
    /// The prefix of the keys of the queue.
    queue: String,
    key: String,
    owner: String,
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
    New { position: i64, ahead: Option<Ahead> },
    /// The key was there already.
    Known { position: i64 },
    /// The guard's revision differs from the one sent; nothing was done.
    Fenced { guard: i64 },
}

/// The result of [`Place::look`].
pub(super) enum Sight {
    /// The key is in the queue.
    InQueue(Option<Ahead>),
    /// The key is gone, with its lease or deleted by another client.
    Gone,
}

/// The claim directly ahead in the queue.
pub(super) struct Ahead {
    pub(super) key: Vec<u8>,
    /// The revision of the store at which the key was there.
    pub(super) seen: i64,
}

impl Place {
    pub(super) fn of(claim: &Claim) -> Self {
        let owner = claim.owner.as_str();
        // The name of the process, before the colon, may have a slash.
        let digits = owner.rsplit(':').next().unwrap_or(owner);
        let queue = claim.key.etcd_queue();
        Self { key: [&queue, digits].concat(), queue, owner: owner.to_owned() }
    }

    #[cfg(test)]
    pub(super) fn in_queue(queue: &str) -> Self {
        Self { queue: queue.to_owned(), key: queue.to_owned() + "/1", owner: "1".to_owned() }
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
        let last = newest_first().with_prefix().with_limit(2);
        Txn::new()
            .when([
                Compare::mod_revision(guard.as_str(), CompareOp::Equal, session.guard()),
                Compare::create_revision(self.key.as_str(), CompareOp::Equal, 0),
            ])
            .and_then([
                TxnOp::put(self.key.as_str(), self.owner.as_str(), Some(put)),
                // It sees the put before it.
                TxnOp::get(self.queue.as_str(), Some(last)),
            ])
            .or_else([TxnOp::get(self.key.as_str(), None), TxnOp::get(guard, None)])
    }

    pub(super) fn entry(&self, reply: Reply) -> Entry {
        let Reply { revision, succeeded, ranges } = reply;
        let mut found = ranges.into_iter();
        if succeeded {
            let queue = found.next().unwrap_or_default();
            return Entry::New { position: revision, ahead: ahead(queue, self.key.as_bytes(), revision) };
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
        let before = newest_first().with_prefix().with_max_create_revision(position - 1).with_limit(1);
        Txn::new()
            .when([Compare::create_revision(self.key.as_str(), CompareOp::Equal, position)])
            .and_then([TxnOp::get(self.queue.as_str(), Some(before))])
    }

    pub(super) fn sight(&self, reply: Reply) -> Sight {
        let Reply { revision, succeeded, ranges } = reply;
        if !succeeded {
            return Sight::Gone;
        }
        let queue = ranges.into_iter().next().unwrap_or_default();
        Sight::InQueue(ahead(queue, self.key.as_bytes(), revision))
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

fn ahead(queue: Vec<KeyValue>, own: &[u8], seen: i64) -> Option<Ahead> {
    let next = queue.into_iter().find(|kv| kv.key() != own)?;
    Some(Ahead { key: next.into_key_value().0, seen })
}
