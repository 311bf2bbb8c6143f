//! Functions that need the session, the time or the store.

use super::run::{Run, out_of_step};
use crate::error::SqlError;
use crate::plan::binder::missing_relation;
use crate::plan::expr::SessionFunction;
use crate::session::Entry;
use crate::storage::lock::{Mode, Target, Until, WaitFor};
use crate::storage::modes;
use crate::storage::stop::Stop;
use crate::storage::table::TableId;
use crate::value::Value;
use crate::value::date::{EPOCH, days_of_micros};

impl Run<'_> {
    pub(super) fn session_function(
        &mut self,
        function: SessionFunction,
        args: &[Value],
    ) -> Result<Value, Stop> {
        use SessionFunction as F;
        let of_unix = |micros: i64| Value::Timestamptz(micros.saturating_sub(EPOCH));
        let transaction = self.session.transaction_micros;
        Ok(match function {
            F::Now => of_unix(transaction),
            F::StatementTimestamp => of_unix(self.statement_micros),
            F::ClockTimestamp => {
                let clock = self.clock_micros;
                of_unix(self.number(|_| Ok(clock))?)
            }
            F::CurrentDate => Value::Date(days_of_micros(transaction.saturating_sub(EPOCH))),
            F::LocalTimestamp => Value::Timestamp(transaction.saturating_sub(EPOCH)),
            F::BackendPid => Value::Int(i64::from(self.session.id.0)),
            F::CurrentUser => Value::Text("postgres".to_owned()),
            F::CurrentDatabase => Value::Text("postgres".to_owned()),
            F::CurrentSchema => {
                let path = self.session.settings.search_path();
                path.into_iter().next().map_or(Value::Null, Value::Text)
            }
            F::TransactionNumber => {
                let number = self.store.number_of(self.session.id);
                Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
            }
            F::Sleep => self.sleep(args)?,
            F::CurrentSetting | F::SetConfig => self.setting(function, args)?,
            F::Notify => {
                if let [Value::Text(channel), Value::Text(payload)] = args {
                    self.once(|run| {
                        run.session.notifications.push((channel.clone(), payload.clone()));
                        Ok(Entry::Done)
                    })?;
                }
                Value::Void
            }
            F::NextVal | F::CurrVal | F::LastVal | F::SetVal | F::ToRegclass => {
                self.sequence_function(function, args)?
            }
            F::AdvisoryLock { is_try, is_shared, is_for_transaction } => {
                let until = if is_for_transaction { Until::Transaction } else { Until::Session };
                self.advisory_lock(args, is_try, is_shared, until)?
            }
            F::AdvisoryUnlock { is_shared } => self.advisory_unlock(args, is_shared)?,
            F::AdvisoryUnlockAll => {
                self.once(|run| {
                    run.store.locks.give_advisory(run.session.id);
                    Ok(Entry::Done)
                })?;
                Value::Void
            }
        })
    }

    /// Takes a number once, also if the statement waits later.
    fn number(&mut self, take: impl FnOnce(&mut Self) -> Result<i64, Stop>) -> Result<i64, Stop> {
        match self.once(|run| take(run).map(Entry::Number))? {
            Entry::Number(number) => Ok(number),
            _ => Err(out_of_step()),
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "seconds as microseconds")]
    fn sleep(&mut self, args: &[Value]) -> Result<Value, Stop> {
        let [Value::Float8(seconds)] = args else { return Ok(Value::Null) };
        let clock = self.clock_micros;
        let until = self.number(|_| Ok(clock.saturating_add((seconds * 1e6) as i64)))?;
        if self.clock_micros < until {
            return Err(Stop::Sleep { until });
        }
        Ok(Value::Void)
    }

    fn setting(&mut self, function: SessionFunction, args: &[Value]) -> Result<Value, Stop> {
        match (function, args) {
            (SessionFunction::CurrentSetting, [Value::Text(name), rest @ ..]) => {
                let is_missing_ok = matches!(rest, [Value::Bool(true)]);
                let of_transaction = self.store.transaction_setting(self.session.id, name);
                match of_transaction.or_else(|| self.session.settings.get(name)) {
                    Some(value) => Ok(Value::Text(value)),
                    None if is_missing_ok => Ok(Value::Null),
                    None => Err(crate::settings::unrecognised(name).into()),
                }
            }
            (_, [Value::Text(name), value, is_local]) => {
                let text = value.text().unwrap_or_default();
                if let Some((modes, kept)) = modes::of_setting(name, Some(&text))? {
                    self.store.set_modes(self.session.id, modes)?;
                    return Ok(Value::Text(kept));
                }
                self.session.settings.set(name, Some(&text))?;
                if let (Value::Bool(false), Some((_, kept))) = (is_local, &mut self.session.settings_before) {
                    kept.set(name, Some(&text))?;
                }
                Ok(self.session.settings.get(name).map_or(Value::Null, Value::Text))
            }
            _ => Ok(Value::Null),
        }
    }

    /// Finds a sequence by its name or its object identifier.
    fn sequence(&self, name: &Value) -> Result<TableId, Stop> {
        let text = match name {
            Value::Int(oid) => return Ok(TableId(u32::try_from(*oid).unwrap_or(0))),
            name => name.text().unwrap_or_default(),
        };
        let parts = parts_of(&text);
        let viewer = self.viewer();
        if let Some(id) = self.store.sequence_named(&viewer, &parts) {
            return Ok(id);
        }
        if self.store.has_relation(&viewer, &parts) {
            return Err(SqlError::new("42809", format!("\"{text}\" is not a sequence")).into());
        }
        Err(missing_relation(&parts).into())
    }

    fn sequence_function(&mut self, function: SessionFunction, args: &[Value]) -> Result<Value, Stop> {
        let undefined = |name: &str| {
            let text = format!("currval of sequence \"{name}\" is not yet defined in this session");
            Stop::from(SqlError::new("55000", text))
        };
        match (function, args) {
            (SessionFunction::LastVal, _) => {
                let last = self.session.last_sequence;
                let value = last.and_then(|id| self.session.sequence_values.get(&id)).copied();
                let missing = || SqlError::new("55000", "lastval is not yet defined in this session");
                Ok(Value::Int(value.ok_or_else(missing)?))
            }
            (_, [Value::Null, ..] | []) => Ok(Value::Null),
            (SessionFunction::NextVal, [name]) => {
                let id = self.sequence(name)?;
                self.check_changes("nextval()")?;
                let value = self.number(|run| run.next_value(id))?;
                self.session.sequence_values.insert(id, value);
                self.session.last_sequence = Some(id);
                Ok(Value::Int(value))
            }
            (SessionFunction::CurrVal, [name]) => {
                let id = self.sequence(name)?;
                let value = self.session.sequence_values.get(&id).copied();
                let sequence = self.store.sequences.get(&id).map_or("", |sequence| &sequence.name);
                Ok(Value::Int(value.ok_or_else(|| undefined(sequence))?))
            }
            (SessionFunction::SetVal, [name, Value::Int(value), rest @ ..]) => {
                let id = self.sequence(name)?;
                self.check_changes("setval()")?;
                let is_called = !matches!(rest, [Value::Bool(false)]);
                self.once(|run| {
                    run.await_reset(id)?;
                    if let Some(sequence) = run.store.sequences.get_mut(&id) {
                        sequence.set(*value, is_called)?;
                    }
                    run.store.log_sequence(id);
                    Ok(Entry::Done)
                })?;
                if is_called {
                    self.session.sequence_values.insert(id, *value);
                }
                Ok(Value::Int(*value))
            }
            (SessionFunction::ToRegclass, [Value::Text(name)]) => {
                let is_known = self.store.has_relation(&self.viewer(), &parts_of(name));
                Ok(if is_known { Value::Text(name.clone()) } else { Value::Null })
            }
            _ => Ok(Value::Null),
        }
    }

    /// Refuses a function that changes a sequence in a transaction that only reads.
    fn check_changes(&self, function: &str) -> Result<(), SqlError> {
        let transaction = self.store.transactions.get(&self.session.id);
        if transaction.is_some_and(|transaction| transaction.is_read_only) {
            let text = format!("cannot execute {function} in a read-only transaction");
            return Err(SqlError::new("25006", text));
        }
        Ok(())
    }

    /// Waits for the end of another transaction that has set the sequence back: only then its value is
    /// certain.
    fn await_reset(&self, id: TableId) -> Result<(), Stop> {
        let by = self.store.sequences.get(&id).and_then(|sequence| sequence.reset_by);
        let other = by.filter(|by| *by != self.actor.snapshot.xid);
        let on: Vec<_> = other.and_then(|by| self.store.open.get(&by).copied()).into_iter().collect();
        if on.is_empty() { Ok(()) } else { Err(Stop::Wait { on, what: WaitFor::Row(None) }) }
    }

    fn next_value(&mut self, id: TableId) -> Result<i64, Stop> {
        self.await_reset(id)?;
        let missing = || SqlError::new("42P01", "the sequence does not exist");
        let sequence = self.store.sequences.get_mut(&id).ok_or_else(missing)?;
        let (value, must_log) = sequence.next()?;
        if must_log {
            self.store.number_of(self.session.id);
            self.store.log_sequence(id);
        }
        Ok(value)
    }

    fn advisory_lock(
        &mut self,
        args: &[Value],
        is_try: bool,
        is_shared: bool,
        until: Until,
    ) -> Result<Value, Stop> {
        let Some(target) = target(args) else { return Ok(Value::Null) };
        let mode = if is_shared { Mode::Share } else { Mode::Exclusive };
        let entry = self.once(|run| match run.store.lock(run.session.id, target, mode, until) {
            Ok(()) => Ok(Entry::Flag(true)),
            Err(Stop::Wait { .. }) if is_try => Ok(Entry::Flag(false)),
            Err(stop) => Err(stop),
        })?;
        match entry {
            Entry::Flag(is_taken) => Ok(if is_try { Value::Bool(is_taken) } else { Value::Void }),
            _ => Err(out_of_step()),
        }
    }

    fn advisory_unlock(&mut self, args: &[Value], is_shared: bool) -> Result<Value, Stop> {
        let Some(target) = target(args) else { return Ok(Value::Null) };
        let mode = if is_shared { Mode::Share } else { Mode::Exclusive };
        let entry = self.once(|run| {
            Ok(Entry::Flag(run.store.locks.give(run.session.id, &target, mode, Until::Session)))
        })?;
        let Entry::Flag(was_held) = entry else { return Err(out_of_step()) };
        if !was_held {
            let words = if is_shared { "ShareLock" } else { "ExclusiveLock" };
            let text = format!("you don't own a lock of type {words}");
            self.notices.push(SqlError::warning("01000", text));
        }
        Ok(Value::Bool(was_held))
    }
}

/// Returns the parts of a name in a text, as `regclass` reads it.
fn parts_of(text: &str) -> Vec<String> {
    let part = |part: &str| match part.strip_prefix('"').and_then(|part| part.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => part.to_lowercase(),
    };
    text.split('.').map(part).collect()
}

/// Returns the key of an advisory lock: one bigint, or two integers.
fn target(args: &[Value]) -> Option<Target> {
    let half = |number: i64| u32::try_from(number & 0xffff_ffff).unwrap_or(0);
    match args {
        [Value::Int(key)] => Some(Target::Advisory(half(key >> 32), half(*key), 1)),
        [Value::Int(high), Value::Int(low)] => Some(Target::Advisory(half(*high), half(*low), 2)),
        _ => None,
    }
}
