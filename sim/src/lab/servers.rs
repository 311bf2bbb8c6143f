//! What the workers run against: the lock servers and the protected resource.

use serde::{Deserialize, Serialize};

use super::default::is_default;
use crate::names::names;

/// The Redis servers, for the systems `redis` and `redlock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Redis {
    /// How many primaries there are, `redis-1` and so on. Default 1; several for `redlock` only.
    pub nodes: u32,
    /// What reaches the disk. Default: nothing.
    #[serde(skip_serializing_if = "is_default")]
    pub persistence: Persistence,
    /// Whether `redis-1` has an asynchronous replica, `replica-1`. Workers reach whichever of the two is
    /// the primary under one address. For `redis` only. Default false.
    #[serde(skip_serializing_if = "is_default")]
    pub replica: bool,
    /// What the fence counter of every key stands at when the run starts: the first token is one above.
    /// Default 0.
    #[serde(skip_serializing_if = "is_default")]
    pub fence_start: u64,
    /// Where fencing tokens come from. Default: the counter.
    #[serde(skip_serializing_if = "is_default")]
    pub tokens: Tokens,
    /// How those who wait learn that a lock was given up. For `redis` only. Default: they ask from time to
    /// time.
    #[serde(skip_serializing_if = "is_default")]
    pub waiting: Waiting,
}

names! {
    /// Where the fencing tokens of Redis and Redlock come from.
    #[derive(Default)]
    pub enum Tokens as "source of tokens" {
        /// A counter on the server.
        #[default]
        Counter = "counter",
        /// The same, or the server's wall clock in microseconds where that is above it: a lost counter does
        /// no harm as long as clocks don't step back further than the outage.
        Time = "time",
    }
}

names! {
    /// How those who wait for a lock on Redis learn that it was given up.
    #[derive(Default)]
    pub enum Waiting as "way of waiting" {
        /// They ask from time to time.
        #[default]
        Polled = "polled",
        /// A release calls them, and they ask from time to time besides.
        Called = "called",
    }
}

/// The lock on etcd, for the system `etcd`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Etcd {
    /// How workers lock. Default: the library's queue.
    #[serde(skip_serializing_if = "is_default")]
    pub recipe: Recipe,
    /// Whether etcd's Lock service hands a lock to a waiter whose lease has ended meanwhile, as etcd 3.4.3
    /// did (issue 11456, found by Jepsen). For the recipe `service` only. Default false.
    #[serde(skip_serializing_if = "is_default")]
    pub trusts_waiters: bool,
}

names! {
    /// How workers lock on etcd.
    #[derive(Default)]
    pub enum Recipe as "recipe" {
        /// The library's own queue of keys.
        #[default]
        Queue = "queue",
        /// etcd's own Lock service.
        Service = "service",
    }
}

names! {
    /// What a Redis server writes to its disk (its append-only file, by `appendfsync`).
    #[derive(Default)]
    pub enum Persistence as "persistence" {
        /// Nothing: it starts empty.
        #[default]
        None = "none",
        /// Every write, synced once a second: a power loss takes up to a second of them.
        EverySec = "everysec",
        /// Every write, synced before it is answered.
        Always = "always",
    }
}

/// The protected resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Resource {
    /// Where it keeps values and the highest tokens.
    pub store: Store,
}

names! {
    /// Where the resource keeps values and the highest tokens.
    #[derive(Default)]
    pub enum Store as "store" {
        /// In memory: a restart forgets them.
        #[default]
        Memory = "memory",
        /// In a redb database on its disk: synced before a write is acknowledged.
        Redb = "redb",
    }
}

impl Default for Redis {
    fn default() -> Self {
        Self {
            nodes: 1,
            persistence: Persistence::None,
            replica: false,
            fence_start: 0,
            tokens: Tokens::Counter,
            waiting: Waiting::Polled,
        }
    }
}
