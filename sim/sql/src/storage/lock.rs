//! Locks on tables, names, advisory keys and rows, and the sessions that wait for them.

use std::collections::{BTreeMap, BTreeSet};

use super::ids::{RowId, TableId};
use crate::api::SessionId;

/// What a lock of several modes is on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    Table(TableId),
    /// A name that a transaction creates.
    Name(String),
    /// The two halves of the key, and 1 for one bigint, 2 for two integers.
    Advisory(u32, u32, u8),
}

/// The modes of locks on tables, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

impl Mode {
    /// Each mode with its words in SQL and in messages.
    pub(crate) const ALL: [(Self, &str, &str); 8] = [
        (Self::AccessShare, "ACCESS SHARE", "AccessShareLock"),
        (Self::RowShare, "ROW SHARE", "RowShareLock"),
        (Self::RowExclusive, "ROW EXCLUSIVE", "RowExclusiveLock"),
        (Self::ShareUpdateExclusive, "SHARE UPDATE EXCLUSIVE", "ShareUpdateExclusiveLock"),
        (Self::Share, "SHARE", "ShareLock"),
        (Self::ShareRowExclusive, "SHARE ROW EXCLUSIVE", "ShareRowExclusiveLock"),
        (Self::Exclusive, "EXCLUSIVE", "ExclusiveLock"),
        (Self::AccessExclusive, "ACCESS EXCLUSIVE", "AccessExclusiveLock"),
    ];

    fn conflicts(self, other: Self) -> bool {
        let (low, high) = if self <= other { (self, other) } else { (other, self) };
        match low {
            Self::AccessShare => high == Self::AccessExclusive,
            Self::RowShare => high >= Self::Exclusive,
            Self::RowExclusive => high >= Self::Share,
            Self::ShareUpdateExclusive => true,
            Self::Share => high > Self::Share,
            _ => true,
        }
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(mode, ..)| *mode == self).map_or("", |(_, _, name)| name)
    }
}

/// The modes of locks on rows, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowMode {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

impl RowMode {
    fn conflicts(self, other: Self) -> bool {
        let (low, high) = if self <= other { (self, other) } else { (other, self) };
        match low {
            Self::KeyShare => high == Self::Update,
            Self::Share => high >= Self::NoKeyUpdate,
            _ => true,
        }
    }
}

/// How long a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    Transaction,
    Session,
}

/// The lock that a session waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// The end of a transaction that has a row; `None` for a key or a sequence.
    Row(Option<(TableId, RowId)>),
    Lock(Target, Mode),
}

/// A session that can't go on.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    /// Earlier waiters have smaller tickets.
    pub(crate) ticket: u64,
    pub(crate) on: Vec<SessionId>,
    pub(crate) what: WaitFor,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    session: SessionId,
    mode: Mode,
    in_transaction: u32,
    in_session: u32,
}

/// All locks.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    held: BTreeMap<Target, Vec<Held>>,
    rows: BTreeMap<(TableId, RowId), Vec<(SessionId, RowMode)>>,
    waits: BTreeMap<SessionId, Wait>,
    woken: BTreeSet<(u64, SessionId)>,
    next_ticket: u64,
}

impl Locks {
    /// Returns the sessions that hold a lock that conflicts, or wait for one in front.
    pub(crate) fn blockers(&self, session: SessionId, target: &Target, mode: Mode) -> Vec<SessionId> {
        let held = self.held.get(target).map_or(&[][..], |held| held);
        let others = held.iter().filter(|held| held.session != session && held.mode.conflicts(mode));
        let mut blockers: Vec<_> = others.map(|held| held.session).collect();
        if !held.iter().any(|held| held.session == session) {
            let is_this =
                |wait: &&Wait| matches!(&wait.what, WaitFor::Lock(t, m) if t == target && *m == mode);
            let ticket = self.waits.get(&session).filter(is_this).map_or(u64::MAX, |wait| wait.ticket);
            let in_front = self.waits.iter().filter(|(other, wait)| {
                let is_for = matches!(&wait.what, WaitFor::Lock(t, m) if t == target && m.conflicts(mode));
                **other != session && wait.ticket < ticket && is_for
            });
            blockers.extend(in_front.map(|(other, _)| *other));
        }
        blockers.sort_unstable();
        blockers.dedup();
        blockers
    }

    /// Returns whether the session's transaction has the lock.
    pub(crate) fn holds(&self, session: SessionId, target: &Target, mode: Mode) -> bool {
        let held = self.held.get(target).map_or(&[][..], |held| held);
        held.iter().any(|held| held.session == session && held.mode == mode && held.in_transaction > 0)
    }

    /// Takes a lock that nothing blocks; returns whether the session did not have it.
    pub(crate) fn take(&mut self, session: SessionId, target: Target, mode: Mode, until: Until) -> bool {
        let held = self.held.entry(target).or_default();
        let place = held.iter().position(|held| held.session == session && held.mode == mode);
        let place = place.unwrap_or_else(|| {
            held.push(Held { session, mode, in_transaction: 0, in_session: 0 });
            held.len() - 1
        });
        let Some(held) = held.get_mut(place) else { return false };
        let count = match until {
            Until::Transaction => &mut held.in_transaction,
            Until::Session => &mut held.in_session,
        };
        *count += 1;
        held.in_transaction + held.in_session == 1
    }

    /// Gives back one count of a lock; returns whether the session had it.
    pub(crate) fn give(&mut self, session: SessionId, target: &Target, mode: Mode, until: Until) -> bool {
        let Some(holders) = self.held.get_mut(target) else { return false };
        let own = holders.iter_mut().find(|held| held.session == session && held.mode == mode);
        let count = own.map(|held| match until {
            Until::Transaction => &mut held.in_transaction,
            Until::Session => &mut held.in_session,
        });
        let Some(count) = count.filter(|count| **count > 0) else { return false };
        *count -= 1;
        holders.retain(|held| held.in_transaction + held.in_session > 0);
        if holders.is_empty() {
            self.held.remove(target);
        }
        self.wake(session);
        true
    }

    /// Gives back the session's advisory locks that outlive transactions.
    pub(crate) fn give_advisory(&mut self, session: SessionId) {
        for held in self.held.values_mut().flatten().filter(|held| held.session == session) {
            held.in_session = 0;
        }
        self.forget_free(session);
    }

    fn forget_free(&mut self, session: SessionId) {
        self.held.retain(|_, holders| {
            holders.retain(|held| held.in_transaction + held.in_session > 0);
            !holders.is_empty()
        });
        self.wake(session);
    }

    /// Gives back all locks of the session's transaction.
    pub(crate) fn end_transaction(&mut self, session: SessionId) {
        for held in self.held.values_mut().flatten().filter(|held| held.session == session) {
            held.in_transaction = 0;
        }
        self.rows.retain(|_, holders| {
            holders.retain(|(holder, _)| *holder != session);
            !holders.is_empty()
        });
        self.forget_free(session);
    }

    /// Returns the other sessions whose locks on the row conflict.
    pub(crate) fn row_blockers(
        &self,
        session: SessionId,
        row: (TableId, RowId),
        mode: RowMode,
    ) -> Vec<SessionId> {
        let holders = self.rows.get(&row).map_or(&[][..], |holders| holders);
        let others = holders.iter().filter(|(holder, held)| *holder != session && held.conflicts(mode));
        others.map(|(holder, _)| *holder).collect()
    }

    /// Takes a lock on a row; returns whether it is new.
    pub(crate) fn take_row(&mut self, session: SessionId, row: (TableId, RowId), mode: RowMode) -> bool {
        let holders = self.rows.entry(row).or_default();
        let has = holders.iter().any(|(holder, held)| *holder == session && *held >= mode);
        if !has {
            holders.push((session, mode));
        }
        !has
    }

    /// Gives back a lock on a row: its savepoint is rolled back.
    pub(crate) fn give_row(&mut self, session: SessionId, row: (TableId, RowId), mode: RowMode) {
        if let Some(holders) = self.rows.get_mut(&row) {
            holders.retain(|held| *held != (session, mode));
            if holders.is_empty() {
                self.rows.remove(&row);
            }
        }
        self.wake(session);
    }

    /// Makes a session wait; one that waits for the same already keeps its place.
    pub(crate) fn wait(&mut self, session: SessionId, on: Vec<SessionId>, what: WaitFor) {
        let ticket = self.waits.get(&session).filter(|wait| wait.what == what).map(|wait| wait.ticket);
        let ticket = ticket.unwrap_or_else(|| {
            self.next_ticket += 1;
            self.next_ticket
        });
        self.waits.insert(session, Wait { ticket, on, what });
    }

    /// Ends the wait of a session, if there is one: those behind it may go on.
    pub(crate) fn end_wait(&mut self, session: SessionId) {
        if let Some(wait) = self.waits.remove(&session) {
            self.woken.remove(&(wait.ticket, session));
            self.wake(session);
        }
    }

    /// Wakes the sessions that wait for the given one.
    pub(crate) fn wake(&mut self, session: SessionId) {
        for (waiter, wait) in &self.waits {
            if wait.on.contains(&session) {
                self.woken.insert((wait.ticket, *waiter));
            }
        }
    }

    /// Returns the sessions that are to go on, each with its ticket.
    pub(crate) fn woken(&self) -> BTreeSet<(u64, SessionId)> {
        self.woken.clone()
    }

    /// Lets only these sessions go on: [`Locks::woken`] returned them earlier.
    pub(crate) fn wake_only(&mut self, woken: BTreeSet<(u64, SessionId)>) {
        self.woken = woken;
    }

    pub(crate) fn take_woken(&mut self) -> Vec<SessionId> {
        std::mem::take(&mut self.woken).into_iter().map(|(_, session)| session).collect()
    }

    pub(crate) fn is_waiting(&self, session: SessionId) -> bool {
        self.waits.contains_key(&session)
    }

    pub(crate) fn wait_of(&self, session: SessionId) -> Option<&Wait> {
        self.waits.get(&session)
    }

    /// Returns the circle of waits that leads from a session back to it.
    pub(crate) fn circle(&self, session: SessionId) -> Option<Vec<SessionId>> {
        let mut seen = BTreeSet::new();
        let mut paths = vec![vec![session]];
        while let Some(path) = paths.pop() {
            let last = path.last().and_then(|last| self.waits.get(last));
            for next in last.iter().flat_map(|wait| wait.on.iter().rev()) {
                if *next == session {
                    return Some(path);
                }
                if seen.insert(*next) {
                    paths.push(path.iter().copied().chain([*next]).collect());
                }
            }
        }
        None
    }
}

/// Returns the words of a deadlock's message for a lock; transactions are named by their numbers.
pub(crate) fn in_words(what: &WaitFor, transaction: u64) -> String {
    const DATABASE: u32 = 5;
    match what {
        WaitFor::Row(_) => format!("ShareLock on transaction {transaction}"),
        WaitFor::Lock(Target::Table(table), mode) => {
            format!("{} on relation {} of database {DATABASE}", mode.name(), table.0)
        }
        WaitFor::Lock(Target::Advisory(high, low, kind), mode) => {
            format!("{} on advisory lock [{DATABASE},{high},{low},{kind}]", mode.name())
        }
        WaitFor::Lock(Target::Name(_), _) => format!("ShareLock on transaction {transaction}"),
    }
}
