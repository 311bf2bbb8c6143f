//! The keys that connections watch (WATCH).

use super::effects::Effect;
use super::state::State;

/// The watched keys of all connections.
#[derive(Debug, Default)]
pub(crate) struct Watches(Vec<Watch>);

#[derive(Debug)]
struct Watch {
    client: u64,
    key: Box<[u8]>,
    is_touched: bool,
}

impl Watches {
    pub(crate) fn add(&mut self, client: u64, key: &[u8]) {
        if !self.0.iter().any(|watch| watch.client == client && *watch.key == *key) {
            self.0.push(Watch { client, key: key.into(), is_touched: false });
        }
    }

    pub(crate) fn remove(&mut self, client: u64) {
        self.0.retain(|watch| watch.client != client);
    }

    /// Marks the watched keys among those that changed.
    pub(crate) fn touch(&mut self, effects: &[Effect]) {
        for watch in &mut self.0 {
            watch.is_touched |= effects.iter().any(|effect| effect.changes(&watch.key));
        }
    }

    /// Returns true if a key that the client watches has changed or expired.
    pub(crate) fn have_changed(&self, client: u64, state: &State) -> bool {
        let now_ms = state.now_ms();
        self.0.iter().filter(|watch| watch.client == client).any(|watch| {
            let entry = state.keyspace.entry(&watch.key);
            watch.is_touched || entry.is_some_and(|entry| entry.is_expired(now_ms))
        })
    }
}
