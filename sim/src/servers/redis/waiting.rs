//! The clients that wait for elements of lists and sorted sets (BLPOP and its like). Source: `blocked.c` of
//! Redis 7.0.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use tokio::sync::Notify;

use super::reply::Reply;
use super::request::{ArgBuffer, Args};

/// Takes elements of a key for the client that sent the command `args`, and returns its reply; `None` if the
/// key has no elements of the right type.
pub(crate) type Serve<S> = fn(&mut S, &[u8], Args<'_>) -> Option<Reply>;

/// The elements that a client waits for. `S` is the server's data.
pub(crate) struct Wish<S> {
    keys: Vec<Arc<[u8]>>,
    command: ArgBuffer,
    serve: Serve<S>,
    /// In microseconds on the wall clock; `None`: there is no deadline.
    deadline_micros: Option<i64>,
}

/// The end of a client's wait, for its connection.
#[derive(Debug)]
pub(crate) struct Blocked {
    /// Notified when there is a reply, and when the clock was set.
    pub(crate) wake: Arc<Notify>,
    pub(crate) deadline_micros: Option<i64>,
}

/// All clients that wait, in the order in which they began.
#[derive(Debug)]
pub(crate) struct WishList<S> {
    waiters: Vec<Waiter<S>>,
    /// The keys that came into being while a client waited for them, with their databases.
    new_keys: VecDeque<(usize, Arc<[u8]>)>,
    /// The replies to clients whose wait is over, by the number of the connection.
    replies: BTreeMap<u64, Reply>,
}

#[derive(Debug)]
pub(super) struct Waiter<S> {
    client: u64,
    /// The client's name for observers.
    label: String,
    database: usize,
    wish: Wish<S>,
    wake: Arc<Notify>,
}

impl<S> Wish<S> {
    /// Creates the wish of the command `args`, which waits for `keys`.
    pub(crate) fn new<'a>(
        keys: impl Iterator<Item = &'a [u8]>,
        args: Args<'_>,
        serve: Serve<S>,
        deadline_micros: Option<i64>,
    ) -> Self {
        let mut command = ArgBuffer::default();
        args.iter().for_each(|arg| command.push(arg));
        Self { keys: keys.map(Arc::from).collect(), command, serve, deadline_micros }
    }
}

impl<S> fmt::Debug for Wish<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wish").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl<S> Default for WishList<S> {
    fn default() -> Self {
        Self { waiters: Vec::new(), new_keys: VecDeque::new(), replies: BTreeMap::new() }
    }
}

impl<S> WishList<S> {
    /// Adds the client behind the connection numbered `client`.
    pub(crate) fn add(&mut self, client: u64, label: &str, database: usize, wish: Wish<S>) -> Blocked {
        let wake = Arc::new(Notify::new());
        let blocked = Blocked { wake: wake.clone(), deadline_micros: wish.deadline_micros };
        self.waiters.push(Waiter { client, label: label.to_owned(), database, wish, wake });
        blocked
    }

    /// Ends the wait of `client`, and forgets its reply.
    pub(crate) fn remove(&mut self, client: u64) {
        self.waiters.retain(|waiter| waiter.client != client);
        self.replies.remove(&client);
    }

    /// Returns the number of clients that wait.
    pub(crate) fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Notes that `key` has come into being.
    pub(crate) fn note_new(&mut self, database: usize, key: &[u8]) {
        let is_awaited = self.waiters.iter().any(|waiter| waiter.awaits(database, key));
        let is_noted = |(noted, name): &(usize, Arc<[u8]>)| *noted == database && **name == *key;
        if is_awaited && !self.new_keys.iter().any(is_noted) {
            self.new_keys.push_back((database, key.into()));
        }
    }

    /// Notes all awaited keys of a database whose contents were replaced.
    pub(crate) fn note_replaced(&mut self, database: usize) {
        let waiters = self.waiters.iter().filter(|waiter| waiter.database == database);
        let keys: Vec<_> = waiters.flat_map(|waiter| waiter.wish.keys.iter().cloned()).collect();
        keys.iter().for_each(|key| self.note_new(database, key));
    }

    /// Returns the reply to `client` if its wait is over.
    pub(crate) fn take_reply(&mut self, client: u64) -> Option<Reply> {
        self.replies.remove(&client)
    }

    /// Takes the first key that came into being, with its database.
    pub(super) fn next_new(&mut self) -> Option<(usize, Arc<[u8]>)> {
        self.new_keys.pop_front()
    }

    /// Takes the waiter at the place `at` if it waits for `key`.
    pub(super) fn take_waiter(&mut self, at: usize, database: usize, key: &[u8]) -> Option<Waiter<S>> {
        self.waiters.get(at)?.awaits(database, key).then(|| self.waiters.remove(at))
    }

    /// Puts a waiter back that got no elements.
    pub(super) fn put_back(&mut self, at: usize, waiter: Waiter<S>) {
        self.waiters.insert(at, waiter);
    }

    /// Ends the wait of a client that is no waiter any more. Returns its name for observers.
    pub(super) fn end(&mut self, waiter: Waiter<S>, reply: Reply) -> String {
        self.replies.insert(waiter.client, reply);
        waiter.wake.notify_one();
        waiter.label
    }

    /// Wakes all connections, to look at the clock.
    pub(crate) fn wake_all(&self) {
        self.waiters.iter().for_each(|waiter| waiter.wake.notify_one());
    }
}

impl<S> Waiter<S> {
    /// Takes the elements of `key`, and returns the reply; `None` if there are none.
    pub(super) fn serve(&self, state: &mut S, key: &[u8]) -> Option<Reply> {
        (self.wish.serve)(state, key, self.wish.command.args())
    }

    fn awaits(&self, database: usize, key: &[u8]) -> bool {
        self.database == database && self.wish.keys.iter().any(|name| **name == *key)
    }
}
