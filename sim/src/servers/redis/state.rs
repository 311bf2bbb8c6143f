//! The data that commands work on: the keyspaces, the time of the running command, and the record of its
//! effects.

use std::sync::Arc;

use super::channels::Channels;
use super::effects::{Effect, KeyValue, Removal};
use super::events::{Class, Classes, DEL, EVICTED, EXPIRE, EXPIRED, Event, KEYMISS, NEW, PERSIST};
use super::json_options::JsonOptions;
use super::keyspace::{Entry, Keyspace};
use super::random::Rand48;
use super::reply::Reply;
use super::request::Args;
use super::value::{Text, Value};
use super::version::Version;
use super::waiting::{Wish, WishList};

/// The number of databases, as in Redis without a configuration.
pub(crate) const DATABASES: usize = 16;

/// The server's data. A script takes it into the interpreter while it runs.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The databases up to the highest that was ever selected.
    databases: Databases,
    /// The database of the running command.
    selected: usize,
    /// The wall clock when the running command or script began. It stays the same until the end: a key that
    /// exists when a script begins exists until the script ends.
    pub(crate) now_micros: i64,
    /// A replica refuses writes, and leaves expiry to its primary.
    pub(crate) is_replica: bool,
    /// The commands that the server has.
    pub(crate) version: Version,
    /// The running command comes from the append-only file or from the primary. It still sees expired keys:
    /// their removal comes as a command of its own.
    pub(crate) is_replaying: bool,
    /// The running command comes right from a client, so that it may wait: it is not in a script or a
    /// transaction.
    pub(crate) may_wait: bool,
    /// The elements that the running command waits for, if it does.
    pub(crate) wish: Option<Wish<Self>>,
    /// The clients that wait for elements.
    pub(crate) wishes: WishList<Self>,
    /// The effects and commands since the record was last taken.
    pub(crate) record: Record,
    /// Commands executed since the server started, those inside scripts included.
    pub(crate) executed: u64,
    /// Keys expired since the server started.
    pub(crate) expired: u64,
    /// The generator behind `math.random`.
    pub(crate) random: Rand48,
    /// The options of the scripts' library `cjson`.
    pub(crate) json: JsonOptions,
    /// The generator of random choices among keys, members and fields.
    pub(crate) choices: Rand48,
    /// The memory of collections that were copied or combined since the last count, in bytes.
    pub(crate) copied_bytes: usize,
    /// The subscribers of channels.
    pub(crate) channels: Channels,
    /// The classes of events that are published. A restart forgets them, as CONFIG SET sets them only.
    pub(crate) published: Classes,
    /// The running command reads the keys that it looks up: a missing one is an event.
    is_reading: bool,
}

/// The databases by number. There is always database 0.
#[derive(Debug)]
struct Databases(Vec<Keyspace>);

impl Default for Databases {
    fn default() -> Self {
        Self(vec![Keyspace::default()])
    }
}

/// The effects and the names of the commands that were executed, in order.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) effects: Vec<Effect>,
    pub(crate) commands: Vec<&'static str>,
    /// The commands that were refused as unknown.
    pub(crate) unknown: Vec<String>,
    /// The database of the last effect.
    database: usize,
}

impl Record {
    /// Notes that the command that `args` name was refused as unknown; `subcommand`: its second word was.
    ///
    /// Every client sends CLIENT SETINFO when it connects, and ignores the refusal of a server before 7.2.
    pub(crate) fn refuse(&mut self, args: Args<'_>, subcommand: bool) {
        let words = args.iter().take(if subcommand { 2 } else { 1 }).map(String::from_utf8_lossy);
        let name = words.map(|word| word.to_ascii_uppercase()).collect::<Vec<_>>().join(" ");
        if name != "CLIENT SETINFO" {
            self.unknown.push(name);
        }
    }

    /// Adds an effect in the database numbered `database`.
    pub(crate) fn add(&mut self, database: usize, effect: Effect) {
        self.select(database);
        self.effects.push(effect);
    }

    /// Notes that the next effects are in this database. Returns the former one.
    pub(crate) fn select(&mut self, database: usize) -> usize {
        if self.database != database {
            self.effects.push(Effect::Selected { database });
        }
        std::mem::replace(&mut self.database, database)
    }

    /// Takes back what [`Record::select`] has noted last, if no effect has followed.
    pub(crate) fn unselect(&mut self, former: usize) {
        if self.database != former {
            self.effects.pop();
            self.database = former;
        }
    }

    /// Returns true if a key expired.
    pub(crate) fn has_expired(&self) -> bool {
        self.effects.iter().any(Effect::is_expiry)
    }

    pub(crate) fn clear(&mut self) {
        self.effects.clear();
        self.commands.clear();
        self.unknown.clear();
        self.database = 0;
    }
}

impl State {
    pub(crate) fn now_ms(&self) -> i64 {
        self.now_micros / 1000
    }

    /// Runs a command on keys. `reads`: it changes none.
    pub(crate) fn execute(
        &mut self,
        name: &'static str,
        reads: bool,
        run: fn(&mut State, Args<'_>) -> Result<Reply, Reply>,
        args: Args<'_>,
    ) -> Reply {
        self.executed(name);
        self.is_reading = reads;
        let reply = run(self, args).unwrap_or_else(|error| error);
        self.is_reading = false;
        reply
    }

    /// Runs `work`, for which missing keys are events even if the command writes.
    pub(crate) fn reading<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let former = std::mem::replace(&mut self.is_reading, true);
        let outcome = work(self);
        self.is_reading = former;
        outcome
    }

    /// Sets whether missing keys are events, until the running command ends.
    pub(crate) fn set_reading(&mut self, reads: bool) {
        self.is_reading = reads;
    }

    pub(crate) fn executed(&mut self, name: &'static str) {
        self.executed += 1;
        self.record.commands.push(name);
    }

    /// Returns the keys of the selected database.
    pub(crate) fn keyspace(&self) -> &Keyspace {
        &self.databases.0[self.selected]
    }

    pub(crate) fn keyspace_mut(&mut self) -> &mut Keyspace {
        &mut self.databases.0[self.selected]
    }

    /// Returns the databases up to the highest that was ever selected.
    pub(crate) fn databases(&self) -> &[Keyspace] {
        &self.databases.0
    }

    /// Returns the number of the selected database.
    pub(crate) fn selected(&self) -> usize {
        self.selected
    }

    /// Selects the database of the following commands.
    pub(crate) fn select(&mut self, database: usize) {
        if database >= self.databases.0.len() {
            self.databases.0.resize_with(database + 1, Keyspace::default);
        }
        self.selected = database;
    }

    /// Runs `work` in another database.
    pub(crate) fn within<T>(&mut self, database: usize, work: impl FnOnce(&mut Self) -> T) -> T {
        let selected = self.selected;
        self.select(database);
        let outcome = work(self);
        self.selected = selected;
        outcome
    }

    /// Swaps the contents of two databases.
    pub(crate) fn swap(&mut self, one: usize, other: usize) {
        self.within(one.max(other), |state| state.databases.0.swap(one, other));
    }

    /// Returns the entry of `key`, and notes its use. A primary removes an expired one; it is not returned.
    pub(crate) fn lookup(&mut self, key: &[u8]) -> Option<&Entry> {
        let now_micros = self.now_micros;
        let entry = self.peek(key)?;
        entry.used_micros.set(now_micros);
        Some(entry)
    }

    /// As [`State::lookup`], for commands that do not count as a use.
    pub(crate) fn peek(&mut self, key: &[u8]) -> Option<&Entry> {
        let now_ms = self.now_ms();
        let none_is_due = self.keyspace().next_due().is_none_or(|at| now_ms <= at);
        let is_expired = |entry: &Entry| entry.is_expired(now_ms);
        if !none_is_due && self.keyspace().entry(key).is_some_and(is_expired) && !self.is_replaying {
            if !self.is_replica {
                self.remove(key, Removal::Expired);
            }
            self.miss(key);
            return None;
        }
        if self.is_reading && self.published.contains(Class::Missed) && self.keyspace().entry(key).is_none() {
            self.miss(key);
        }
        self.keyspace().entry(key)
    }

    pub(crate) fn set(&mut self, key: &[u8], value: Arc<[u8]>, expires_at: Option<i64>) {
        let entry = Entry::new(value.clone().into(), expires_at, self.now_micros);
        self.set_entry(key, value, entry);
    }

    /// As [`State::set`], for a string that was made in another way than by SET.
    pub(crate) fn set_text(&mut self, key: &[u8], text: Text, expires_at: Option<i64>) {
        let value = text.bytes.clone();
        let entry = Entry::new(Value::String(text), expires_at, self.now_micros);
        self.set_entry(key, value, entry);
    }

    /// Stores `entry` with the string `value`.
    fn set_entry(&mut self, key: &[u8], value: Arc<[u8]>, entry: Entry) {
        let expires_at = entry.expires_at;
        let (key, former) = self.keyspace_mut().insert(key, entry);
        if former.is_none() {
            self.notify(NEW, &key);
        }
        let former = former.and_then(|entry| entry.value.text().cloned());
        self.emit(Effect::Set { key, value, expires_at, former });
    }

    /// Sets a counter to `value`, which differs from the former by `by`, and keeps its expiry.
    pub(crate) fn count(&mut self, key: &[u8], value: i64, by: i64) {
        let expires_at = self.keyspace().entry(key).and_then(|entry| entry.expires_at);
        let text = super::number::with_i64(value, |text| Arc::<[u8]>::from(text));
        let entry = Entry::new(text.into(), expires_at, self.now_micros);
        let (key, former) = self.keyspace_mut().insert(key, entry);
        if former.is_none() {
            self.notify(NEW, &key);
        }
        self.emit(Effect::Counted { key, value, by });
    }

    pub(crate) fn expire_at(&mut self, key: &[u8], at: Option<i64>) {
        if let Some(KeyValue { key, value }) = self.keyspace_mut().expire_at(key, at) {
            self.notify(if at.is_some() { EXPIRE } else { PERSIST }, &key);
            self.emit(Effect::Extended { key, value, expires_at: at });
        }
    }

    /// Removes `key`. Returns whether it existed.
    pub(crate) fn remove(&mut self, key: &[u8], cause: Removal) -> bool {
        let Some((key, entry)) = self.keyspace_mut().remove(key) else { return false };
        self.record_removal(key, &entry, cause);
        true
    }

    /// Deletes `key` for a client. A key that has expired is removed as such. Returns whether it was deleted.
    pub(crate) fn delete(&mut self, key: &[u8]) -> bool {
        self.lookup(key).is_some() && self.clear(key)
    }

    /// As [`State::remove`], as a change of its own: other commands remove keys to rename or replace them.
    pub(crate) fn clear(&mut self, key: &[u8]) -> bool {
        let is_removed = self.remove(key, Removal::Deleted);
        if is_removed {
            self.notify(DEL, key);
        }
        is_removed
    }

    /// Removes all keys of the selected database.
    pub(crate) fn flush(&mut self) {
        let entries = self.keyspace_mut().clear();
        self.emit(Effect::Flushed { entries });
    }

    /// Removes all keys of all databases.
    pub(crate) fn flush_all(&mut self) {
        self.within(0, |state| {
            state.as_command(&[b"FLUSHALL"], |state| {
                (0..state.databases.0.len()).for_each(|database| state.within(database, Self::flush));
            });
        });
    }

    /// Removes every expired key, and the expired fields of hashes.
    pub(crate) fn expire_due(&mut self) {
        for database in 0..self.databases.0.len() {
            self.within(database, |state| {
                while let Some((key, entry)) = {
                    let now_ms = state.now_ms();
                    state.keyspace_mut().pop_due(now_ms)
                } {
                    state.record_removal(key, &entry, Removal::Expired);
                }
                state.expire_due_fields();
            });
        }
    }

    /// Lets the client wait for elements. Returns `otherwise` if the running command may not wait.
    pub(crate) fn wait(&mut self, wish: Wish<Self>, otherwise: Reply) -> Reply {
        if !self.may_wait {
            return otherwise;
        }
        self.wish = Some(wish);
        Reply::Silence
    }

    /// Adds an effect to the record.
    pub(crate) fn emit(&mut self, effect: Effect) {
        self.record.add(self.selected, effect);
    }

    /// Publishes an event of `key` if the setting names its class.
    #[inline]
    pub(crate) fn notify(&mut self, event: Event, key: &[u8]) {
        if self.published.contains(event.0) {
            self.publish_event(event.1, key);
        }
    }

    /// Publishes first to the channel of the key, then to that of the event, as `notifyKeyspaceEvent` does.
    #[cold]
    fn publish_event(&mut self, event: &str, key: &[u8]) {
        let database = self.selected;
        if self.published.contains(Class::Keyspace) {
            let channel = [format!("__keyspace@{database}__:").as_bytes(), key].concat();
            self.channels.publish(&channel, event.as_bytes(), self.now_micros);
        }
        if self.published.contains(Class::Keyevent) {
            let channel = format!("__keyevent@{database}__:{event}");
            self.channels.publish(channel.as_bytes(), key, self.now_micros);
        }
    }

    /// Notes that there is no `key`.
    fn miss(&mut self, key: &[u8]) {
        if self.is_reading {
            self.notify(KEYMISS, key);
        }
    }

    fn record_removal(&mut self, key: Arc<[u8]>, entry: &Entry, cause: Removal) {
        match cause {
            Removal::Expired => {
                self.expired += 1;
                self.notify(EXPIRED, &key);
            }
            Removal::Evicted => self.notify(EVICTED, &key),
            Removal::Deleted => {}
        }
        self.emit(Effect::Removed { key, value: entry.value.text().cloned(), cause });
    }
}
