//! A claim's place in the queue: the keys, the transactions that make, look at and end it, and how to read
//! their answers.
//!
//! A lock is the queue of the keys `lock/v1/NAME/…`, in the order of their create revisions; the first holds
//! it. A claim's key ends with the random digits of its owner token, and its value is the whole token.
//!
//! # A put that comes late
//!
//! Each request has a stream of its own, and members answer each on its own: a delete may overtake the put
//! that it is to undo, and the key would then stand in the queue for as long as the session lives. So each
//! put is conditional on the revision of a *guard*, one key of the session's. A release that can't know of a
//! put writes the guard in the transaction that deletes the key: a put from before finds another revision
//! than the one it was sent with, and does nothing, however late it comes. Puts of other claims that were
//! under way then are told the new revision, and sent again.

use etcd_client::{
    Compare, CompareOp, GetOptions, GetResponse, KeyValue, PutOptions, SortOrder, SortTarget, Txn, TxnOp,
    TxnOpResponse, TxnResponse,
};

use super::session::Session;
use crate::backend::Claim;

/// What the keys of all locks begin with: the version of the layout, as in Redis.
const LOCKS: &str = "lock/v1/";

/// What the guard keys of all sessions begin with.
const GUARDS: &str = "lock/guard/";

/// The keys of one claim.
pub(super) struct Place {
    /// What the keys of the queue begin with.
    queue: String,
    key: String,
    owner: String,
}

/// What came of [`Place::enter`].
pub(super) enum Entry {
    /// The key stands in the queue, at this create revision.
    New { position: i64, ahead: Option<Ahead> },
    /// It stood there already.
    Known { position: i64 },
    /// The guard has another revision than the request was sent with; nothing was done.
    Fenced { guard: i64 },
}

/// What came of [`Place::look`].
pub(super) enum Sight {
    /// The key stands in the queue.
    Standing(Option<Ahead>),
    /// It is gone: with its lease, or by somebody's hand.
    Gone,
}

/// Who stands right before a claim.
pub(super) struct Ahead {
    pub(super) key: Vec<u8>,
    /// The revision of the store at which it stood there.
    pub(super) seen: i64,
}

impl Place {
    pub(super) fn of(claim: &Claim) -> Self {
        let owner = claim.owner.as_str();
        // The name of the process, before the colon, may hold a slash.
        let digits = owner.rsplit(':').next().unwrap_or(owner);
        let queue = [LOCKS, claim.key.name(), "/"].concat();
        Self { key: [&queue, digits].concat(), queue, owner: owner.to_owned() }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Puts the key at the end of the queue, unless it stands there or the guard has moved on. One round trip
    /// tells all that there is to know when nobody else stands there.
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

    pub(super) fn entry(&self, answer: &TxnResponse) -> Entry {
        let seen = revision(answer);
        let mut found = ranges(answer);
        if answer.succeeded() {
            let queue = found.next().unwrap_or_default();
            return Entry::New { position: seen, ahead: ahead(queue, self.key.as_bytes(), seen) };
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

    /// Looks who stands before the key, if it stands at `position`.
    pub(super) fn look(&self, position: i64) -> Txn {
        let before = newest_first().with_prefix().with_max_create_revision(position - 1).with_limit(1);
        Txn::new()
            .when([Compare::create_revision(self.key.as_str(), CompareOp::Equal, position)])
            .and_then([TxnOp::get(self.queue.as_str(), Some(before))])
    }

    pub(super) fn sight(&self, answer: &TxnResponse) -> Sight {
        if !answer.succeeded() {
            return Sight::Gone;
        }
        let queue = ranges(answer).next().unwrap_or_default();
        Sight::Standing(ahead(queue, self.key.as_bytes(), revision(answer)))
    }

    /// Deletes the key, if it stands at `position`. For claims all of whose requests have been answered.
    pub(super) fn leave(&self, position: i64) -> Txn {
        Txn::new()
            .when([Compare::create_revision(self.key.as_str(), CompareOp::Equal, position)])
            .and_then([TxnOp::delete(self.key.as_str(), None)])
    }

    /// Deletes the key, if there is one, and moves the guard on, so that none comes later.
    pub(super) fn leave_for_good(&self, session: &Session) -> Txn {
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

/// The revision of the store after the transaction: that of everything that it wrote.
pub(super) fn revision(answer: &TxnResponse) -> i64 {
    answer.header().map_or(0, etcd_client::ResponseHeader::revision)
}

fn guard_key(session: &Session) -> String {
    format!("{GUARDS}{:x}", session.lease())
}

fn newest_first() -> GetOptions {
    GetOptions::new().with_sort(SortTarget::Create, SortOrder::Descend).with_keys_only()
}

fn ahead(queue: Vec<KeyValue>, own: &[u8], seen: i64) -> Option<Ahead> {
    let next = queue.into_iter().find(|kv| kv.key() != own)?;
    Some(Ahead { key: next.into_key_value().0, seen })
}

/// What each range of a transaction found.
fn ranges(answer: &TxnResponse) -> impl Iterator<Item = Vec<KeyValue>> {
    let found = |answer| match answer {
        TxnOpResponse::Get(mut range) => Some(GetResponse::take_kvs(&mut range)),
        _ => None,
    };
    answer.op_responses().into_iter().filter_map(found)
}
