//! The data that commands work on: the keyspace, the time of the running command, and the record of its
//! effects.

use std::sync::Arc;

use super::channels::Channels;
use super::effects::{Effect, KeyValue, Removal};
use super::keyspace::{Entry, Keyspace};
use super::random::Rand48;
use super::reply::Reply;
use super::request::Args;
use super::version::Version;

/// The server's data. A script takes it into the interpreter while it runs.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) keyspace: Keyspace,
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
    /// The effects and commands since the record was last taken.
    pub(crate) record: Record,
    /// Commands executed since the server started, those inside scripts included.
    pub(crate) executed: u64,
    /// Keys expired since the server started.
    pub(crate) expired: u64,
    /// The generator behind `math.random`.
    pub(crate) random: Rand48,
    /// The subscribers of channels.
    pub(crate) channels: Channels,
}

/// The effects and the names of the commands that were executed, in order.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) effects: Vec<Effect>,
    pub(crate) commands: Vec<&'static str>,
    /// The commands that were refused as unknown.
    pub(crate) unknown: Vec<String>,
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

    /// Returns true if a key expired.
    pub(crate) fn has_expired(&self) -> bool {
        let is_expiry = |effect: &Effect| matches!(effect, Effect::Removed { cause: Removal::Expired, .. });
        self.effects.iter().any(is_expiry)
    }

    pub(crate) fn clear(&mut self) {
        self.effects.clear();
        self.commands.clear();
        self.unknown.clear();
    }
}

impl State {
    pub(crate) fn now_ms(&self) -> i64 {
        self.now_micros / 1000
    }

    /// Runs a command on keys.
    pub(crate) fn execute(
        &mut self,
        name: &'static str,
        run: fn(&mut State, Args<'_>) -> Reply,
        args: Args<'_>,
    ) -> Reply {
        self.executed(name);
        run(self, args)
    }

    pub(crate) fn executed(&mut self, name: &'static str) {
        self.executed += 1;
        self.record.commands.push(name);
    }

    /// Returns the entry of `key`. A primary removes an expired one; it is not returned.
    pub(crate) fn lookup(&mut self, key: &[u8]) -> Option<&Entry> {
        let now_ms = self.now_ms();
        let none_is_due = self.keyspace.next_due().is_none_or(|at| now_ms <= at);
        if !none_is_due && self.keyspace.entry(key)?.is_expired(now_ms) && !self.is_replaying {
            if !self.is_replica {
                self.remove(key, Removal::Expired);
            }
            return None;
        }
        self.keyspace.entry(key)
    }

    pub(crate) fn value(&mut self, key: &[u8]) -> Option<Arc<[u8]>> {
        self.lookup(key).map(|entry| entry.value.clone())
    }

    pub(crate) fn set(&mut self, key: &[u8], value: Arc<[u8]>, expires_at: Option<i64>) {
        let (key, former) = self.keyspace.insert(key, Entry { value: value.clone(), expires_at });
        let former = former.map(|entry| entry.value);
        self.record.effects.push(Effect::Set { key, value, expires_at, former });
    }

    /// Sets a counter to `value`, which differs from the former by `by`, and keeps its expiry.
    pub(crate) fn count(&mut self, key: &[u8], value: i64, by: i64) {
        let expires_at = self.keyspace.entry(key).and_then(|entry| entry.expires_at);
        let text = super::number::with_i64(value, |text| Arc::from(text));
        let (key, _) = self.keyspace.insert(key, Entry { value: text, expires_at });
        self.record.effects.push(Effect::Counted { key, value, by });
    }

    pub(crate) fn expire_at(&mut self, key: &[u8], at: Option<i64>) {
        if let Some(KeyValue { key, value }) = self.keyspace.expire_at(key, at) {
            self.record.effects.push(Effect::Extended { key, value, expires_at: at });
        }
    }

    /// Removes `key`. Returns whether it existed.
    pub(crate) fn remove(&mut self, key: &[u8], cause: Removal) -> bool {
        let Some((key, entry)) = self.keyspace.remove(key) else { return false };
        self.record_removal(key, entry, cause);
        true
    }

    /// Deletes `key` for a client. A key that has expired is removed as such. Returns whether it was deleted.
    pub(crate) fn delete(&mut self, key: &[u8]) -> bool {
        self.lookup(key).is_some() && self.remove(key, Removal::Deleted)
    }

    pub(crate) fn flush(&mut self) {
        let entries = self.keyspace.clear();
        self.record.effects.push(Effect::Flushed { entries });
    }

    /// Removes every expired key.
    pub(crate) fn expire_due(&mut self) {
        while let Some((key, entry)) = self.keyspace.pop_due(self.now_ms()) {
            self.record_removal(key, entry, Removal::Expired);
        }
    }

    fn record_removal(&mut self, key: Arc<[u8]>, entry: Entry, cause: Removal) {
        if cause == Removal::Expired {
            self.expired += 1;
        }
        self.record.effects.push(Effect::Removed { key, value: entry.value, cause });
    }
}
