//! The simulated lock servers: what clients can observe of the real ones, in their real wire protocols.

pub mod etcd;
pub mod host;
pub mod redis;
pub mod resource;
pub mod zookeeper;
