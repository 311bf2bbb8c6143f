//! The names of the lock systems.

use crate::names::names;

names! {
    /// Which lock the workers use. What each is stands in `systems`.
    pub enum System as "system" {
        /// One Redis, with a replica or without.
        Redis = "redis",
        /// Several Redis servers that know nothing of each other, and a majority of them.
        Redlock = "redlock",
        /// An etcd cluster of three.
        Etcd = "etcd",
        /// A ZooKeeper ensemble of three.
        ZooKeeper = "zookeeper",
        /// One lock server of our own, a table in memory: it shows what a system needs.
        Toy = "toy",
    }
}
