//! The simulated lock servers: what clients can observe of the real ones, in their real wire protocols.

pub mod etcd;
pub mod redis;
pub mod zookeeper;
