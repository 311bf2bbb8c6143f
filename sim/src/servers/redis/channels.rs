//! Publish and subscribe: the subscribers and their pending messages. Source: `pubsub.c` of Redis 7.0.
//!
//! Messages that are published on a primary do not reach subscribers of its replicas. There are no patterns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::Notify;

use super::reply::{Protocol, Reply};

/// All subscribers, by the number of their connection.
#[derive(Debug, Default)]
pub(crate) struct Channels(BTreeMap<u64, Subscriber>);

#[derive(Debug)]
struct Subscriber {
    channels: BTreeSet<Box<[u8]>>,
    protocol: Protocol,
    /// Encoded messages that the connection has not sent yet.
    pending: Vec<u8>,
    /// Wakes the connection when there are pending messages.
    wake: Arc<Notify>,
}

impl Channels {
    /// Subscribes `client` to `channel`; `wake` is notified of messages. Returns how many channels the client
    /// has then.
    pub(crate) fn subscribe(
        &mut self,
        client: u64,
        protocol: Protocol,
        wake: &Arc<Notify>,
        channel: &[u8],
    ) -> usize {
        let subscriber = self.0.entry(client).or_insert_with(|| Subscriber {
            channels: BTreeSet::new(),
            protocol,
            pending: Vec::new(),
            wake: Arc::clone(wake),
        });
        subscriber.channels.insert(channel.into());
        subscriber.channels.len()
    }

    /// Encodes messages to `client` in another protocol from now on.
    pub(crate) fn speak(&mut self, client: u64, protocol: Protocol) {
        if let Some(subscriber) = self.0.get_mut(&client) {
            subscriber.protocol = protocol;
        }
    }

    /// Unsubscribes `client` from `channel`. Returns how many channels the client has left.
    pub(crate) fn unsubscribe(&mut self, client: u64, channel: &[u8]) -> usize {
        let Some(subscriber) = self.0.get_mut(&client) else { return 0 };
        subscriber.channels.remove(channel);
        subscriber.channels.len()
    }

    /// Returns the channels of `client`.
    pub(crate) fn of(&self, client: u64) -> Vec<Box<[u8]>> {
        self.0.get(&client).map_or_else(Vec::new, |subscriber| subscriber.channels.iter().cloned().collect())
    }

    /// Returns true if `client` has subscribed to any channel.
    pub(crate) fn listens(&self, client: u64) -> bool {
        self.0.get(&client).is_some_and(|subscriber| !subscriber.channels.is_empty())
    }

    /// Removes `client` with all its channels and pending messages.
    pub(crate) fn remove(&mut self, client: u64) {
        self.0.remove(&client);
    }

    /// Queues `message` for all subscribers of `channel`, and returns their number.
    pub(crate) fn publish(&mut self, channel: &[u8], message: &[u8]) -> usize {
        let mut count = 0;
        for subscriber in self.0.values_mut().filter(|subscriber| subscriber.channels.contains(channel)) {
            let push = [Reply::bulk("message"), Reply::bulk(channel), Reply::bulk(message)];
            Reply::Push(push.to_vec()).encode(&mut subscriber.pending, subscriber.protocol);
            subscriber.wake.notify_one();
            count += 1;
        }
        count
    }

    /// Moves the pending messages of `client` to the end of `out`.
    pub(crate) fn take_pending(&mut self, client: u64, out: &mut Vec<u8>) {
        if let Some(subscriber) = self.0.get_mut(&client) {
            out.append(&mut subscriber.pending);
        }
    }
}
