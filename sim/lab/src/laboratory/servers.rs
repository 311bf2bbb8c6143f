//! The options of the lock servers and of the protected resource.

use serde::{Deserialize, Serialize};

use super::default::is_default;

/// The Redis servers, for the systems `redis` and `redlock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Redis {
    /// Number of primaries, `redis-1` and so on. Default 1; several for `redlock` only.
    pub nodes: u32,
    /// The writes that reach the disk. Default: none.
    #[serde(skip_serializing_if = "is_default")]
    pub persistence: Persistence,
    /// True if `redis-1` has an asynchronous replica, `replica-1`. The workers use one address, which leads
    /// to the current primary. For `redis` only. Default false.
    #[serde(skip_serializing_if = "is_default")]
    pub replica: bool,
    /// The value of every key's fence counter when the run starts: the first token is one above. Default 0.
    #[serde(skip_serializing_if = "is_default")]
    pub fence_start: u64,
    /// The source of fencing tokens. Default: the counter.
    #[serde(skip_serializing_if = "is_default")]
    pub tokens: Tokens,
    /// The wake-up of waiters after a release. For `redis` only. Default: they poll.
    #[serde(skip_serializing_if = "is_default")]
    pub waiting: Waiting,
    /// The version of the servers, which decides on their commands. Default: Redis 7.
    #[serde(skip_serializing_if = "is_default")]
    pub version: Version,
    /// The version of the replica, and of each server from its first restart on. Default: `version`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Version>,
}

history::names! {
    /// A version of Redis or Valkey.
    #[derive(Default)]
    pub enum Version as "version" {
        /// Redis 7.0: locks are released and renewed by scripts.
        #[default]
        Redis7 = "redis-7",
        /// Redis 8.4: they are released by `DELEX`, and renewed by `SET … IFEQ`.
        Redis84 = "redis-8.4",
        /// Valkey 9: they are released by `DELIFEQ`, and renewed by `SET … IFEQ`.
        Valkey9 = "valkey-9",
    }
}

history::names! {
    /// The source of the fencing tokens of Redis and Redlock.
    #[derive(Default)]
    pub enum Tokens as "source of tokens" {
        /// A counter on the server.
        #[default]
        Counter = "counter",
        /// The counter, or the server's wall clock in microseconds if that is larger. A lost counter does no
        /// harm as long as clocks don't step back by more than the time since the last grant.
        Time = "time",
        /// A counter that all keys of a hash slot share. Not of Redlock.
        Shared = "shared",
    }
}

history::names! {
    /// The wake-up of waiters for a lock on Redis after a release.
    #[derive(Default)]
    pub enum Waiting as "waiting mode" {
        /// They poll.
        #[default]
        Polled = "polled",
        /// A release wakes them, and they also poll from time to time.
        Called = "called",
    }
}

/// The lock on etcd, for the system `etcd`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Etcd {
    /// The recipe of the lock. Default: the library's queue.
    #[serde(skip_serializing_if = "is_default")]
    pub recipe: Recipe,
    /// True if etcd's Lock service grants a lock to a waiter whose lease has ended meanwhile, as etcd 3.4.3
    /// did (issue 11456, found by Jepsen). For the recipe `service` only. Default false.
    #[serde(skip_serializing_if = "is_default")]
    pub trusts_waiters: bool,
}

history::names! {
    /// A recipe for a lock on etcd.
    #[derive(Default)]
    pub enum Recipe as "recipe" {
        /// The library's own queue of keys.
        #[default]
        Queue = "queue",
        /// etcd's own Lock service.
        Service = "service",
    }
}

history::names! {
    /// The writes that a Redis server keeps on its disk (its append-only file, by `appendfsync`).
    #[derive(Default)]
    pub enum Persistence as "persistence" {
        /// None: a restarted server is empty.
        #[default]
        None = "none",
        /// Every write, synced once a second: a power loss takes up to a second of them.
        EverySec = "everysec",
        /// Every write, synced before it is answered.
        Always = "always",
    }
}

/// The data that a lock server keeps when its process ends.
#[derive(Clone, Copy)]
pub(super) enum Durability {
    /// None, for this reason.
    None(&'static str),
    /// All that it has written; a power loss takes a part.
    Written,
    /// All that it has acknowledged, on its own disk.
    Acknowledged,
    /// All that a majority of its cluster has acknowledged.
    Majority,
}

/// The protected resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Resource {
    /// The store of values and of the highest tokens.
    pub store: Store,
}

history::names! {
    /// The resource's store of values and of the highest tokens.
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
            version: Version::Redis7,
            upgrade: None,
        }
    }
}
