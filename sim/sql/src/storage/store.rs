//! The store: all tables, sequences and transactions.

use std::collections::{BTreeMap, VecDeque};

use super::lock::{Locks, Mode, Target, Until, WaitFor};
use super::sequence::Sequence;
use super::serial::Serial;
use super::stop::Stop;
use super::table::{Entries, Table, TableDef, TableId, VersionId};
use super::transaction::{Isolation, Snapshot, Stamp, Transaction, Undo, Xid};
use crate::api::SessionId;
use crate::error::SqlError;
use crate::log::{Change, Record, Relation};

/// The object identifier before the first that a user makes.
const LAST_SYSTEM_OID: u32 = 16_383;
/// The number of a transaction that clients see, before the first.
const LAST_NUMBER: u64 = 730;

/// Tables, sequences, schemas, transactions and locks.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) tables: BTreeMap<TableId, Table>,
    pub(crate) sequences: BTreeMap<TableId, Sequence>,
    /// The schemas, with the transaction that creates or drops one.
    pub(crate) schemas: BTreeMap<String, (Option<Xid>, Option<Xid>)>,
    pub(crate) locks: Locks,
    pub(crate) serial: Serial,
    pub(crate) transactions: BTreeMap<SessionId, Transaction>,
    pub(crate) open: BTreeMap<Xid, SessionId>,
    /// The snapshots of statements that wait.
    pub(crate) pinned: BTreeMap<SessionId, u64>,
    pub(crate) log: Vec<Record>,
    pub(crate) next_row: u64,
    pub(crate) next_version: u64,
    /// Grows with each change of the catalog, also by those that are rolled back.
    pub(crate) catalog_version: u64,
    last_commit: u64,
    last_xid: u64,
    last_number: u64,
    last_oid: u32,
    /// Versions that a commit has ended.
    dead: VecDeque<(u64, TableId, VersionId)>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            tables: BTreeMap::new(),
            sequences: BTreeMap::new(),
            schemas: [("public".to_owned(), (None, None))].into(),
            locks: Locks::default(),
            serial: Serial::default(),
            transactions: BTreeMap::new(),
            open: BTreeMap::new(),
            pinned: BTreeMap::new(),
            log: Vec::new(),
            next_row: 0,
            catalog_version: 0,
            next_version: 0,
            last_commit: 0,
            last_xid: 0,
            last_number: LAST_NUMBER,
            last_oid: LAST_SYSTEM_OID,
            dead: VecDeque::new(),
        }
    }
}

impl Store {
    pub(crate) fn next_oid(&mut self) -> TableId {
        self.last_oid += 1;
        TableId(self.last_oid)
    }

    pub(crate) fn begin(&mut self, session: SessionId, isolation: Isolation, is_read_only: bool) {
        self.last_xid += 1;
        let xid = Xid(self.last_xid);
        self.open.insert(xid, session);
        let transaction = Transaction {
            xid,
            number: None,
            isolation,
            is_read_only,
            command: 0,
            snapshot: None,
            undo: Vec::new(),
            ddl: Vec::new(),
        };
        self.transactions.insert(session, transaction);
    }

    /// Takes the snapshot that all statements of a transaction share, if they do: the first one takes it
    /// before it waits for a table.
    pub(crate) fn fix_snapshot(&mut self, session: SessionId) {
        let Some(transaction) = self.transactions.get_mut(&session) else { return };
        if transaction.isolation.has_one_snapshot() && transaction.snapshot.is_none() {
            transaction.snapshot = Some(self.last_commit);
            if transaction.isolation == Isolation::Serializable {
                self.serial.begin(transaction.xid, self.last_commit, transaction.is_read_only);
            }
        }
    }

    /// Returns the snapshot of the next command.
    pub(crate) fn next_command(&mut self, session: SessionId) -> Option<Snapshot> {
        self.fix_snapshot(session);
        let transaction = self.transactions.get_mut(&session)?;
        transaction.command += 1;
        let commit = transaction.snapshot.unwrap_or(self.last_commit);
        Some(Snapshot { commit, xid: transaction.xid, command: transaction.command })
    }

    /// Returns the snapshot that sees all that is committed, and all that the transaction did.
    pub(crate) fn latest(&self, session: SessionId) -> Option<Snapshot> {
        let transaction = self.transactions.get(&session)?;
        Some(Snapshot { commit: self.last_commit, xid: transaction.xid, command: u32::MAX })
    }

    /// Returns the transaction's number as clients see it; it gets one if it has none.
    pub(crate) fn number_of(&mut self, session: SessionId) -> u64 {
        let last = &mut self.last_number;
        self.transactions.get_mut(&session).map_or(0, |transaction| {
            *transaction.number.get_or_insert_with(|| {
                *last += 1;
                *last
            })
        })
    }

    pub(crate) fn push_undo(&mut self, session: SessionId, undo: Undo) {
        if let Some(transaction) = self.transactions.get_mut(&session) {
            transaction.undo.push(undo);
        }
    }

    /// Takes a lock for the transaction or the session, or says who is in the way.
    pub(crate) fn lock(
        &mut self,
        session: SessionId,
        target: Target,
        mode: Mode,
        until: Until,
    ) -> Result<(), Stop> {
        if until == Until::Transaction && self.locks.holds(session, &target, mode) {
            return Ok(());
        }
        let blockers = self.locks.blockers(session, &target, mode);
        if !blockers.is_empty() {
            return Err(Stop::Wait { on: blockers, what: WaitFor::Lock(target, mode) });
        }
        self.locks.take(session, target.clone(), mode, until);
        if until == Until::Transaction {
            self.push_undo(session, Undo::Lock(target, mode));
        }
        Ok(())
    }

    /// Takes back the changes after the first `len`.
    pub(crate) fn undo_to(&mut self, session: SessionId, len: usize) {
        let Some(transaction) = self.transactions.get_mut(&session) else { return };
        transaction.ddl.retain(|(place, _)| *place < len);
        let undone = transaction.undo.split_off(len.min(transaction.undo.len()));
        for undo in undone.into_iter().rev() {
            self.undo(session, undo);
        }
    }

    fn undo(&mut self, session: SessionId, undo: Undo) {
        self.catalog_version += u64::from(undo.is_of_catalog());
        match undo {
            Undo::Insert(table, version) => {
                if let Some(table) = self.tables.get_mut(&table) {
                    table.remove(version);
                }
                // Others may wait to learn whether the row stays.
                self.locks.wake(session);
            }
            Undo::Delete(table, version) => {
                let versions = self.tables.get_mut(&table).map(|table| &mut table.data.versions);
                if let Some(version) = versions.and_then(|versions| versions.get_mut(&version)) {
                    (version.deleted, version.next) = (None, None);
                }
                self.locks.wake(session);
            }
            Undo::RowLock(table, row, mode) => self.locks.give_row(session, (table, row), mode),
            Undo::Lock(target, mode) => {
                self.locks.give(session, &target, mode, Until::Transaction);
            }
            Undo::CreateTable(id) => {
                self.tables.remove(&id);
            }
            Undo::DropTable(id) => {
                if let Some(table) = self.tables.get_mut(&id) {
                    table.dropped_by = None;
                }
            }
            Undo::AlterTable(id, def, data) => {
                if let Some(table) = self.tables.get_mut(&id) {
                    table.restore(def, *data);
                }
            }
            Undo::CreateSequence(id) => {
                self.sequences.remove(&id);
            }
            Undo::DropSequence(id) => {
                if let Some(sequence) = self.sequences.get_mut(&id) {
                    sequence.dropped_by = None;
                }
            }
            Undo::AlterSequence(id, sequence) => {
                self.sequences.insert(id, *sequence);
            }
            Undo::CreateSchema(name) => {
                self.schemas.remove(&name);
            }
            Undo::DropSchema(name) => {
                if let Some((_, dropped_by)) = self.schemas.get_mut(&name) {
                    *dropped_by = None;
                }
            }
        }
    }

    /// Rolls the session's transaction back.
    pub(crate) fn abort(&mut self, session: SessionId) {
        self.undo_to(session, 0);
        if let Some(transaction) = self.transactions.remove(&session) {
            self.open.remove(&transaction.xid);
            self.serial.abort(transaction.xid);
        }
        self.pinned.remove(&session);
        self.locks.end_transaction(session);
    }

    /// Commits the session's transaction.
    ///
    /// # Errors
    ///
    /// 40001 for a conflict of serializable transactions: the caller rolls it back.
    pub(crate) fn commit(&mut self, session: SessionId) -> Result<(), SqlError> {
        let Some(xid) = self.transactions.get(&session).map(|transaction| transaction.xid) else {
            return Ok(());
        };
        self.serial.before_commit(xid)?;
        let Some(transaction) = self.transactions.remove(&session) else { return Ok(()) };
        self.last_commit += 1;
        let mut changes = Vec::new();
        let names = former_names(&transaction.undo);
        let mut ddl = transaction.ddl.into_iter().peekable();
        for (place, undo) in transaction.undo.into_iter().enumerate() {
            while let Some((_, ddl)) = ddl.next_if(|(before, _)| *before <= place) {
                let (sql, search_path) = (ddl.sql, ddl.search_path);
                changes.push(Change::Ddl { sql, search_path, unix_micros: ddl.unix_micros });
            }
            changes.extend(self.keep(place, undo, &names));
        }
        if !changes.is_empty() {
            self.log.push(Record { changes });
        }
        self.open.remove(&xid);
        self.serial.commit(xid, self.last_commit);
        self.pinned.remove(&session);
        self.locks.end_transaction(session);
        self.remove_dead();
        Ok(())
    }

    /// Makes one change part of the last commit; returns it for the log.
    fn keep(&mut self, place: usize, undo: Undo, names: &FormerNames) -> Option<Change> {
        let stamp = Stamp::At(self.last_commit);
        self.catalog_version += u64::from(undo.is_of_catalog());
        match undo {
            Undo::Insert(id, version_id) => {
                let table = self.tables.get_mut(&id)?;
                let relation = relation_at(names, place, id, &table.def);
                let version = table.data.versions.get_mut(&version_id)?;
                version.created = stamp;
                let values = version.values.iter().map(crate::value::Value::text).collect();
                let (version, row) = (version_id.0, version.row.0);
                Some(Change::Insert { table: relation, version, row, values })
            }
            Undo::Delete(id, version_id) => {
                let table = self.tables.get_mut(&id)?;
                let relation = relation_at(names, place, id, &table.def);
                let version = table.data.versions.get_mut(&version_id)?;
                version.deleted = Some(stamp);
                self.dead.push_back((self.last_commit, id, version_id));
                let next = version.next.map(|next| next.0);
                Some(Change::Delete { table: relation, version: version_id.0, next })
            }
            Undo::CreateTable(id) => {
                self.tables.get_mut(&id)?.created_by = None;
                None
            }
            Undo::DropTable(id) => {
                self.tables.remove(&id);
                None
            }
            Undo::CreateSequence(id) => {
                let sequence = self.sequences.get_mut(&id)?;
                sequence.created_by = None;
                let is_new = !sequence.is_called && sequence.last == sequence.start;
                if is_new { None } else { self.sequence_change(id) }
            }
            Undo::DropSequence(id) => {
                self.sequences.remove(&id);
                None
            }
            Undo::CreateSchema(name) => {
                self.schemas.insert(name, (None, None));
                None
            }
            Undo::DropSchema(name) => {
                self.schemas.remove(&name);
                None
            }
            Undo::AlterTable(id, ..) => {
                self.tables.get_mut(&id)?.renamed = None;
                None
            }
            Undo::AlterSequence(id, _) => {
                self.sequences.get_mut(&id)?.reset_by = None;
                self.sequence_change(id)
            }
            Undo::RowLock(..) | Undo::Lock(..) => None,
        }
    }

    /// Returns the record of a sequence's last value, with those that are taken ahead.
    pub(crate) fn sequence_change(&self, id: TableId) -> Option<Change> {
        let sequence = self.sequences.get(&id)?;
        let name = Relation { schema: sequence.schema.clone(), name: sequence.name.clone() };
        let last = sequence.last.saturating_add(sequence.ahead.saturating_mul(sequence.increment));
        Some(Change::Sequence { name, last, is_called: sequence.is_called })
    }

    /// Writes the last value of a sequence to the log, at once: sequences are not transactional. One that
    /// the open transaction has made or set back is written by its commit: before it, the log has the
    /// sequence of everybody else, which a crash or a rollback brings back.
    pub(crate) fn log_sequence(&mut self, id: TableId) {
        let is_private = |sequence: &Sequence| sequence.created_by.is_some() || sequence.reset_by.is_some();
        if self.sequences.get(&id).is_some_and(is_private) {
            return;
        }
        if let Some(change) = self.sequence_change(id) {
            self.log.push(Record { changes: vec![change] });
        }
    }

    /// Removes versions that no snapshot sees.
    fn remove_dead(&mut self) {
        let snapshots = self.transactions.values().filter_map(|transaction| transaction.snapshot);
        let oldest = snapshots.chain(self.pinned.values().copied()).min().unwrap_or(self.last_commit);
        while let Some((commit, table, version)) = self.dead.front().copied() {
            if commit > oldest {
                break;
            }
            self.dead.pop_front();
            if let Some(table) = self.tables.get_mut(&table) {
                table.remove(version);
            }
        }
    }

    /// Makes room for the entries of all indexes of a table.
    pub(crate) fn add_index(&mut self, table: TableId) {
        if let Some(table) = self.tables.get_mut(&table) {
            table.data.entries.resize(table.def.indexes.len(), Entries::default());
        }
    }
}

/// The definitions that a transaction has replaced, each with the place of the change in its list.
type FormerNames = BTreeMap<TableId, Vec<(usize, Relation)>>;

fn relation(def: &TableDef) -> Relation {
    Relation { schema: def.schema.clone(), name: def.name.clone() }
}

fn former_names(undo: &[Undo]) -> FormerNames {
    let mut names = FormerNames::new();
    for (place, undo) in undo.iter().enumerate() {
        if let Undo::AlterTable(id, before, _) = undo {
            names.entry(*id).or_default().push((place, relation(before)));
        }
    }
    names
}

/// Returns the name that a table had when the change at a place was made: a replay knows it by that name,
/// whatever the transaction has called it since.
fn relation_at(names: &FormerNames, place: usize, id: TableId, now: &TableDef) -> Relation {
    let later = names.get(&id).and_then(|names| names.iter().find(|(altered, _)| *altered > place));
    later.map_or_else(|| relation(now), |(_, former)| former.clone())
}
