//! Which connections watch which keys (WATCH).

use super::core::Core;
use super::effects::Effect;

/// The keys that connections watch.
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

    fn of(&self, client: u64) -> impl Iterator<Item = &Watch> {
        self.0.iter().filter(move |watch| watch.client == client)
    }
}

impl Core {
    /// Whether a key that the client watches has changed or expired since.
    pub(crate) fn watched_key_changed(&mut self, client: u64) -> bool {
        let now_ms = self.state.now_ms();
        self.watches.of(client).any(|watch| {
            let entry = self.state.keyspace.entry(&watch.key);
            watch.is_touched || entry.is_some_and(|entry| entry.is_expired(now_ms))
        })
    }
}
