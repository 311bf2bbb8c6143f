//! The simple protocol: statements in one text, which share an implicit transaction.

use std::sync::Arc;

use sql::{Database, Parsed, SqlError, Step, Value};
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection::{Connection, End, Failure};
use super::control::Control;
use super::core::Statement;
use crate::world::machine::Machine;

impl<M: Machine, S: AsyncRead + AsyncWrite + Unpin> Connection<'_, M, S> {
    /// Runs the statements of a text, up to the first that fails.
    pub(super) async fn query(&mut self, sql: &str) -> Result<(), End> {
        // The portal and the statement without a name end with a query.
        self.objects.portals.remove("");
        self.objects.statements.remove("");
        match Database::statements(sql) {
            Ok(statements) if statements.is_empty() => {
                self.output.plain(b'I');
                if let Err(error) = self.commit() {
                    self.error(error).await?;
                }
            }
            Ok(statements) => match self.run_all(&statements, &Control::all(sql)).await {
                Ok(()) => {}
                Err(Failure::Statement(error)) => {
                    self.error(error).await?;
                    // Ends the implicit transaction, which has failed.
                    let _ = self.commit();
                }
                Err(Failure::Connection(end)) => return Err(end),
            },
            Err(error) => {
                let error = self.failed(error);
                self.error(error).await?;
                let _ = self.commit();
            }
        }
        self.ready().await
    }

    async fn run_all(&mut self, statements: &[Parsed], controls: &[Control]) -> Result<(), Failure> {
        for (number, parsed) in statements.iter().enumerate() {
            let tag = self.run_one(parsed, controls.get(number).unwrap_or(&Control::Other)).await?;
            // The last statement is complete when its transaction is.
            if number + 1 == statements.len() {
                self.commit()?;
            }
            self.output.complete(&tag);
        }
        Ok(())
    }

    /// Runs a statement and adds its rows. Returns its command tag.
    async fn run_one(&mut self, parsed: &Parsed, control: &Control) -> Result<String, Failure> {
        let id = self.session()?;
        let prepared = self.server.act(id, |core, _| core.database.prepare_parsed(id, parsed, &[]))?;
        if !prepared.parameters.is_empty() {
            return Err(self.failed(SqlError::new("42P02", "there is no parameter $1")).into());
        }
        let prepared = Arc::new(prepared);
        let statement = Statement { prepared: Arc::clone(&prepared), values: Arc::from([]) };
        let (tag, rows) = self.result(statement, control).await?;
        if let Some(columns) = &prepared.columns {
            self.output.columns(columns, |_| 0);
        }
        for row in &rows {
            let values = row.iter().map(|value| value.text().map(String::into_bytes));
            self.output.row(&values.collect::<Vec<_>>());
        }
        Ok(tag)
    }

    /// Runs a statement, and sends its notices. Returns its command tag and its rows.
    pub(super) async fn result(
        &mut self,
        statement: Statement,
        control: &Control,
    ) -> Result<(String, Vec<Vec<Value>>), Failure> {
        match self.run(statement).await? {
            Step::Done { tag, rows, notices } => {
                notices.iter().for_each(|notice| self.output.report(b'N', notice));
                if !notices.is_empty() {
                    self.send().await?;
                }
                // Other statements can't change what the client knows.
                self.may_have_set |= ["SET", "RESET", "DISCARD", "COMMIT", "ROLLBACK"]
                    .iter()
                    .any(|word| tag.starts_with(word));
                self.objects.apply(control, &tag).map_err(|error| self.failed(error))?;
                match control {
                    Control::Deallocate(None) => Ok(("DEALLOCATE ALL".to_owned(), rows)),
                    _ => Ok((tag, rows)),
                }
            }
            Step::Failed(error) => {
                self.may_have_set = true;
                Err(error.into())
            }
            // `run` waits for these.
            Step::Blocked { .. } | Step::Sleeping { .. } => Err(End::Left.into()),
        }
    }
}
