//! The keys of one database: values by name, some with an expiry.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use super::deadlines::Deadlines;
use super::effects::KeyValue;
use super::value::Value;

/// A key's value and expiry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    /// Milliseconds since the Unix epoch on the server's wall clock, as in Redis: a clock that steps forward
    /// expires keys at once, one that steps back prolongs them.
    pub(crate) expires_at: Option<i64>,
    /// The last use, in microseconds on the wall clock.
    pub(crate) used_micros: Cell<i64>,
}

/// All keys, in order of their names.
#[derive(Debug, Default)]
pub(crate) struct Keyspace {
    entries: BTreeMap<Arc<[u8]>, Entry>,
    /// Expiries in order of time. An entry that changed leaves its old expiry here, which
    /// [`Keyspace::pop_due`] skips.
    due: BinaryHeap<Reverse<(i64, Arc<[u8]>)>>,
    /// The expiry of the field that expires first, of each hash with such fields.
    hashes: Deadlines,
}

impl Entry {
    /// Creates an entry at the time `now_micros`.
    pub(crate) fn new(value: Value, expires_at: Option<i64>, now_micros: i64) -> Self {
        Self { value, expires_at, used_micros: Cell::new(now_micros) }
    }

    /// Returns true if the key has expired at `now_ms`. A key lives through the millisecond of its expiry, as
    /// in Redis.
    pub(crate) fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_at.is_some_and(|at| now_ms > at)
    }
}

impl Keyspace {
    /// Returns the entry of `key`, expired or not.
    pub(crate) fn entry(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Returns the entry of `key`, to change its value.
    pub(crate) fn entry_mut(&mut self, key: &[u8]) -> Option<&mut Entry> {
        self.entries.get_mut(key)
    }

    /// Stores `entry` under `key` and returns the key's name and the former entry.
    pub(crate) fn insert(&mut self, key: &[u8], entry: Entry) -> (Arc<[u8]>, Option<Entry>) {
        let expires_at = entry.expires_at;
        let name: Arc<[u8]> = key.into();
        self.set_next_field(&name, entry.value.next_field_expiry());
        let former = self.entries.insert(name.clone(), entry);
        if let Some(at) = expires_at {
            self.push_due(at, name.clone());
        }
        (name, former)
    }

    /// Changes the expiry of `key` and returns its name and value, or `None` if it does not exist.
    pub(crate) fn expire_at(&mut self, key: &[u8], at: Option<i64>) -> Option<KeyValue> {
        let value = {
            let entry = self.entries.get_mut(key)?;
            entry.expires_at = at;
            entry.value.text().cloned()
        };
        let name: Arc<[u8]> = key.into();
        if let Some(at) = at {
            self.push_due(at, name.clone());
        }
        Some(KeyValue { key: name, value })
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<(Arc<[u8]>, Entry)> {
        self.set_next_field(key, None);
        self.entries.remove_entry(key)
    }

    /// Removes everything and returns the keys and their values.
    pub(crate) fn clear(&mut self) -> Vec<KeyValue> {
        self.due.clear();
        self.hashes.clear();
        std::mem::take(&mut self.entries)
            .into_iter()
            .map(|(key, entry)| KeyValue { key, value: entry.value.text().cloned() })
            .collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<[u8]>, &Entry)> {
        self.entries.iter()
    }

    /// Returns a time before which no key expires, or `None` if no key has an expiry.
    pub(crate) fn next_due(&self) -> Option<i64> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes the key that expired first, if any had expired by `now_ms`.
    pub(crate) fn pop_due(&mut self, now_ms: i64) -> Option<(Arc<[u8]>, Entry)> {
        while self.next_due().is_some_and(|at| now_ms > at) {
            let Reverse((at, key)) = self.due.pop()?;
            let is_current = self.entries.get(&key).is_some_and(|entry| entry.expires_at == Some(at));
            if is_current {
                return self.remove(&key);
            }
        }
        None
    }

    /// Notes at which time the next field of the hash `key` expires, if one does.
    pub(crate) fn set_next_field(&mut self, key: &[u8], at: Option<i64>) {
        if at.is_some() || !self.hashes.is_empty() {
            self.hashes.set(key, at);
        }
    }

    /// Returns the time at which the next field of a hash expires, or `None` if no field has an expiry.
    pub(crate) fn next_field(&self) -> Option<i64> {
        self.hashes.first()
    }

    /// Returns a hash with fields that have expired at `now_ms`.
    pub(crate) fn hash_with_expired(&self, now_ms: i64) -> Option<Arc<[u8]>> {
        self.hashes.passed(now_ms).next().cloned()
    }

    fn push_due(&mut self, at: i64, key: Arc<[u8]>) {
        if self.due.len() > 2 * self.entries.len() + 64 {
            self.rebuild_due();
        }
        self.due.push(Reverse((at, key)));
    }

    /// Drops the expiries of changed entries, so that a key that is set a million times needs the memory of
    /// one.
    fn rebuild_due(&mut self) {
        let lines =
            self.entries.iter().filter_map(|(key, entry)| Some(Reverse((entry.expires_at?, key.clone()))));
        self.due = lines.collect();
    }
}
