//! The extended protocol: prepared statements, and portals that return their rows in parts.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use dlock_runtime::{probes, reached, sometimes};
use sql::{SqlError, Type, Value};
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection::{Connection, Failure};
use super::core::Statement;
use super::frontend::{Frontend, Target};
use super::portal::{Portal, State};
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
                    Target::Statement(name) => drop(self.statements.remove(&name)),
                    Target::Portal(name) => drop(self.portals.remove(&name)),
                }
                self.output.plain(b'3');
                Ok(())
            }
            Frontend::Execute { portal, limit } => {
                // The portal is not there while it runs: a statement may end all portals.
                let name = portal;
                let Some(mut portal) = self.portals.remove(&name) else { return Err(self.no_portal(&name)) };
                self.execute(&name, &mut portal, limit).await?;
                self.portals.insert(name, portal);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn parse(&mut self, name: String, sql: &str, types: &[u32]) -> Result<(), Failure> {
        let id = self.session()?;
        if !name.is_empty() && self.statements.contains_key(&name) {
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
        self.statements.insert(name, Arc::new(prepared));
        self.output.plain(b'1');
        Ok(())
    }

    fn bind(&mut self, name: String, binding: Binding) -> Result<(), Failure> {
        let Some(prepared) = self.statements.get(&binding.statement).cloned() else {
            return Err(self.no_statement(&binding.statement));
        };
        if !name.is_empty() && self.portals.contains_key(&name) {
            let problem = format!("cursor \"{name}\" already exists");
            return Err(self.failed(SqlError::new("42P03", problem)).into());
        }
        let values = check(&binding, &prepared.parameters, prepared.columns.as_ref().map_or(0, Vec::len))
            .and_then(|()| values(&binding, &prepared.parameters));
        let values = values.map_err(|error| self.failed(error))?;
        let statement = Statement { prepared, values: values.into() };
        self.portals.insert(name, Portal { statement, formats: binding.results, state: State::Bound });
        self.output.plain(b'2');
        Ok(())
    }

    fn describe(&mut self, target: &Target) -> Result<(), Failure> {
        let (prepared, formats) = match target {
            Target::Statement(name) => {
                let Some(prepared) = self.statements.get(name).cloned() else {
                    return Err(self.no_statement(name));
                };
                let types: Vec<u32> = prepared.parameters.iter().map(|r#type| r#type.oid()).collect();
                self.output.parameters(&types);
                (prepared, Vec::new())
            }
            Target::Portal(name) => {
                let Some(portal) = self.portals.get(name) else { return Err(self.no_portal(name)) };
                (Arc::clone(&portal.statement.prepared), portal.formats.clone())
            }
        };
        match &prepared.columns {
            Some(columns) => self.output.columns(columns, |number| value::format(&formats, number)),
            None => self.output.plain(b'n'),
        }
        Ok(())
    }

    /// Runs the portal if it has not run, and returns `limit` of its rows, or all for 0.
    async fn execute(&mut self, name: &str, portal: &mut Portal, limit: u32) -> Result<(), Failure> {
        let prepared = Arc::clone(&portal.statement.prepared);
        if prepared.is_empty() {
            self.output.plain(b'I');
            return Ok(());
        }
        let (mut rows, tag) = match std::mem::replace(&mut portal.state, State::Over { is_select: false }) {
            State::Bound => {
                let (tag, rows) = self.result(portal.statement.clone()).await?;
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
        let columns = prepared.columns.as_deref().unwrap_or_default();
        for row in rows.drain(..count) {
            let encode = |(number, value): (usize, &Value)| {
                let r#type = columns.get(number).map_or(Type::Unknown, |column| column.r#type);
                value::encode(value, r#type, value::format(&portal.formats, number))
            };
            let row: Result<Vec<_>, _> = row.iter().enumerate().map(encode).collect();
            self.output.row(&row.map_err(|error| self.failed(error))?);
        }
        // PostgreSQL does not look beyond the limit, so a portal with exactly as many rows is not at its end.
        if limit > 0 && prepared.columns.is_some() && u32::try_from(count) == Ok(limit) {
            sometimes!(self.server.machine(), portal_suspended, !rows.is_empty());
            portal.state = State::Run { rows, tag };
            self.output.plain(b's');
            return Ok(());
        }
        let is_select = tag.starts_with("SELECT ");
        portal.state = State::Over { is_select };
        match is_select {
            true => self.output.complete(&format!("SELECT {count}")),
            false => self.output.complete(&tag),
        }
        Ok(())
    }

    fn no_statement(&self, name: &str) -> Failure {
        let problem = match name {
            "" => "unnamed prepared statement does not exist".to_owned(),
            name => format!("prepared statement \"{name}\" does not exist"),
        };
        self.failed(SqlError::new("26000", problem)).into()
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
