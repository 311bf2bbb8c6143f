//! The beginning and the end of transactions.

use super::Database;
use crate::api::{Notification, Now, SessionId};
use crate::error::SqlError;
use crate::session::{Block, ChannelChange, Session};
use crate::storage::transaction::Isolation;

impl Database {
    /// Begins the transaction of a session, if none is open.
    pub(super) fn ensure_transaction(&mut self, id: SessionId, now: Now) {
        if self.store.transactions.contains_key(&id) {
            return;
        }
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let isolation = session.settings.get("default_transaction_isolation").unwrap_or_default();
        let isolation = Isolation::ALL.iter().find(|(_, name)| *name == isolation);
        let isolation = isolation.map_or(Isolation::ReadCommitted, |(level, _)| *level);
        let is_read_only = session.settings.get("default_transaction_read_only").as_deref() == Some("on");
        session.transaction_micros = now.unix_micros;
        session.settings_before = Some((session.settings.clone(), session.settings.clone()));
        self.store.begin(id, isolation, is_read_only);
    }

    /// Commits the transaction of a session; after an error it is rolled back.
    pub(super) fn commit(&mut self, id: SessionId) -> Result<(), SqlError> {
        if let Err(error) = self.store.commit(id) {
            self.roll_back(id);
            return Err(error);
        }
        let Some(session) = self.sessions.get_mut(&id) else { return Ok(()) };
        if let Some((_, kept)) = session.settings_before.take() {
            session.settings = kept;
        }
        for change in std::mem::take(&mut session.channel_changes) {
            match change {
                ChannelChange::Listen(channel) => {
                    session.channels.insert(channel);
                }
                ChannelChange::Unlisten(channel) => {
                    session.channels.remove(&channel);
                }
                ChannelChange::UnlistenAll => session.channels.clear(),
            }
        }
        let mut sent: Vec<(String, String)> = Vec::new();
        for notification in std::mem::take(&mut session.notifications) {
            if !sent.contains(&notification) {
                sent.push(notification);
            }
        }
        end_block(session);
        for (channel, payload) in sent {
            let listeners = self.sessions.values().filter(|session| session.channels.contains(&channel));
            let made = listeners.map(|session| Notification {
                to: session.id,
                from: id,
                channel: channel.clone(),
                payload: payload.clone(),
            });
            self.notifications.extend(made.collect::<Vec<_>>());
        }
        Ok(())
    }

    /// Rolls the transaction of a session back, and ends its block.
    pub(super) fn roll_back(&mut self, id: SessionId) {
        self.store.abort(id);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if let Some((before, _)) = session.settings_before.take() {
            session.settings = before;
        }
        session.channel_changes.clear();
        session.notifications.clear();
        end_block(session);
    }

    /// Fails the transaction after an error that the server itself has found, such as a parameter that it
    /// can't read.
    pub fn fail(&mut self, id: SessionId) {
        self.store.locks.end_wait(id);
        self.store.pinned.remove(&id);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.pending = None;
        if session.block == Block::None {
            self.roll_back(id);
            return;
        }
        session.block = Block::Failed;
        session.failed_modes = self.store.modes(id).or(session.failed_modes);
        // The locks of the innermost savepoint are released at once; those before it are kept.
        match session.savepoints.last().map(|savepoint| savepoint.undo) {
            Some(undo) => self.store.undo_to(id, undo),
            None => self.store.abort(id),
        }
    }

    /// Ends the implicit transaction: commits it, or does nothing if there is none. After an error in a
    /// message of the extended protocol call it as well.
    ///
    /// # Errors
    ///
    /// 40001 and others that only a commit finds: the transaction is rolled back.
    pub fn sync(&mut self, session: SessionId) -> Result<(), SqlError> {
        let is_implicit = self.sessions.get(&session).is_some_and(|session| session.block == Block::None);
        let is_waiting = self.store.locks.is_waiting(session);
        if is_implicit && !is_waiting && self.store.transactions.contains_key(&session) {
            return self.commit(session);
        }
        Ok(())
    }
}

fn end_block(session: &mut Session) {
    session.block = Block::None;
    session.savepoints.clear();
    session.pending = None;
    session.failed_modes = None;
}
