//! The state that all connections share, and the state of each connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::channels::Wake;
use super::effects::encode_unit;
use super::keyspace::Keyspace;
use super::lua::{Digest, Script};
use super::persistence::Journal;
use super::replication::{Feed, Replication};
use super::reply::Protocol;
use super::state::{Record, State};
use super::transaction::Transaction;
use super::waiting::Blocked;
use super::watch::Watches;

/// The state that all connections share.
#[derive(Debug, Default)]
pub(crate) struct Core {
    pub(crate) state: Box<State>,
    pub(crate) scripts: BTreeMap<Digest, Script>,
    pub(crate) journal: Journal,
    pub(crate) replication: Replication,
    pub(crate) watches: Watches,
    /// The number of connections so far, and the id of the newest.
    pub(crate) clients: u64,
    /// The number of open connections.
    pub(crate) connected: usize,
    /// The time at which the background task wakes, in microseconds on the wall clock; `None` while it does
    /// not sleep.
    pub(crate) alarm_micros: Option<i64>,
    /// The time of the last sync of the append-only file, in microseconds on the wall clock.
    pub(crate) synced_micros: i64,
    /// The encoded effects of the last command; kept to reuse its memory.
    unit: Vec<u8>,
}

/// The state of one connection.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) id: u64,
    /// The name of the client for observers. MONITOR shows it in place of the address.
    pub(crate) label: String,
    /// The name that CLIENT SETNAME gave it.
    pub(crate) name: Vec<u8>,
    /// The number of the database that SELECT chose.
    pub(crate) database: usize,
    /// The protocol that HELLO chose.
    pub(crate) protocol: Protocol,
    /// The connection ends once the reply is sent.
    pub(crate) is_closing: bool,
    /// Set by MULTI, until EXEC or DISCARD.
    pub(crate) transaction: Option<Transaction>,
    /// Set while EXEC runs the commands of a transaction: none may block.
    pub(crate) is_in_exec: bool,
    /// The end of the replication stream after the client's last write. WAIT waits until replicas have it.
    pub(crate) written_offset: u64,
    /// Set by WAIT: the reply is sent when enough replicas have acknowledged.
    pub(crate) wait: Option<Wait>,
    /// Set by commands like BLPOP: the reply is sent when there are elements, or when the time is up.
    pub(crate) blocked: Option<Blocked>,
    /// Set by PSYNC: the connection belongs to a replica from now on.
    pub(crate) feed: Option<Feed>,
    /// Notified of published messages; set by the first SUBSCRIBE, PSUBSCRIBE or
    /// MONITOR.
    pub(crate) wake: Option<Arc<Wake>>,
    /// The lines of its own commands if it is a monitor: they follow the reply.
    pub(crate) own_lines: Vec<u8>,
    /// The effects of the running command. Cleared once the observer has received them.
    pub(crate) record: Record,
}

/// The condition and deadline of a WAIT.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) replicas: usize,
    pub(crate) offset: u64,
    /// `None`: there is no deadline.
    pub(crate) deadline_micros: Option<i64>,
}

impl Core {
    pub(crate) fn connect(&mut self) -> Client {
        self.clients += 1;
        self.connected += 1;
        Client { id: self.clients, ..Client::default() }
    }

    /// Returns the number of keys in all databases, including expired ones that are still stored.
    pub(crate) fn keys(&self) -> usize {
        self.state.databases().iter().map(Keyspace::len).sum()
    }

    /// Passes the effects of the last command to the append-only file and to the replicas.
    pub(crate) fn publish(&mut self) {
        self.watches.touch(&self.state.record.effects);
        let has_readers = self.journal.is_enabled() || self.replication.connected() > 0;
        if self.state.record.effects.is_empty() || !has_readers {
            return;
        }
        self.unit.clear();
        encode_unit(&self.state.record.effects, &mut self.unit);
        if self.unit.is_empty() {
            // A change that concerns clients that watch the key, such as LTRIM of nothing.
            return;
        }
        self.journal.add(&self.unit);
        self.replication.send(&self.unit, self.state.now_micros);
    }

    /// Moves the record since the last call into `record`, which must be empty, and reuses its memory.
    pub(crate) fn take_record(&mut self, record: &mut Record) {
        std::mem::swap(&mut self.state.record, record);
    }
}
