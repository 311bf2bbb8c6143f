//! The simulated servers: the behaviour of the real ones as clients observe it, in their real wire
//! protocols.

#[cfg(feature = "etcd")]
pub mod etcd;
pub mod host;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod redis;
pub mod resource;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;

use dlock_runtime::Probe;

/// The probes of the servers, file by file.
pub(crate) const PROBES: &[&[&[&Probe]]] = &[
    redis::PROBES,
    #[cfg(feature = "etcd")]
    etcd::PROBES,
    #[cfg(feature = "postgres")]
    postgres::PROBES,
    #[cfg(feature = "zookeeper")]
    zookeeper::PROBES,
];
