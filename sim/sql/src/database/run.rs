//! Running statements that read and change rows or the catalog.

use std::sync::Arc;

use sqlparser::ast::Statement;

use super::{Database, Prepared};
use crate::api::{Now, SessionId, Step};
use crate::error::SqlError;
use crate::exec::run::{Rows, Run};
use crate::plan::expr::{Action, Body, Plan};
use crate::session::{Entry, Pending};
use crate::storage::lock::{Target, Until};
use crate::storage::rows::Actor;
use crate::storage::stop::Stop;
use crate::storage::transaction::{Isolation, Snapshot};
use crate::syntax::parse::{Command, Parsed};
use crate::value::Value;

/// What a statement leaves behind.
struct Outcome {
    result: Result<(String, Rows), Stop>,
    notices: Vec<SqlError>,
    journal: Vec<Entry>,
}

impl Database {
    /// Runs a statement. Outside of a transaction block it runs in an implicit transaction, which lasts until
    /// [`Self::sync`]. After a failure the implicit transaction is rolled back already.
    pub fn run(&mut self, session: SessionId, prepared: &Prepared, parameters: &[Value], now: Now) -> Step {
        let Some(parsed) = &prepared.parsed else {
            return Step::Done { tag: String::new(), rows: Vec::new(), notices: Vec::new() };
        };
        if let Err(error) = self.check_block(session, &parsed.command) {
            return self.failed(session, error);
        }
        if let Some(session) = self.sessions.get_mut(&session) {
            session.is_one_of_several = parsed.is_one_of_several;
        }
        match &parsed.command {
            Command::Utility(utility) => self.utility(session, utility, now),
            Command::Sql(statement) => {
                self.ensure_transaction(session, now);
                match self.statement(session, prepared, parsed, statement, parameters, now) {
                    Ok(step) => step,
                    Err(stop) => self.stopped(session, stop),
                }
            }
        }
    }

    /// Fails the transaction, and reports the error.
    pub(super) fn failed(&mut self, session: SessionId, error: SqlError) -> Step {
        self.fail(session);
        Step::Failed(error)
    }

    /// Turns the end of an attempt into a step.
    pub(super) fn stopped(&mut self, session: SessionId, stop: Stop) -> Step {
        match stop {
            Stop::Error(error) => self.failed(session, error),
            Stop::Wait { on, .. } if on.is_empty() => {
                self.failed(session, SqlError::new("XX000", "a wait for nobody"))
            }
            Stop::Wait { on, what } => {
                self.store.number_of(session);
                self.store.locks.wait(session, on.clone(), what);
                Step::Blocked { on }
            }
            Stop::Sleep { until } => {
                self.store.locks.end_wait(session);
                Step::Sleeping { until: Now { unix_micros: until } }
            }
        }
    }

    fn statement(
        &mut self,
        session: SessionId,
        prepared: &Prepared,
        parsed: &Parsed,
        statement: &Arc<Statement>,
        parameters: &[Value],
        now: Now,
    ) -> Result<Step, Stop> {
        let plan = self.plan_of(session, prepared, parsed, statement)?;
        let plan = plan.as_deref();
        if let Some(plan) = plan {
            check_columns(prepared, plan)?;
            self.store.fix_snapshot(session);
            for (table, mode) in &plan.tables {
                self.store.lock(session, Target::Table(*table), *mode, Until::Transaction)?;
            }
        }
        self.check_writes(session, plan, statement)?;
        let mut pending = self.sessions.get_mut(&session).and_then(|session| session.pending.take());
        let pending = pending
            .get_or_insert_with(|| Pending { statement_micros: now.unix_micros, ..Pending::default() });
        let snapshot = match pending.snapshot {
            Some(snapshot) => snapshot,
            None => {
                self.store.next_command(session).ok_or_else(|| SqlError::new("XX000", "no transaction"))?
            }
        };
        let start = self.store.transactions.get(&session).map_or(0, |transaction| transaction.undo.len());
        let outcome = self.attempt(session, snapshot, pending, plan, parsed, parameters, now);
        match outcome.result {
            Ok((tag, rows)) => {
                self.store.locks.end_wait(session);
                self.store.pinned.remove(&session);
                Ok(Step::Done { tag, rows, notices: outcome.notices })
            }
            Err(stop) => {
                let mut journal = outcome.journal;
                if plan.is_none() && !matches!(stop, Stop::Error(_)) {
                    // A change of the catalog begins anew, except for what it has found to exist. Nobody has
                    // waited for what this attempt took, so nobody is woken: two of them that wait for each
                    // other would wake each other for ever.
                    let woken = self.store.locks.woken();
                    self.store.undo_to(session, start);
                    self.store.locks.wake_only(woken);
                    if journal.iter().any(|entry| !matches!(entry, Entry::Flag(_))) {
                        journal.clear();
                    }
                }
                self.store.pinned.insert(session, snapshot.commit);
                let (snapshot, statement_micros) = (Some(snapshot), pending.statement_micros);
                if let Some(session) = self.sessions.get_mut(&session) {
                    session.pending = Some(Pending { journal, snapshot, statement_micros });
                }
                Err(stop)
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one statement")]
    fn attempt(
        &mut self,
        id: SessionId,
        snapshot: Snapshot,
        pending: &Pending,
        plan: Option<&Plan>,
        parsed: &Parsed,
        parameters: &[Value],
        now: Now,
    ) -> Outcome {
        let isolation = self.store.transactions.get(&id).map(|transaction| transaction.isolation);
        let is_repeatable = isolation.is_some_and(Isolation::has_one_snapshot);
        let Some(session) = self.sessions.get_mut(&id) else {
            let result = Err(SqlError::new("08003", "the session does not exist").into());
            return Outcome { result, notices: Vec::new(), journal: Vec::new() };
        };
        let actor = Actor { session: id, snapshot, is_repeatable };
        let ctes = plan.map_or(&[][..], |plan| &plan.ctes);
        let mut run = Run::new(&mut self.store, session, actor, parameters, ctes);
        run.is_serializable = isolation == Some(Isolation::Serializable);
        run.statement_micros = pending.statement_micros;
        run.clock_micros = now.unix_micros;
        run.journal.clone_from(&pending.journal);
        let result = match (plan, &parsed.command) {
            (Some(plan), _) => run.statement(&plan.query).map(|(count, rows)| {
                let rows_out = if plan.has_columns { rows } else { Vec::new() };
                (tag_of(&plan.query.body, count), rows_out)
            }),
            (None, Command::Sql(statement)) => run.catalog_statement(statement, &parsed.sql),
            (None, Command::Utility(_)) => Err(SqlError::unknown("this statement").into()),
        };
        Outcome {
            result,
            notices: std::mem::take(&mut run.notices),
            journal: std::mem::take(&mut run.journal),
        }
    }

    /// Refuses changes in a transaction that only reads.
    fn check_writes(
        &self,
        session: SessionId,
        plan: Option<&Plan>,
        statement: &Statement,
    ) -> Result<(), SqlError> {
        if !self.store.transactions.get(&session).is_some_and(|transaction| transaction.is_read_only) {
            return Ok(());
        }
        let what = match plan {
            Some(plan) => {
                let bodies = plan.ctes.iter().map(|cte| &cte.query.body).chain([&plan.query.body]);
                let change = bodies.filter_map(change_of).next();
                let locks = matches!(&plan.query.body, Body::Select(select) if !select.locks.is_empty());
                match change {
                    None if locks => "SELECT FOR UPDATE".to_owned(),
                    None => return Ok(()),
                    Some(change) => change.to_owned(),
                }
            }
            None => {
                let text = statement.to_string();
                text.split_whitespace().take(2).collect::<Vec<_>>().join(" ").to_uppercase()
            }
        };
        Err(SqlError::new("25006", format!("cannot execute {what} in a read-only transaction")))
    }
}

impl Run<'_> {
    /// Runs a change of the catalog, checks what it refers to, and notes it for the log.
    fn catalog_statement(&mut self, statement: &Statement, sql: &str) -> Result<(String, Rows), Stop> {
        self.log_ddl(sql);
        let tag = self.ddl(statement)?;
        self.check_references()?;
        Ok((tag, Vec::new()))
    }
}

fn change_of(body: &Body) -> Option<&'static str> {
    match body {
        Body::Modify(modify) => Some(match modify.action {
            Action::Insert { .. } => "INSERT",
            Action::Update { .. } => "UPDATE",
            Action::Delete { .. } => "DELETE",
        }),
        _ => None,
    }
}

fn tag_of(body: &Body, count: u64) -> String {
    match change_of(body) {
        Some("INSERT") => format!("INSERT 0 {count}"),
        Some(change) => format!("{change} {count}"),
        None => format!("SELECT {count}"),
    }
}

/// Refuses a prepared statement whose columns have changed since.
fn check_columns(prepared: &Prepared, plan: &Plan) -> Result<(), SqlError> {
    let now = plan.has_columns.then_some(&plan.query.columns);
    if now == prepared.columns.as_ref() {
        return Ok(());
    }
    Err(SqlError::new("0A000", "cached plan must not change result type"))
}
