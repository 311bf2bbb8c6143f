//! Applying the write-ahead log to a new database.

use std::sync::Arc;

use super::Database;
use crate::api::{Now, SessionId, Step};
use crate::error::SqlError;
use crate::exec::run::Run;
use crate::log::{Change, Record, Relation};
use crate::storage::rows::Actor;
use crate::storage::table::{RowId, TableId, Version, VersionId};
use crate::storage::transaction::Stamp;
use crate::syntax::parse::statements;
use crate::value::Value;

fn unfit(what: &str) -> SqlError {
    SqlError::new("XX000", format!("the log does not fit: {what}; replay all records, in their order"))
}

impl Database {
    /// Applies the records of the log, in their order, to a new database.
    ///
    /// # Errors
    ///
    /// XX000 for a record that does not fit to the ones before.
    pub fn replay(&mut self, records: &[Record]) -> Result<(), SqlError> {
        let session = self.connect();
        for record in records {
            let written = self.store.log.len();
            for change in &record.changes {
                self.ensure_transaction(session, Now { unix_micros: 0 });
                self.replay_change(session, change)?;
            }
            self.commit(session)?;
            self.store.log.truncate(written);
        }
        self.disconnect(session);
        Ok(())
    }

    fn replay_change(&mut self, session: SessionId, change: &Change) -> Result<(), SqlError> {
        match change {
            Change::Ddl { sql, search_path, unix_micros } => {
                self.set(session, "search_path", search_path)?;
                let now = Now { unix_micros: *unix_micros };
                if let Some(session) = self.sessions.get_mut(&session) {
                    session.transaction_micros = *unix_micros;
                }
                for parsed in statements(sql)? {
                    let prepared = self.prepare_parsed(session, &parsed, &[])?;
                    match self.run(session, &prepared, &[], now) {
                        Step::Done { .. } => {}
                        Step::Failed(error) => return Err(error),
                        _ => return Err(unfit("a statement waits")),
                    }
                }
                Ok(())
            }
            Change::Insert { table, version, row, values } => {
                self.replay_insert(session, table, *version, *row, values)
            }
            Change::Delete { table, version, .. } => {
                let id = self.replayed_table(session, table)?;
                if let Some(found) = self.store.tables.get_mut(&id) {
                    found.remove(VersionId(*version));
                }
                Ok(())
            }
            Change::Sequence { name, last, is_called } => {
                let parts = [name.schema.clone(), name.name.clone()];
                let id = self.store.sequence_named(&self.viewer(session), &parts);
                // A sequence that no commit has created is left out: its values went to nobody.
                if let Some(sequence) = id.and_then(|id| self.store.sequences.get_mut(&id)) {
                    (sequence.last, sequence.is_called, sequence.ahead) = (*last, *is_called, 0);
                }
                Ok(())
            }
        }
    }

    fn replayed_table(&self, session: SessionId, table: &Relation) -> Result<TableId, SqlError> {
        let parts = [table.schema.clone(), table.name.clone()];
        let found = self.store.table_named(&self.viewer(session), &parts).map(|(id, _)| id);
        found.ok_or_else(|| unfit(&format!("there is no table {}", parts.join("."))))
    }

    fn replay_insert(
        &mut self,
        id: SessionId,
        table: &Relation,
        version: u64,
        row: u64,
        texts: &[Option<String>],
    ) -> Result<(), SqlError> {
        let table = self.replayed_table(id, table)?;
        let def = self.store.tables.get(&table).map(|table| Arc::clone(&table.def)).unwrap_or_default();
        let values = def.columns.iter().zip(texts).map(|(column, text)| {
            text.as_ref().map_or(Ok(Value::Null), |text| Value::parse(column.r#type.r#type, text))
        });
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let snapshot = self.store.latest(id).ok_or_else(|| unfit("no transaction"))?;
        let Some(session) = self.sessions.get_mut(&id) else { return Ok(()) };
        let actor = Actor { session: id, snapshot, is_repeatable: false };
        let mut run = Run::new(&mut self.store, session, actor, &[], &[]);
        let whole = Version {
            row: RowId(row),
            created: Stamp::At(0),
            deleted: None,
            next: None,
            values: Arc::from(values),
        };
        let full = run.store.tables.get(&table).map(|found| found.values(&whole)).unwrap_or_default();
        let covered = run.covered(table, &full).map_err(|_| unfit("an index"))?;
        self.store.next_version = self.store.next_version.max(version);
        self.store.next_row = self.store.next_row.max(row);
        if let Some(found) = self.store.tables.get_mut(&table) {
            found.add(VersionId(version), whole, &covered);
        }
        Ok(())
    }
}
