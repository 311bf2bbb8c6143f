//! Access to values by their types, and the record of changes to collections.

use std::sync::Arc;

use super::effects::Effect;
use super::events::{Event, NEW};
use super::keyspace::Entry;
use super::reply::{Reply, push_command};
use super::state::State;
use super::value::{Collection, Value};

/// The error for a key with a value of another type.
pub(crate) const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

impl Entry {
    /// Returns the bytes of a string, or the error for other types.
    pub(crate) fn text(&self) -> Result<&Arc<[u8]>, Reply> {
        self.value.text().ok_or(Reply::error(WRONG_TYPE))
    }

    /// Returns the collection, or the error for other types.
    pub(crate) fn collection<T: Collection>(&self) -> Result<&T, Reply> {
        T::of(&self.value).ok_or(Reply::error(WRONG_TYPE))
    }
}

impl State {
    /// Returns the bytes of the string `key`; `None` if there is no such key.
    pub(crate) fn text(&mut self, key: &[u8]) -> Result<Option<Arc<[u8]>>, Reply> {
        self.lookup(key).map(|entry| entry.text().cloned()).transpose()
    }

    /// Returns the collection `key`; `None` if there is no such key.
    pub(crate) fn read<T: Collection>(&mut self, key: &[u8]) -> Result<Option<&T>, Reply> {
        self.lookup(key).map(Entry::collection).transpose()
    }

    /// As [`State::read`], to change the collection. Call [`State::changed`] afterwards.
    pub(crate) fn edit<T: Collection>(&mut self, key: &[u8]) -> Result<Option<&mut T>, Reply> {
        self.lookup(key);
        let Some(entry) = self.live_entry_mut(key) else { return Ok(None) };
        T::of_mut(&mut entry.value).map(Some).ok_or(Reply::error(WRONG_TYPE))
    }

    /// As [`State::edit`]; creates an empty collection if there is no such key. `None` stands for that error,
    /// too.
    pub(crate) fn edit_or_create<T: Collection>(&mut self, key: &[u8]) -> Result<&mut T, Reply> {
        if self.lookup(key).is_none() {
            self.store(key, T::empty(), None);
        }
        self.edit(key)?.ok_or(Reply::error(WRONG_TYPE))
    }

    /// Stores a value under `key` without a record of it. Returns the former entry.
    pub(crate) fn store(&mut self, key: &[u8], value: Value, expires_at: Option<i64>) -> Option<Entry> {
        let entry = Entry::new(value, expires_at, self.now_micros);
        self.store_entry(key, entry)
    }

    fn store_entry(&mut self, key: &[u8], entry: Entry) -> Option<Entry> {
        let is_awaited = entry.value.is_awaited();
        let (_, former) = self.keyspace_mut().insert(key, entry);
        if former.is_none() {
            self.notify(NEW, key);
        }
        if is_awaited && former.is_none() {
            let database = self.selected();
            self.wishes.note_new(database, key);
        }
        former
    }

    /// Records that the collection `key` was changed by the command `words`, and publishes the `event`.
    /// Removes the key if it is empty.
    pub(crate) fn changed(&mut self, key: &[u8], event: Event, words: &[&[u8]]) {
        self.notify(event, key);
        self.as_command(words, |state| state.touch(key));
    }

    /// Records a change of the collection `key` inside of [`State::as_command`]. Removes it if it is empty.
    pub(crate) fn touch(&mut self, key: &[u8]) {
        match self.keyspace().entry(key) {
            Some(entry) if entry.value.is_empty() => _ = self.clear(key),
            Some(entry) => {
                let next_field = entry.value.next_field_expiry();
                self.note_change(key, next_field);
            }
            None => self.note_change(key, None),
        }
    }

    /// As [`State::touch`], but keeps an empty collection: it is not the command's last change.
    pub(crate) fn touch_part(&mut self, key: &[u8]) {
        let next_field = self.keyspace().entry(key).and_then(|entry| entry.value.next_field_expiry());
        self.note_change(key, next_field);
    }

    /// `next_field`: the time at which the next field of a hash expires.
    fn note_change(&mut self, key: &[u8], next_field: Option<i64>) {
        self.keyspace_mut().set_next_field(key, next_field);
        self.emit(Effect::Changed { key: key.into() });
    }

    /// Replaces `key` by a collection, or removes it if that is empty, inside of [`State::as_command`].
    pub(crate) fn replace(&mut self, key: &[u8], value: Value, event: Event) {
        if value.is_empty() {
            self.clear(key);
        } else {
            self.copied_bytes += value.bytes();
            self.store(key, value, None);
            self.notify(event, key);
            self.emit(Effect::Changed { key: key.into() });
        }
    }

    /// Stores `entry` under `key`, which does not exist, inside of [`State::as_command`].
    pub(crate) fn put(&mut self, key: &[u8], entry: Entry) {
        let (text, expires_at) = (entry.value.text().cloned(), entry.expires_at);
        self.copied_bytes += entry.value.bytes();
        self.store_entry(key, entry);
        let key = key.into();
        self.emit(match text {
            Some(value) => Effect::Set { key, value, expires_at, former: None },
            None => Effect::Changed { key },
        });
    }

    /// Runs `work` and records that the command `words` repeats all of its effects, except the removal of
    /// keys that expire, which comes before it. Expired keys of other databases must be looked up before.
    pub(crate) fn as_command<T>(&mut self, words: &[&[u8]], work: impl FnOnce(&mut Self) -> T) -> T {
        // The command runs in this database, though its effects may begin in another one.
        let former = self.record.select(self.selected());
        let at = self.record.effects.len();
        let outcome = work(self);
        let effects = &mut self.record.effects[at..];
        effects.sort_by_key(|effect| !effect.is_expiry());
        let at = at + effects.iter().take_while(|effect| effect.is_expiry()).count();
        let covers = self.record.effects.len() - at;
        if covers > 0 {
            let mut encoded = Vec::new();
            push_command(&mut encoded, words);
            self.record.effects.insert(at, Effect::Command { encoded, covers });
        } else {
            self.record.unselect(former);
        }
        outcome
    }

    /// Returns the entry of `key`, to change its value; `None` if it has expired.
    fn live_entry_mut(&mut self, key: &[u8]) -> Option<&mut Entry> {
        let sees_expired = self.is_replaying;
        let now_ms = self.now_ms();
        self.keyspace_mut().entry_mut(key).filter(|entry| sees_expired || !entry.is_expired(now_ms))
    }
}
