//! Statements about transactions, settings, locks and notifications.

use super::Database;
use crate::api::{Now, SessionId, Step};
use crate::error::SqlError;
use crate::plan::binder::missing_relation;
use crate::session::{Block, ChannelChange, Savepoint};
use crate::storage::lock::{Mode, Target, Until};
use crate::storage::modes;
use crate::storage::stop::Stop;
use crate::syntax::utility::{Modes, Utility};
use crate::value::Value;

/// The tag of a statement, and its notices.
type Outcome = Result<(String, Vec<SqlError>), Stop>;

fn done(tag: &str) -> Outcome {
    Ok((tag.to_owned(), Vec::new()))
}

fn only_in_block(what: &str) -> Stop {
    SqlError::new("25P01", format!("{what} can only be used in transaction blocks")).into()
}

impl Database {
    /// Runs a statement without expressions.
    pub(super) fn utility(&mut self, id: SessionId, utility: &Utility, now: Now) -> Step {
        if let Utility::Show(name) = utility {
            return match self.setting(id, name) {
                Some(value) => {
                    let (tag, rows) = ("SHOW".to_owned(), vec![vec![Value::Text(value)]]);
                    Step::Done { tag, rows, notices: Vec::new() }
                }
                None => self.failed(id, crate::settings::unrecognised(name)),
            };
        }
        match self.run_utility(id, utility, now) {
            Ok((tag, notices)) => {
                self.store.locks.end_wait(id);
                Step::Done { tag, rows: Vec::new(), notices }
            }
            Err(stop) => self.stopped(id, stop),
        }
    }

    fn block(&self, id: SessionId) -> Block {
        self.sessions.get(&id).map_or(Block::None, |session| session.block)
    }

    /// Returns whether the statement is in a block, be it the implicit one of a query of several statements.
    fn is_in_block(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(|s| s.is_one_of_several || s.block != Block::None)
    }

    fn run_utility(&mut self, id: SessionId, utility: &Utility, now: Now) -> Outcome {
        match utility {
            Utility::Begin(modes, tag) => self.begin(id, *modes, tag, now),
            Utility::Commit { chain } => self.end(id, true, *chain, now),
            Utility::Rollback { chain } => self.end(id, false, *chain, now),
            Utility::Savepoint(name) => self.savepoint(id, name),
            Utility::Release(name) => {
                let place = self.savepoint_place(id, name, "RELEASE SAVEPOINT")?;
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.savepoints.truncate(place);
                }
                done("RELEASE")
            }
            Utility::RollbackTo(name) => self.roll_back_to(id, name),
            Utility::SetTransaction(modes) => {
                if !self.is_in_block(id) {
                    let text = "SET TRANSACTION can only be used in transaction blocks";
                    return Ok(("SET".to_owned(), vec![SqlError::warning("25P01", text)]));
                }
                self.ensure_transaction(id, now);
                self.store.set_modes(id, *modes)?;
                done("SET")
            }
            Utility::SetDefaults(modes) => self.set_defaults(id, *modes, now),
            Utility::Raise { level, message, code } => raise(level, message, code.as_deref()),
            Utility::Lock { tables, mode, is_nowait } => {
                self.ensure_transaction(id, now);
                self.lock_tables(id, tables, *mode, *is_nowait)
            }
            _ => {
                self.ensure_transaction(id, now);
                self.session_utility(id, utility)
            }
        }
    }

    fn begin(&mut self, id: SessionId, modes: Modes, tag: &str, now: Now) -> Outcome {
        let is_open = self.block(id) != Block::None;
        self.ensure_transaction(id, now);
        self.store.set_modes(id, modes)?;
        if let Some(session) = self.sessions.get_mut(&id) {
            session.block = Block::Open;
        }
        let warning = SqlError::warning("25001", "there is already a transaction in progress");
        Ok((tag.to_owned(), if is_open { vec![warning] } else { Vec::new() }))
    }

    fn end(&mut self, id: SessionId, commits: bool, chain: bool, now: Now) -> Outcome {
        let block = self.block(id);
        let failed = self.sessions.get(&id).and_then(|session| session.failed_modes);
        let modes = self.store.modes(id).or(failed);
        if block == Block::None && chain {
            let what = if commits { "COMMIT AND CHAIN" } else { "ROLLBACK AND CHAIN" };
            return Err(only_in_block(what));
        }
        let is_committed = commits && block != Block::Failed;
        if is_committed {
            self.commit(id)?;
        } else {
            self.roll_back(id);
        }
        if chain {
            self.begin(id, modes.unwrap_or_default(), "", now)?;
        }
        let tag = if is_committed { "COMMIT" } else { "ROLLBACK" };
        let warning = SqlError::warning("25P01", "there is no transaction in progress");
        Ok((tag.to_owned(), if block == Block::None { vec![warning] } else { Vec::new() }))
    }

    fn savepoint(&mut self, id: SessionId, name: &str) -> Outcome {
        let undo = self.store.transactions.get(&id).map_or(0, |transaction| transaction.undo.len());
        let Some(session) = self.sessions.get_mut(&id).filter(|session| session.block == Block::Open) else {
            return Err(only_in_block("SAVEPOINT"));
        };
        let settings = (session.settings.clone(), session.settings_before.clone());
        let (name, notifications) = (name.to_owned(), session.notifications.len());
        let channel_changes = session.channel_changes.len();
        session.savepoints.push(Savepoint { name, undo, settings, notifications, channel_changes });
        done("SAVEPOINT")
    }

    fn savepoint_place(&self, id: SessionId, name: &str, what: &str) -> Result<usize, Stop> {
        let Some(session) = self.sessions.get(&id).filter(|session| session.block != Block::None) else {
            return Err(only_in_block(what));
        };
        let place = session.savepoints.iter().rposition(|savepoint| savepoint.name == name);
        let missing = || SqlError::new("3B001", format!("savepoint \"{name}\" does not exist"));
        Ok(place.ok_or_else(missing)?)
    }

    fn roll_back_to(&mut self, id: SessionId, name: &str) -> Outcome {
        let place = self.savepoint_place(id, name, "ROLLBACK TO SAVEPOINT")?;
        let Some(session) = self.sessions.get_mut(&id) else { return done("ROLLBACK") };
        session.savepoints.truncate(place + 1);
        let Some(savepoint) = session.savepoints.last().cloned() else { return done("ROLLBACK") };
        (session.settings, session.settings_before) = savepoint.settings;
        session.notifications.truncate(savepoint.notifications);
        session.channel_changes.truncate(savepoint.channel_changes);
        session.block = Block::Open;
        self.store.undo_to(id, savepoint.undo);
        done("ROLLBACK")
    }

    fn set_defaults(&mut self, id: SessionId, modes: Modes, now: Now) -> Outcome {
        self.ensure_transaction(id, now);
        if let Some(isolation) = modes.isolation {
            self.set_both(id, "default_transaction_isolation", Some(isolation.name()), false)?;
        }
        if let Some(is_read_only) = modes.is_read_only {
            let value = if is_read_only { "on" } else { "off" };
            self.set_both(id, "default_transaction_read_only", Some(value), false)?;
        }
        done("SET")
    }

    /// Sets a setting now, and after the commit unless it is local.
    fn set_both(
        &mut self,
        id: SessionId,
        name: &str,
        value: Option<&str>,
        is_local: bool,
    ) -> Result<(), SqlError> {
        let Some(session) = self.sessions.get_mut(&id) else { return Ok(()) };
        session.settings.set(name, value)?;
        match &mut session.settings_before {
            Some((_, kept)) if !is_local => kept.set(name, value),
            _ => Ok(()),
        }
    }

    fn session_utility(&mut self, id: SessionId, utility: &Utility) -> Outcome {
        match utility {
            Utility::Set { name, value, is_local } => {
                self.set_statement(id, name, value.as_deref(), *is_local)
            }
            Utility::Reset(Some(name)) => {
                self.set_both(id, name, None, false)?;
                done("RESET")
            }
            Utility::Reset(None) => {
                self.reset_all(id);
                done("RESET")
            }
            Utility::DiscardAll => {
                if self.is_in_block(id) {
                    let text = "DISCARD ALL cannot run inside a transaction block";
                    return Err(SqlError::new("25001", text).into());
                }
                self.reset_all(id);
                self.store.locks.give_advisory(id);
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.channels.clear();
                    session.sequence_values.clear();
                    session.last_sequence = None;
                }
                done("DISCARD ALL")
            }
            Utility::Deallocate => done("DEALLOCATE"),
            _ => self.channels(id, utility),
        }
    }

    fn set_statement(&mut self, id: SessionId, name: &str, value: Option<&str>, is_local: bool) -> Outcome {
        if let Some((modes, _)) = modes::of_setting(name, value)? {
            self.store.set_modes(id, modes)?;
            return done("SET");
        }
        self.set_both(id, name, value, is_local)?;
        let mut notices = Vec::new();
        if is_local && !self.is_in_block(id) {
            let text = "SET LOCAL can only be used in transaction blocks";
            notices.push(SqlError::warning("25P01", text));
        }
        Ok(("SET".to_owned(), notices))
    }

    fn reset_all(&mut self, id: SessionId) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.settings.reset_all();
            if let Some((_, kept)) = &mut session.settings_before {
                kept.reset_all();
            }
        }
    }

    fn channels(&mut self, id: SessionId, utility: &Utility) -> Outcome {
        let Some(session) = self.sessions.get_mut(&id) else { return done("") };
        match utility {
            Utility::Listen(channel) => {
                session.channel_changes.push(ChannelChange::Listen(channel.clone()));
                done("LISTEN")
            }
            Utility::Unlisten(Some(channel)) => {
                session.channel_changes.push(ChannelChange::Unlisten(channel.clone()));
                done("UNLISTEN")
            }
            Utility::Unlisten(None) => {
                session.channel_changes.push(ChannelChange::UnlistenAll);
                done("UNLISTEN")
            }
            Utility::Notify(channel, payload) => {
                session.notifications.push((channel.clone(), payload.clone()));
                done("NOTIFY")
            }
            _ => Err(SqlError::unknown("this statement").into()),
        }
    }

    fn lock_tables(&mut self, id: SessionId, tables: &[Vec<String>], mode: Mode, is_nowait: bool) -> Outcome {
        if !self.is_in_block(id) {
            return Err(only_in_block("LOCK TABLE"));
        }
        for name in tables {
            let found = self.store.table_named(&self.viewer(id), name).map(|(table, _)| table);
            let table = found.ok_or_else(|| missing_relation(name))?;
            match self.store.lock(id, Target::Table(table), mode, Until::Transaction) {
                Err(Stop::Wait { .. }) if is_nowait => {
                    let name = name.last().cloned().unwrap_or_default();
                    let text = format!("could not obtain lock on relation \"{name}\"");
                    return Err(SqlError::new("55P03", text).into());
                }
                locked => locked?,
            }
        }
        done("LOCK TABLE")
    }
}

fn raise(level: &str, message: &str, code: Option<&str>) -> Outcome {
    match level {
        "exception" => Err(SqlError::new(code.unwrap_or("P0001"), message).into()),
        "notice" => Ok(("DO".to_owned(), vec![SqlError::notice("00000", message)])),
        "warning" => Ok(("DO".to_owned(), vec![SqlError::warning("01000", message)])),
        "info" => {
            let notice = SqlError::notice("00000", message).with(|fields| fields.severity = "INFO");
            Ok(("DO".to_owned(), vec![notice]))
        }
        _ => done("DO"),
    }
}
