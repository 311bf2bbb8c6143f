//! The simulated lock servers: the behaviour of the real ones as clients observe it, in their real wire
//! protocols.

pub mod etcd;
pub mod host;
pub mod redis;
pub mod resource;
pub mod zookeeper;

use dlock_runtime::Probe;

/// The probes of the servers, file by file.
pub(crate) const PROBES: &[&[&[&Probe]]] = &[redis::PROBES, etcd::PROBES, zookeeper::PROBES];
