//! The keys that connections watch (WATCH).

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
    is_touched: bool,
}

impl Watches {
    pub(crate) fn add(&mut self, client: u64, database: usize, key: &[u8]) {
        let is_same =
            |watch: &Watch| watch.client == client && watch.database == database && *watch.key == *key;
        if !self.0.iter().any(is_same) {
            self.0.push(Watch { client, database, key: key.into(), is_touched: false });
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
                watch.is_touched |= effect.changes(&watch.key);
            }
        }
    }

    /// Returns true if a key that the client watches has changed or expired.
    pub(crate) fn have_changed(&self, client: u64, state: &State) -> bool {
        let now_ms = state.now_ms();
        self.0.iter().filter(|watch| watch.client == client).any(|watch| {
            let keyspace = state.databases().get(watch.database);
            let entry = keyspace.and_then(|keyspace| keyspace.entry(&watch.key));
            watch.is_touched || entry.is_some_and(|entry| entry.is_expired(now_ms))
        })
    }
}
