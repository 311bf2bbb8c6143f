//! The expiries of hash fields. Source: `t_hash.c` and `db.c` of Redis 8 and Valkey 9.1.
//!
//! Redis removes an expired field when a command reads it. In Valkey such a field is hidden until the server
//! looks for it, or until a command overwrites it. Both look for expired fields as they do for expired keys.

use std::sync::Arc;

use super::events::{Class, Event, HEXPIRED};
use super::reply::Reply;
use super::state::State;
use super::value::{Collection, Hash};
use super::version::Version;

/// Before any expiry.
const NEVER: i64 = i64::MIN;

impl State {
    pub(crate) fn is_valkey(&self) -> bool {
        self.version == Version::Valkey9
    }

    /// Returns the time by which fields have expired, in milliseconds. Commands from the append-only file or
    /// from the primary still see expired fields: their removal comes as a command of its own.
    pub(crate) fn field_clock(&self) -> i64 {
        if self.is_replaying { NEVER } else { self.now_ms() }
    }

    /// As [`State::field_clock`], for commands that change fields: only Valkey hides expired ones from them.
    pub(crate) fn hidden_clock(&self) -> i64 {
        if self.is_valkey() { self.field_clock() } else { NEVER }
    }

    /// Returns true if a key or a field that gets the expiry `at` is removed at once.
    pub(crate) fn is_past(&self, at: i64) -> bool {
        at <= self.now_ms() && !self.is_replaying
    }

    /// Returns the time at which Valkey treats a field as expired if a command overwrites it: then it is new.
    pub(crate) fn overwrite_clock(&self) -> i64 {
        // A millisecond before others: so does Valkey.
        self.hidden_clock().saturating_add(1)
    }

    /// As [`State::read`], for a command that reads the fields `named`: Redis removes the expired ones first.
    pub(crate) fn read_fields<'a>(
        &mut self,
        key: &[u8],
        named: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Option<&Hash>, Reply> {
        if !self.removes_expired() {
            return self.read(key);
        }
        let now_ms = self.now_ms();
        let Some(hash) = self.read::<Hash>(key)? else { return Ok(None) };
        let expired: Vec<_> = named.into_iter().filter(|field| hash.has_expired(field, now_ms)).collect();
        self.remove_fields(key, &expired, HEXPIRED, false);
        Ok(self.keyspace().entry(key).and_then(|entry| Hash::of(&entry.value)))
    }

    /// As [`State::read_fields`], for a command that may read any field.
    pub(crate) fn read_all_fields(&mut self, key: &[u8]) -> Result<Option<&Hash>, Reply> {
        if !self.removes_expired() {
            return self.read(key);
        }
        let now_ms = self.now_ms();
        let expired = self.read::<Hash>(key)?.map_or_else(Vec::new, |hash| hash.expired(now_ms));
        self.remove_fields(key, &slices(&expired), HEXPIRED, false);
        Ok(self.keyspace().entry(key).and_then(|entry| Hash::of(&entry.value)))
    }

    /// Returns true if commands remove the expired fields that they read.
    pub(crate) fn removes_expired(&self) -> bool {
        self.version == Version::Redis84 && !self.is_replica && !self.is_replaying
    }

    /// Removes fields of the hash `key`, by a command for each as Redis does, and publishes `event`. Removes
    /// the key with its last field, unless `keeps_key`. Fields that the caller has removed are recorded all
    /// the same.
    pub(crate) fn remove_fields(&mut self, key: &[u8], fields: &[&[u8]], event: Event, keeps_key: bool) {
        if fields.is_empty() {
            return;
        }
        self.drop_fields(key, fields);
        self.notify(event, key);
        for (at, field) in fields.iter().enumerate() {
            self.as_command(&[b"HDEL", key, field], |state| {
                if at + 1 == fields.len() && !keeps_key {
                    state.touch(key);
                } else {
                    state.touch_part(key);
                }
            });
        }
    }

    /// Removes all expired fields of the selected database.
    pub(crate) fn expire_due_fields(&mut self) {
        let now_ms = self.now_ms();
        while let Some(key) = self.keyspace().hash_with_expired(now_ms) {
            let hash = self.keyspace().entry(&key).and_then(|entry| Hash::of(&entry.value));
            let expired = hash.map_or_else(Vec::new, |hash| hash.expired(now_ms));
            if expired.is_empty() {
                // The database and the hash disagree, which must not make this loop endless.
                self.keyspace_mut().set_next_field(&key, None);
            } else if self.is_valkey() {
                self.remove_together(&key, &slices(&expired));
            } else {
                self.remove_fields(&key, &slices(&expired), HEXPIRED, false);
            }
        }
    }

    /// Removes fields of the hash `key` by one command, as Valkey does, and another for a key without fields.
    fn remove_together(&mut self, key: &[u8], fields: &[&[u8]]) {
        self.drop_fields(key, fields);
        self.notify(Event(Class::Expired, HEXPIRED.1), key);
        let words: Vec<_> = [&b"HDEL"[..], key].into_iter().chain(fields.iter().copied()).collect();
        self.as_command(&words, |state| state.touch_part(key));
        if self.keyspace().entry(key).is_some_and(|entry| entry.value.is_empty()) {
            self.clear(key);
        }
    }

    fn drop_fields(&mut self, key: &[u8], fields: &[&[u8]]) {
        let hash = self.keyspace_mut().entry_mut(key).and_then(|entry| Hash::of_mut(&mut entry.value));
        if let Some(hash) = hash {
            fields.iter().for_each(|field| _ = hash.remove(field));
        }
    }
}

fn slices(fields: &[Arc<[u8]>]) -> Vec<&[u8]> {
    fields.iter().map(|field| &**field).collect()
}
