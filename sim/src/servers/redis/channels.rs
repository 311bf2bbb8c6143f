//! Publish and subscribe: who listens on which channels, and what is still to be sent to whom. Source: `pubsub.c` of
//! Redis 7.0.
//!
//! What a primary publishes does not reach those who listen to its replicas, and there are no patterns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::Notify;

use super::reply::{Protocol, Reply};

/// Everyone who listens.
#[derive(Debug, Default)]
pub(crate) struct Channels(BTreeMap<u64, Listener>);

#[derive(Debug)]
struct Listener {
    channels: BTreeSet<Box<[u8]>>,
    protocol: Protocol,
    /// Messages as they go over the wire, until the connection takes them.
    mail: Vec<u8>,
    bell: Arc<Notify>,
}

impl Channels {
    /// Has `client` listen on `channel`, and rings `bell` when there is mail. Returns on how many it listens then.
    pub(crate) fn subscribe(
        &mut self,
        client: u64,
        protocol: Protocol,
        bell: &Arc<Notify>,
        channel: &[u8],
    ) -> usize {
        let listener = self.0.entry(client).or_insert_with(|| Listener {
            channels: BTreeSet::new(),
            protocol,
            mail: Vec::new(),
            bell: Arc::clone(bell),
        });
        listener.channels.insert(channel.into());
        listener.channels.len()
    }

    /// Has messages to `client` be in another protocol from here on.
    pub(crate) fn speak(&mut self, client: u64, protocol: Protocol) {
        if let Some(listener) = self.0.get_mut(&client) {
            listener.protocol = protocol;
        }
    }

    /// Ends that, and returns on how many channels it still listens.
    pub(crate) fn unsubscribe(&mut self, client: u64, channel: &[u8]) -> usize {
        let Some(listener) = self.0.get_mut(&client) else { return 0 };
        listener.channels.remove(channel);
        listener.channels.len()
    }

    /// The channels on which `client` listens.
    pub(crate) fn of(&self, client: u64) -> Vec<Box<[u8]>> {
        self.0.get(&client).map_or_else(Vec::new, |listener| listener.channels.iter().cloned().collect())
    }

    /// Whether `client` listens on any.
    pub(crate) fn listens(&self, client: u64) -> bool {
        self.0.get(&client).is_some_and(|listener| !listener.channels.is_empty())
    }

    /// Ends all that `client` listens to, and drops its mail.
    pub(crate) fn remove(&mut self, client: u64) {
        self.0.remove(&client);
    }

    /// Puts `message` into the mail of all who listen on `channel`, and returns how many those are.
    pub(crate) fn publish(&mut self, channel: &[u8], message: &[u8]) -> usize {
        let mut count = 0;
        for listener in self.0.values_mut().filter(|listener| listener.channels.contains(channel)) {
            let push = [Reply::bulk("message"), Reply::bulk(channel), Reply::bulk(message)];
            Reply::Push(push.to_vec()).encode(&mut listener.mail, listener.protocol);
            listener.bell.notify_one();
            count += 1;
        }
        count
    }

    /// Moves the mail of `client` to the end of `out`.
    pub(crate) fn take_mail(&mut self, client: u64, out: &mut Vec<u8>) {
        if let Some(listener) = self.0.get_mut(&client) {
            out.append(&mut listener.mail);
        }
    }
}
