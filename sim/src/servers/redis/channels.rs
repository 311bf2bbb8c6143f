//! Publish and subscribe: the subscribers and their pending messages. Source: `pubsub.c` of Redis 7.0.
//!
//! Messages that are published on a primary do not reach subscribers of its replicas. There are no patterns.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::sync::Notify;

use super::output::{Backlog, SUBSCRIBER};
use super::reply::{Protocol, Reply};

/// All subscribers, by the number of their connection.
#[derive(Debug, Default)]
pub(crate) struct Channels(BTreeMap<u64, Subscriber>);

#[derive(Debug)]
struct Subscriber {
    channels: BTreeSet<Box<[u8]>>,
    protocol: Protocol,
    /// Encoded messages that the connection has not taken yet.
    pending: VecDeque<Vec<u8>>,
    /// Bytes that it has taken and not sent yet.
    taken: usize,
    backlog: Backlog,
    wake: Arc<Wake>,
}

/// Wakes the connection of a subscriber.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    /// There are pending messages.
    pub(crate) pending: Notify,
    /// The client reads too slowly: the connection is to be closed.
    pub(crate) overrun: Notify,
}

impl Channels {
    /// Subscribes `client` to `channel`; `wake` is notified of messages. Returns how many channels the client
    /// has then.
    pub(crate) fn subscribe(
        &mut self,
        client: u64,
        protocol: Protocol,
        wake: &Arc<Wake>,
        channel: &[u8],
    ) -> usize {
        let subscriber = self.0.entry(client).or_insert_with(|| Subscriber {
            channels: BTreeSet::new(),
            protocol,
            pending: VecDeque::new(),
            taken: 0,
            backlog: Backlog::default(),
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

    /// Queues `message` for all subscribers of `channel`, and returns their number. `now_micros` is the time
    /// on the wall clock.
    pub(crate) fn publish(&mut self, channel: &[u8], message: &[u8], now_micros: i64) -> usize {
        let mut count = 0;
        for subscriber in self.0.values_mut().filter(|subscriber| subscriber.channels.contains(channel)) {
            let push = [Reply::bulk("message"), Reply::bulk(channel), Reply::bulk(message)];
            let mut encoded = Vec::new();
            Reply::Push(push.to_vec()).encode(&mut encoded, subscriber.protocol);
            if subscriber.backlog.add(encoded.len(), SUBSCRIBER, now_micros) {
                subscriber.wake.overrun.notify_one();
            }
            subscriber.pending.push_back(encoded);
            subscriber.wake.pending.notify_one();
            count += 1;
        }
        count
    }

    /// Moves pending messages of `client` to the end of `out`, until that has `most` bytes.
    pub(crate) fn take_pending(&mut self, client: u64, out: &mut Vec<u8>, most: usize) {
        let Some(subscriber) = self.0.get_mut(&client) else { return };
        while out.len() < most
            && let Some(message) = subscriber.pending.pop_front()
        {
            subscriber.taken += message.len();
            out.extend_from_slice(&message);
        }
    }

    /// The connection of `client` has sent all that it took. Returns whether more is pending.
    pub(crate) fn sent(&mut self, client: u64) -> bool {
        let Some(subscriber) = self.0.get_mut(&client) else { return false };
        subscriber.backlog.sent(std::mem::take(&mut subscriber.taken));
        !subscriber.pending.is_empty()
    }
}
