//! Publish and subscribe, and MONITOR: the clients that get messages, and their pending ones. Source:
//! `pubsub.c` of Redis 7.0, and `replicationFeedMonitors`.
//!
//! Messages that are published on a primary do not reach subscribers of its replicas.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::sync::Notify;

use super::glob;
use super::output::{Backlog, SUBSCRIBER};
use super::reply::{Protocol, Reply};

/// All subscribers and monitors, by the number of their connection.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    subscribers: BTreeMap<u64, Subscriber>,
    /// The number of monitors among them.
    monitors: usize,
}

#[derive(Debug)]
struct Subscriber {
    channels: BTreeSet<Box<[u8]>>,
    /// In the order of the subscriptions.
    patterns: Vec<Box<[u8]>>,
    is_monitor: bool,
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

/// The target of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// One channel.
    Channel,
    /// All channels that match a pattern.
    Pattern,
}

impl Subscriber {
    fn new(protocol: Protocol, wake: &Arc<Wake>) -> Self {
        Self {
            channels: BTreeSet::new(),
            patterns: Vec::new(),
            is_monitor: false,
            protocol,
            pending: VecDeque::new(),
            taken: 0,
            backlog: Backlog::default(),
            wake: Arc::clone(wake),
        }
    }

    /// Returns the number of its channels and patterns.
    fn count(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    /// Queues a message of the server.
    fn push(&mut self, words: &[&[u8]], now_micros: i64) {
        let mut encoded = Vec::new();
        Reply::Push(words.iter().map(Reply::bulk).collect()).encode(&mut encoded, self.protocol);
        self.queue(encoded, now_micros);
    }

    fn queue(&mut self, encoded: Vec<u8>, now_micros: i64) {
        if self.backlog.add(encoded.len(), SUBSCRIBER, now_micros) {
            self.wake.overrun.notify_one();
        }
        self.pending.push_back(encoded);
        self.wake.pending.notify_one();
    }
}

impl Channels {
    /// Subscribes `client` to the channel or pattern `name`; `wake` is notified of messages. Returns how many
    /// channels and patterns the client has then.
    pub(crate) fn subscribe(
        &mut self,
        client: u64,
        protocol: Protocol,
        wake: &Arc<Wake>,
        topic: Topic,
        name: &[u8],
    ) -> usize {
        let subscriber = self.subscribers.entry(client).or_insert_with(|| Subscriber::new(protocol, wake));
        match topic {
            Topic::Channel => _ = subscriber.channels.insert(name.into()),
            Topic::Pattern if subscriber.patterns.iter().any(|known| **known == *name) => {}
            Topic::Pattern => subscriber.patterns.push(name.into()),
        }
        subscriber.count()
    }

    /// Shows `client` all commands from now on. Returns false if it is a monitor already.
    pub(crate) fn monitor(&mut self, client: u64, protocol: Protocol, wake: &Arc<Wake>) -> bool {
        let subscriber = self.subscribers.entry(client).or_insert_with(|| Subscriber::new(protocol, wake));
        let is_new = !std::mem::replace(&mut subscriber.is_monitor, true);
        self.monitors += usize::from(is_new);
        is_new
    }

    /// Encodes messages to `client` in another protocol from now on.
    pub(crate) fn speak(&mut self, client: u64, protocol: Protocol) {
        if let Some(subscriber) = self.subscribers.get_mut(&client) {
            subscriber.protocol = protocol;
        }
    }

    /// Unsubscribes `client` from the channel or pattern `name`. Returns how many channels and patterns the
    /// client has left.
    pub(crate) fn unsubscribe(&mut self, client: u64, topic: Topic, name: &[u8]) -> usize {
        let Some(subscriber) = self.subscribers.get_mut(&client) else { return 0 };
        match topic {
            Topic::Channel => _ = subscriber.channels.remove(name),
            Topic::Pattern => subscriber.patterns.retain(|pattern| **pattern != *name),
        }
        subscriber.count()
    }

    /// Returns the channels or the patterns of `client`.
    pub(crate) fn of(&self, client: u64, topic: Topic) -> Vec<Box<[u8]>> {
        let Some(subscriber) = self.subscribers.get(&client) else { return Vec::new() };
        match topic {
            Topic::Channel => subscriber.channels.iter().cloned().collect(),
            Topic::Pattern => subscriber.patterns.clone(),
        }
    }

    /// Returns the number of channels and patterns of `client`.
    pub(crate) fn count(&self, client: u64) -> usize {
        self.subscribers.get(&client).map_or(0, Subscriber::count)
    }

    /// Returns all channels that have subscribers, in order.
    pub(crate) fn active(&self) -> BTreeSet<&[u8]> {
        let channels = self.subscribers.values().flat_map(|subscriber| &subscriber.channels);
        channels.map(|channel| &**channel).collect()
    }

    /// Returns the number of subscribers of `channel`, without those of patterns.
    pub(crate) fn subscribers_of(&self, channel: &[u8]) -> usize {
        self.subscribers.values().filter(|subscriber| subscriber.channels.contains(channel)).count()
    }

    /// Returns the number of different patterns.
    pub(crate) fn patterns(&self) -> usize {
        let patterns = self.subscribers.values().flat_map(|subscriber| &subscriber.patterns);
        patterns.collect::<BTreeSet<_>>().len()
    }

    /// Returns true if there are monitors.
    pub(crate) fn has_monitors(&self) -> bool {
        self.monitors > 0
    }

    /// Returns true if `client` is a monitor.
    pub(crate) fn is_monitor(&self, client: u64) -> bool {
        self.monitors > 0 && self.subscribers.get(&client).is_some_and(|subscriber| subscriber.is_monitor)
    }

    /// Ends all subscriptions of `client`, and MONITOR. Messages that it has not taken yet stay.
    pub(crate) fn reset(&mut self, client: u64) {
        let Some(subscriber) = self.subscribers.get_mut(&client) else { return };
        subscriber.channels.clear();
        subscriber.patterns.clear();
        subscriber.protocol = Protocol::Resp2;
        self.monitors -= usize::from(std::mem::take(&mut subscriber.is_monitor));
    }

    /// Removes `client` with all its channels and pending messages.
    pub(crate) fn remove(&mut self, client: u64) {
        if let Some(subscriber) = self.subscribers.remove(&client) {
            self.monitors -= usize::from(subscriber.is_monitor);
        }
    }

    /// Queues `message` for all subscribers of `channel`, and returns how often. A client gets it once for
    /// its channel, and once for each pattern that matches. `now_micros` is the time on the wall clock.
    pub(crate) fn publish(&mut self, channel: &[u8], message: &[u8], now_micros: i64) -> usize {
        let mut count = 0;
        for subscriber in self.subscribers.values_mut() {
            if subscriber.channels.contains(channel) {
                subscriber.push(&[b"message", channel, message], now_micros);
                count += 1;
            }
            for at in 0..subscriber.patterns.len() {
                if glob::matches(&subscriber.patterns[at], channel) {
                    let pattern = subscriber.patterns[at].clone();
                    subscriber.push(&[b"pmessage", &pattern, channel, message], now_micros);
                    count += 1;
                }
            }
        }
        count
    }

    /// Queues the line of a command for all monitors but `client`, which sent the command.
    pub(crate) fn show(&mut self, line: &[u8], client: Option<u64>, now_micros: i64) {
        let others = self.subscribers.iter_mut().filter(|(id, _)| Some(**id) != client);
        for (_, monitor) in others.filter(|(_, subscriber)| subscriber.is_monitor) {
            monitor.queue(line.to_vec(), now_micros);
        }
    }

    /// Moves pending messages of `client` to the end of `out`, until that has `most` bytes.
    pub(crate) fn take_pending(&mut self, client: u64, out: &mut Vec<u8>, most: usize) {
        let Some(subscriber) = self.subscribers.get_mut(&client) else { return };
        while out.len() < most
            && let Some(message) = subscriber.pending.pop_front()
        {
            subscriber.taken += message.len();
            out.extend_from_slice(&message);
        }
    }

    /// The connection of `client` has sent all that it took. Returns whether more is pending.
    pub(crate) fn sent(&mut self, client: u64) -> bool {
        let Some(subscriber) = self.subscribers.get_mut(&client) else { return false };
        subscriber.backlog.sent(std::mem::take(&mut subscriber.taken));
        !subscriber.pending.is_empty()
    }
}
