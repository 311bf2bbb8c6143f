//! The extended protocol: prepared statements, and portals that return their rows in parts.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use dlock_runtime::{probes, reached, sometimes};
use sql::{Prepared, SqlError, TransactionStatus, Type, Value};
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection::{Connection, Failure, aborted};
use super::control::Control;
use super::core::Statement;
use super::frontend::{Frontend, Target};
use super::portal::{Known, Portal, State, no_statement};
use super::value;
use crate::world::machine::Machine;

/// The contents of a Bind message beside its portal.
struct Binding {
    statement: String,
    formats: Vec<i16>,
    values: Vec<Option<Bytes>>,
    results: Vec<i16>,
}

impl<M: Machine, S: AsyncRead + AsyncWrite + Unpin> Connection<'_, M, S> {
    /// Handles a message of the extended protocol but Flush and Sync. After an error all messages up to the
    /// next Sync are to be ignored.
    pub(super) async fn extended(&mut self, message: Frontend) -> Result<(), Failure> {
        match message {
            Frontend::Parse { statement, sql, types } => self.parse(statement, &sql, &types),
            Frontend::Bind { portal, statement, formats, values, results } => {
                self.bind(portal, Binding { statement, formats, values, results })
            }
            Frontend::Describe(target) => self.describe(&target),
            Frontend::Close(target) => {
                match target {
                    Target::Statement(name) => drop(self.objects.statements.remove(&name)),
                    Target::Portal(name) => drop(self.objects.portals.remove(&name)),
                }
                self.output.plain(b'3');
                Ok(())
            }
            Frontend::Execute { portal, limit } => self.execute(&portal, limit).await,
            _ => Ok(()),
        }
    }

    fn parse(&mut self, name: String, sql: &str, types: &[u32]) -> Result<(), Failure> {
        let id = self.session()?;
        if !name.is_empty() && self.objects.statements.contains_key(&name) {
            let problem = format!("prepared statement \"{name}\" already exists");
            return Err(self.failed(SqlError::new("42P05", problem)).into());
        }
        let mut known = Vec::new();
        for oid in types {
            let Some(r#type) = Type::from_oid(*oid) else {
                let unknown = SqlError::unknown(format_args!("the type with the object id {oid}"));
                return Err(self.failed(unknown).into());
            };
            known.push(r#type);
        }
        let prepared = self.server.act(id, |core, _| core.database.prepare(id, sql, &known))?;
        let control = Control::all(sql).into_iter().next().unwrap_or(Control::Other);
        self.objects.statements.insert(name, Known { prepared: Arc::new(prepared), control });
        self.output.plain(b'1');
        Ok(())
    }

    fn bind(&mut self, name: String, binding: Binding) -> Result<(), Failure> {
        let Some(known) = self.objects.statements.get(&binding.statement).cloned() else {
            return Err(self.failed(no_statement(&binding.statement)).into());
        };
        let Known { prepared, control } = known;
        if !name.is_empty() && self.objects.portals.contains_key(&name) {
            let problem = format!("cursor \"{name}\" already exists");
            return Err(self.failed(SqlError::new("42P03", problem)).into());
        }
        let values = check(&binding, &prepared.parameters, prepared.columns.as_ref().map_or(0, Vec::len))
            .and_then(|()| values(&binding, &prepared.parameters));
        let values = values.map_err(|error| self.failed(error))?;
        let statement = Statement { prepared, values: values.into() };
        let (state, depth) = (State::Bound, self.objects.depth());
        let portal = Portal { statement, control, formats: binding.results, state, depth };
        self.objects.portals.insert(name, portal);
        self.output.plain(b'2');
        Ok(())
    }

    fn describe(&mut self, target: &Target) -> Result<(), Failure> {
        let (prepared, formats, has_parameters) = match target {
            Target::Statement(name) => {
                let Some(known) = self.objects.statements.get(name) else {
                    return Err(self.failed(no_statement(name)).into());
                };
                (Arc::clone(&known.prepared), Vec::new(), true)
            }
            Target::Portal(name) => {
                let Some(portal) = self.objects.portals.get(name) else { return Err(self.no_portal(name)) };
                (Arc::clone(&portal.statement.prepared), portal.formats.clone(), false)
            }
        };
        if prepared.columns.is_some() && self.status() == TransactionStatus::Failed {
            return Err(self.failed(aborted()).into());
        }
        if has_parameters {
            let types: Vec<u32> = prepared.parameters.iter().map(|r#type| r#type.oid()).collect();
            self.output.parameters(&types);
        }
        match &prepared.columns {
            Some(columns) => self.output.columns(columns, |number| value::format(&formats, number)),
            None => self.output.plain(b'n'),
        }
        Ok(())
    }

    /// Runs the portal if it has not run, and returns `limit` of its rows, or all for 0.
    async fn execute(&mut self, name: &str, limit: u32) -> Result<(), Failure> {
        let is_failed = self.status() == TransactionStatus::Failed;
        let Some(portal) = self.objects.portals.get_mut(name) else { return Err(self.no_portal(name)) };
        let (statement, control, formats) =
            (portal.statement.clone(), portal.control.clone(), portal.formats.clone());
        let prepared = Arc::clone(&statement.prepared);
        if prepared.is_empty() {
            self.output.plain(b'I');
            return Ok(());
        }
        // The database itself refuses to run a statement in a failed transaction.
        if is_failed && !matches!(portal.state, State::Bound) {
            return Err(self.failed(aborted()).into());
        }
        let (mut rows, tag) = match std::mem::replace(&mut portal.state, State::Over { is_select: false }) {
            State::Bound => {
                let (tag, rows) = self.result(statement, &control).await?;
                (VecDeque::from(rows), tag)
            }
            State::Run { rows, tag } => {
                reached!(self.server.machine(), portal_continued);
                (rows, tag)
            }
            State::Over { is_select: true } => (VecDeque::new(), "SELECT 0".to_owned()),
            State::Over { is_select: false } => {
                let problem = format!("portal \"{name}\" cannot be run");
                return Err(self.failed(SqlError::new("55000", problem)).into());
            }
        };
        let count = match usize::try_from(limit) {
            Ok(limit) if limit > 0 => limit.min(rows.len()),
            _ => rows.len(),
        };
        self.rows(rows.drain(..count), &prepared, &formats)?;
        // PostgreSQL does not look beyond the limit, so a portal with exactly as many rows is not at its end.
        if limit > 0 && prepared.columns.is_some() && u32::try_from(count) == Ok(limit) {
            sometimes!(self.server.machine(), portal_suspended, !rows.is_empty());
            self.leave(name, State::Run { rows, tag });
            self.output.plain(b's');
            return Ok(());
        }
        let is_select = tag.starts_with("SELECT ");
        self.leave(name, State::Over { is_select });
        match is_select {
            true => self.output.complete(&format!("SELECT {count}")),
            false => self.output.complete(&tag),
        }
        Ok(())
    }

    /// Adds the rows of a portal.
    fn rows(
        &mut self,
        rows: impl Iterator<Item = Vec<Value>>,
        prepared: &Prepared,
        formats: &[i16],
    ) -> Result<(), Failure> {
        let columns = prepared.columns.as_deref().unwrap_or_default();
        for row in rows {
            let encode = |(number, value): (usize, &Value)| {
                let r#type = columns.get(number).map_or(Type::Unknown, |column| column.r#type);
                value::encode(value, r#type, value::format(formats, number))
            };
            let row: Result<Vec<_>, _> = row.iter().enumerate().map(encode).collect();
            self.output.row(&row.map_err(|error| self.failed(error))?);
        }
        Ok(())
    }

    /// Leaves a portal in a state, unless its statement has ended it.
    fn leave(&mut self, name: &str, state: State) {
        if let Some(portal) = self.objects.portals.get_mut(name) {
            portal.state = state;
        }
    }

    fn no_portal(&self, name: &str) -> Failure {
        self.failed(SqlError::new("34000", format!("portal \"{name}\" does not exist"))).into()
    }
}

/// Checks the numbers of the parameters and formats.
fn check(binding: &Binding, parameters: &[Type], columns: usize) -> Result<(), SqlError> {
    let Binding { statement, formats, values, results } = binding;
    let (given, needed) = (values.len(), parameters.len());
    let problem = if formats.len() > 1 && formats.len() != given {
        format!("bind message has {} parameter formats but {given} parameters", formats.len())
    } else if given != needed {
        format!(
            "bind message supplies {given} parameters, but prepared statement \"{statement}\" requires \
             {needed}"
        )
    } else if results.len() > 1 && results.len() != columns {
        format!("bind message has {} result formats but query has {columns} columns", results.len())
    } else {
        return Ok(());
    };
    Err(SqlError::new("08P01", problem))
}

fn values(binding: &Binding, parameters: &[Type]) -> Result<Vec<Value>, SqlError> {
    let pairs = binding.values.iter().zip(parameters).enumerate();
    let decode = |(number, (bytes, r#type)): (usize, (&Option<Bytes>, &Type))| match bytes {
        None => Ok(Value::Null),
        Some(bytes) => value::decode(bytes, *r#type, value::format(&binding.formats, number), number + 1),
    };
    pairs.map(decode).collect()
}

probes! {
    /// A portal returned a part of its rows.
    sometimes portal_suspended;
    /// A portal returned further rows.
    reached portal_continued;
}
