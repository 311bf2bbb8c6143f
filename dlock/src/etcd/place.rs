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
//! With a limit of its waiters, a claim learns from the transaction that puts its key how many are ahead. If
//! those are too many, it is refused, and its key deleted. Until then it counts for those behind it.
//!
//! # Late puts
//!
//! Each request has a stream of its own, and members answer them independently: a delete may overtake the put
//! that it undoes, and the key would then stay in the queue for as long as the session lives. Each put is
//! therefore conditional on the revision of a *guard*, a key of the session. A release that may have an
//! unanswered put writes the guard in the transaction that deletes the key: a late put then finds another
//! revision and does nothing. Puts of other claims in flight at that time receive the new revision, and are
//! sent again. Revisions only grow: if the guard is gone or older than before, the session is over.

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
    /// The most claims that may wait, this one included; `None` without a limit.
    waiters_max: Option<u32>,
}

/// The answer to a transaction of a claim, sent by itself or in a batch.
pub(super) struct Reply {
    /// The revision of the store after the transaction, which all its writes have.
    pub(super) revision: i64,
    /// True if the transaction's conditions were met.
    pub(super) succeeded: bool,
    /// The result of each of its range requests.
    ranges: Vec<Range>,
}

/// The result of a range request.
#[derive(Default)]
struct Range {
    keys: Vec<Found>,
    /// The number of keys in the range, whether the request had a limit or not.
    count: i64,
}

/// A key that was found, with its create revision and its mod revision.
#[derive(Clone, Default)]
struct Found {
    key: Vec<u8>,
    created: i64,
    modified: i64,
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
    /// The number of claims ahead without a permit; more of them may be there if the answer was cut off.
    pub(super) waiting: u32,
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
        let (key, owner) = ([&queue, kind, digits].concat(), owner.to_owned());
        let waiters_max = claim.queue.map(|queue| queue.max);
        Self { key, queue, owner, permits, is_shared, waiters_max }
    }

    #[cfg(test)]
    pub(super) fn in_queue(queue: &str) -> Self {
        let (key, owner) = (queue.to_owned() + "/1", "1".to_owned());
        Self { queue: queue.to_owned(), key, owner, permits: 1, is_shared: false, waiters_max: None }
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
        // Nobody is behind the new key: all others in its queue are ahead.
        let others = ranges.first().map_or(0, |range| range.count - 1);
        let waiting = self.without_permits(usize::try_from(others).unwrap_or(0));
        let mut found = ranges.into_iter();
        if succeeded {
            let mut ahead = self.ahead(found.by_ref(), revision);
            ahead.waiting = waiting;
            return Entry::New { position: revision, ahead };
        }
        let own = found.next().unwrap_or_default();
        match own.keys.first() {
            Some(own) => Entry::Known { position: own.created },
            None => {
                let guard = found.next().unwrap_or_default();
                Entry::Fenced { guard: guard.keys.first().map_or(0, |guard| guard.modified) }
            }
        }
    }

    /// Reads the key ahead of this one, if this one is at `position`. With `counts_waiters` it reads as many
    /// keys ahead as may be there.
    pub(super) fn look(&self, position: i64, counts_waiters: bool) -> Txn {
        let before = newest_first().with_max_create_revision(position - 1);
        let waiters = self.waiters_max.filter(|_| counts_waiters).unwrap_or(0);
        Txn::new()
            .when([Compare::create_revision(self.key.as_str(), CompareOp::Equal, position)])
            .and_then(self.get_ahead(before, waiters.into()))
    }

    /// Returns the number of claims that wait ahead, if the queue may not have this one, too.
    pub(super) fn refusal(&self, ahead: &Ahead) -> Option<u32> {
        self.waiters_max.filter(|max| ahead.is_full && ahead.waiting >= *max).map(|_| ahead.waiting)
    }

    pub(super) fn sight(&self, reply: Reply) -> Sight {
        let Reply { revision, succeeded, ranges } = reply;
        if !succeeded {
            return Sight::Gone;
        }
        Sight::InQueue(self.ahead(ranges.into_iter(), revision))
    }

    /// Makes the range requests for the claims directly ahead, by `options`, and `more` of them: for the
    /// claim's own key, if it may be among them, or for those that wait. A reader asks for the last writer,
    /// and for the readers.
    fn get_ahead(&self, options: GetOptions, more: i64) -> Vec<TxnOp> {
        let queue = self.queue.as_str();
        if !self.is_shared {
            return vec![TxnOp::get(queue, Some(options.with_prefix().with_limit(self.count(more))))];
        }
        let readers = [queue, LockKey::ETCD_READER].concat();
        let writer = options.clone().with_range(readers.as_str()).with_limit(1);
        let others = options.with_prefix().with_limit(READERS_MAX + more);
        vec![TxnOp::get(queue, Some(writer)), TxnOp::get(readers.as_str(), Some(others))]
    }

    /// Returns the number of permits, and `more`.
    fn count(&self, more: i64) -> i64 {
        i64::try_from(self.permits).unwrap_or(i64::MAX).saturating_add(more)
    }

    /// Reads the claims ahead from the answers to [`Place::get_ahead`], the newest first, which may contain
    /// this claim's key.
    fn ahead(&self, mut ranges: impl Iterator<Item = Range>, seen: i64) -> Ahead {
        let mut others = || {
            let range = ranges.next().unwrap_or_default().keys;
            range.into_iter().filter(|found| found.key != self.key.as_bytes())
        };
        let (others, readers) = (others(), others());
        let readers = readers.map(|found| found.created).collect();
        let mut claims: Vec<_> = others.map(|found| (found.key, found.created)).collect();
        let waiting = self.without_permits(claims.len());
        claims.truncate(self.permits);
        Ahead { is_full: claims.len() >= self.permits, waiting, claims, readers, seen }
    }

    /// Returns how many of the first `count` claims of the queue have no permit.
    fn without_permits(&self, count: usize) -> u32 {
        u32::try_from(count.saturating_sub(self.permits)).unwrap_or(u32::MAX)
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
            TxnOpResponse::Get(mut range) => {
                let found = |kv: KeyValue| {
                    let (created, modified) = (kv.create_revision(), kv.mod_revision());
                    Found { key: kv.into_key_value().0, created, modified }
                };
                let keys = GetResponse::take_kvs(&mut range).into_iter().map(found).collect();
                Some(Range { count: range.count(), keys })
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the answer to a put that found `others` keys in the queue, the first of which it read.
    fn answer(others: i64) -> Reply {
        let keys = vec![Found::default(); others.min(1) as usize];
        let ranges = vec![Range { keys, count: others + 1 }];
        Reply { revision: 9, succeeded: true, ranges }
    }

    /// Returns how many wait, if that is too many.
    fn refusal(place: &Place, reply: Reply) -> Option<u32> {
        let Entry::New { ahead, .. } = place.entry(reply) else { panic!("the put failed") };
        place.refusal(&ahead)
    }

    #[test]
    fn a_claim_is_refused_behind_as_many_waiters_as_may_be_there() {
        let place = Place { waiters_max: Some(2), ..Place::in_queue("q") };
        // A free lock, a holder, a holder and a waiter, a holder and two waiters.
        assert_eq!([0, 1, 2].map(|others| refusal(&place, answer(others))), [None; 3]);
        assert_eq!([3, 4].map(|others| refusal(&place, answer(others))), [Some(2), Some(3)]);
        let unlimited = Place::in_queue("q");
        assert_eq!(refusal(&unlimited, answer(9000)), None);
    }

    #[test]
    fn a_claim_that_does_not_wait_is_refused_behind_a_holder() {
        let place = Place { waiters_max: Some(0), ..Place::in_queue("q") };
        assert_eq!([0, 1].map(|others| refusal(&place, answer(others))), [None, Some(0)]);
    }

    #[test]
    fn a_claim_whose_put_was_not_answered_counts_the_keys_that_it_reads() {
        let place = Place { waiters_max: Some(2), ..Place::in_queue("q") };
        let read = |others: usize| {
            let keys = vec![Found::default(); others];
            Reply { revision: 9, succeeded: true, ranges: vec![Range { keys, count: 90 }] }
        };
        let refused = |others| match place.sight(read(others)) {
            Sight::InQueue(ahead) => place.refusal(&ahead),
            Sight::Gone => panic!("the key is there"),
        };
        assert_eq!([refused(2), refused(3)], [None, Some(2)]);
        let limits = |counts| format!("{:?}", place.look(7, counts)).contains("limit: 3");
        assert!(limits(true) && !limits(false), "only the first look reads those that wait");
    }
}
