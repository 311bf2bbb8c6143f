//! The keys that connections watch (WATCH). Source: `multi.c` of Redis 7.0.

use super::effects::Effect;
use super::state::State;

/// The watched keys of all connections.
#[derive(Debug, Default)]
pub(crate) struct Watches(Vec<Watch>);

#[derive(Debug)]
struct Watch {
    client: u64,
    database: usize,
    key: Box<[u8]>,
    /// The key had expired when the watch began, and is still stored: to clients it was missing already.
    was_expired: bool,
    is_touched: bool,
}

impl Watches {
    /// Watches a key of the selected database. An expired one stays stored.
    pub(crate) fn add(&mut self, client: u64, state: &State, key: &[u8]) {
        let database = state.selected();
        let is_same =
            |watch: &Watch| watch.client == client && watch.database == database && *watch.key == *key;
        if !self.0.iter().any(is_same) {
            let was_expired = is_expired(state, database, key);
            self.0.push(Watch { client, database, key: key.into(), was_expired, is_touched: false });
        }
    }

    pub(crate) fn remove(&mut self, client: u64) {
        self.0.retain(|watch| watch.client != client);
    }

    /// Marks the watched keys among those that changed.
    pub(crate) fn touch(&mut self, effects: &[Effect]) {
        if self.0.is_empty() {
            return;
        }
        let mut now = 0;
        for effect in effects {
            if let Effect::Selected { database } = effect {
                now = *database;
            }
            for watch in self.0.iter_mut().filter(|watch| watch.database == now) {
                if effect.changes(&watch.key) {
                    watch.touch(effect);
                }
            }
        }
    }

    /// Returns true if a key that the client watches has changed, or has expired since the watch began.
    pub(crate) fn have_changed(&self, client: u64, state: &State) -> bool {
        self.0.iter().filter(|watch| watch.client == client).any(|watch| watch.has_changed(state))
    }
}

impl Watch {
    /// Marks the key as changed by `effect`. The removal of a key that had expired before the watch is no
    /// change.
    fn touch(&mut self, effect: &Effect) {
        let is_removal = matches!(effect, Effect::Removed { .. } | Effect::Flushed { .. });
        self.is_touched |= !(self.was_expired && is_removal);
        self.was_expired = false;
    }

    fn has_changed(&self, state: &State) -> bool {
        self.is_touched || (!self.was_expired && is_expired(state, self.database, &self.key))
    }
}

/// Returns true if a key has expired and is still stored.
fn is_expired(state: &State, database: usize, key: &[u8]) -> bool {
    let entry = state.databases().get(database).and_then(|keyspace| keyspace.entry(key));
    entry.is_some_and(|entry| entry.is_expired(state.now_ms()))
}
