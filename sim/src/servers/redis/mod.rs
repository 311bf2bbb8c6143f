//! A Redis server, version 7.0, as far as lock clients can observe one. [`Version`] adds the commands by
//! which newer servers release and renew locks.
//!
//! Left out on purpose: streams, bits and HyperLogLogs, and access control. A command that is left out gets
//! Redis' answer to an unknown one. Keys are listed in order, and so are the elements of large hashes and
//! sets; Redis lists them in no order. A script that does not end is stopped with an error after twenty
//! million instructions; Redis lets it run and answers BUSY to other clients.

// `request` and `reply` are the wire protocol, `value`, `keyspace` and `state` the data with `access` to it
// by types and `fields` for the expiries of hash fields, `effects` the output of the server (observers, the
// append-only file and replicas read one stream of effects), `channels` the subscribers and monitors,
// `events` what keys publish, `command` the commands on keys, `waiting` the clients that wait for elements,
// `lua` scripts, `server_command` all other commands; `dispatch` runs a request, and `host` starts and stops
// a server.

mod access;
mod background;
mod channels;
mod command;
mod connection;
mod core;
mod deadlines;
mod dispatch;
mod effects;
mod events;
mod fields;
mod glob;
mod host;
mod json_options;
mod keyspace;
mod lua;
mod monitor;
mod number;
mod observe;
mod output;
mod persistence;
#[cfg(test)]
mod propagation;
mod random;
mod replay;
mod replication;
mod reply;
mod request;
mod server_command;
mod serving;
mod snapshot;
mod state;
mod stream;
mod transaction;
mod value;
mod version;
mod waiting;
mod watch;
mod word;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dlock_runtime::{Probe, probes, sometimes};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

#[doc(hidden)]
pub use effects::{Effect, KeyValue, Removal};
#[doc(hidden)]
pub use host::PORT;
pub use host::RedisHost;
#[doc(hidden)]
pub use observe::{LockView, Observer};
pub use persistence::Persistence;
pub use version::Version;

use crate::world::machine::{Machine, WorldMachine};

use connection::Connection;
use core::{Client, Core};
use persistence::Journal;
use random::Rand48;
use reply::Reply;
use request::Args;
use state::Record;

/// The probes of a server, file by file.
pub(super) const PROBES: &[&[&Probe]] = &[probe::ALL, host::probe::ALL, stream::probe::ALL];

/// The options of a server.
#[doc(hidden)]
pub struct ServerOptions {
    /// The server's name. It takes the client's place in effects that the server itself caused.
    pub name: String,
    /// The policy for writing to the disk.
    pub persistence: Persistence,
    /// Starts as a replica: refuses writes until it is promoted. [`Server::replicate`] connects it to its
    /// primary.
    pub is_replica: bool,
    /// The commands that it has.
    pub version: Version,
    /// Receives everything that the server does.
    pub observer: Arc<dyn Observer>,
}

/// A server. Clones are the same server.
#[doc(hidden)]
pub struct Server<M = WorldMachine> {
    shared: Arc<Shared<M>>,
}

struct Shared<M> {
    machine: M,
    options: ServerOptions,
    core: Mutex<Core>,
    /// Wakes the background task.
    wake: Notify,
    promoted: Notify,
    /// Notified when a replica has acknowledged more of the stream.
    acknowledged: Notify,
}

impl ServerOptions {
    /// Returns the options of a primary called `name`, without persistence and without an observer.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            persistence: Persistence::None,
            is_replica: false,
            version: Version::default(),
            observer: Arc::new(()),
        }
    }
}

impl<M: Machine> Server<M> {
    /// Starts a server with the keys of its append-only file. Keys whose expiry passed meanwhile expire now.
    pub fn new(options: ServerOptions, machine: M) -> Self {
        let mut core = Core::default();
        core.journal = Journal::open(options.persistence, &machine);
        let digest = lua::digest(options.name.as_bytes());
        core.replication.id = String::from_utf8_lossy(&digest).into_owned();
        core.state.choices = Rand48::keyed(&digest);
        core.state.is_replica = options.is_replica;
        core.state.version = options.version;
        // Restored keys count as used now.
        core.state.now_micros = i64::try_from(machine.wall_micros()).unwrap_or(i64::MAX);
        core.journal.restore(&mut core.state);
        sometimes!(machine, keys_restored, core.keys() > 0);
        options.observer.restored(&core.state.record.effects);
        core.state.record.clear();
        let (wake, promoted, acknowledged) = Default::default();
        let core = Mutex::new(core);
        let server =
            Self { shared: Arc::new(Shared { machine, options, core, wake, promoted, acknowledged }) };
        server.act(|core| {
            core.synced_micros = core.state.now_micros;
            core.expire_due();
        });
        server
    }

    /// Serves one connection until the client leaves or the stream breaks. `client` is the client's name for
    /// observers.
    pub async fn serve_connection(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send, client: &str) {
        // A broken stream ends the connection as a closed one does.
        let _ = Connection::new(self, stream, client).serve().await;
    }

    /// Returns the number of commands executed since the server started, those inside scripts included.
    pub fn executed(&self) -> u64 {
        self.core().state.executed
    }

    /// Removes a key, as a server does that is short of memory. Returns whether the key existed.
    pub fn evict(&self, key: &[u8]) -> bool {
        let is_evicted = self.act(|core| core.state.remove(key, Removal::Evicted));
        sometimes!(self.shared.machine, key_evicted, is_evicted);
        is_evicted
    }

    /// Removes all keys, as FLUSHALL does.
    pub fn flush(&self) {
        self.act(|core| core.state.flush_all());
    }

    /// Sets a key as part of the state in which a run begins.
    pub fn preset(&self, key: &[u8], value: &[u8]) {
        self.act(|core| core.state.set(key, value.into(), None));
    }

    /// Syncs the append-only file, as an orderly shutdown does last.
    pub fn shut_down(&self) {
        self.core().journal.sync();
    }

    /// Returns the machine that it runs on.
    pub fn machine(&self) -> &M {
        &self.shared.machine
    }

    /// Returns the number of keys, including expired ones that are still stored.
    fn keys(&self) -> usize {
        self.core().keys()
    }

    /// Returns true if it follows a primary.
    pub fn is_replica(&self) -> bool {
        self.core().state.is_replica
    }

    /// Runs `work`, which no client requested, and publishes its effects.
    fn act<T>(&self, work: impl FnOnce(&mut Core) -> T) -> T {
        let mut record = Record::default();
        let mut core = self.core();
        core.state.now_micros = self.now_micros();
        core.state.select(0);
        let outcome = work(&mut core);
        core.publish();
        core.journal.write();
        core.take_record(&mut record);
        let (oversleeps, wall_ms) = (core.oversleeps(), core.state.now_ms());
        drop(core);
        if oversleeps {
            self.shared.wake.notify_one();
        }
        sometimes!(self.shared.machine, key_expired_actively, record.has_expired());
        self.report(&self.shared.options.name, wall_ms, &record);
        outcome
    }

    fn execute(&self, client: &mut Client, label: &str, args: Args<'_>) -> Reply {
        let mut core = self.core();
        let was_replica = core.state.is_replica;
        let reply = core.execute(client, args, self.now_micros());
        if let Some(wish) = core.state.wish.take() {
            client.blocked = Some(core.state.wishes.add(client.id, label, client.database, wish));
        }
        if !core.state.record.effects.is_empty() {
            core.publish();
            client.written_offset = core.replication.offset;
            if core.oversleeps() {
                self.shared.wake.notify_one();
            }
        }
        core.take_record(&mut client.record);
        let served = core.serve_waiting();
        let wall_ms = core.state.now_ms();
        let is_promoted = was_replica && !core.state.is_replica;
        drop(core);
        sometimes!(self.shared.machine, key_expired_lazily, client.record.has_expired());
        if is_promoted {
            self.promoted();
        }
        self.report(label, wall_ms, &client.record);
        client.record.clear();
        served.iter().for_each(|(label, record)| self.report(label, wall_ms, record));
        reply
    }

    /// Stops following the primary, and starts expiring keys.
    fn promoted(&self) {
        self.shared.promoted.notify_waiters();
        self.shared.wake.notify_one();
    }

    fn report(&self, client: &str, wall_ms: i64, record: &Record) {
        let observer = &self.shared.options.observer;
        if !record.effects.is_empty() {
            self.pass(wall_ms);
            observer.changed(client, wall_ms, &record.effects);
            self.rouse_for_observer();
        }
        for command in &record.commands {
            observer.executed(client, command);
            self.shared.machine.point(command);
        }
        record.unknown.iter().for_each(|command| self.shared.machine.refused_unknown(command));
    }

    /// Tells the observer the time, unless a primary decides what has expired.
    fn pass(&self, wall_ms: i64) {
        let ServerOptions { observer, name, .. } = &self.shared.options;
        if observer.due_ms().is_some_and(|due| due <= wall_ms) && !self.is_replica() {
            observer.passed(name, wall_ms);
        }
    }

    fn now_micros(&self) -> i64 {
        i64::try_from(self.shared.machine.wall_micros()).unwrap_or(i64::MAX)
    }
}

impl<M> Server<M> {
    /// Returns true if it writes an append-only file.
    fn persists(&self) -> bool {
        self.shared.options.persistence != Persistence::None
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        self.shared.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> Clone for Server<M> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<M> fmt::Debug for Server<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.shared.options.name).finish_non_exhaustive()
    }
}

probes! {
    /// A client found an expired key before the server had looked for it.
    sometimes key_expired_lazily;
    /// The server found an expired key by itself.
    sometimes key_expired_actively;
    /// A key was evicted while its owner may trust its lease.
    sometimes key_evicted;
    /// A server began with keys that its disk had kept.
    sometimes keys_restored;
}
