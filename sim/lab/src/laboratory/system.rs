//! The names of the lock systems.

history::names! {
    /// The lock system that the workers use. Each is defined in `systems`.
    pub enum System as "system" {
        /// One Redis, with a replica or without.
        Redis = "redis",
        /// A majority of several independent Redis servers.
        Redlock = "redlock",
        /// An etcd cluster of three.
        Etcd = "etcd",
        /// A ZooKeeper ensemble of three.
        ZooKeeper = "zookeeper",
        /// A toy lock server, a table in memory: an example of a system.
        Toy = "toy",
    }
}
