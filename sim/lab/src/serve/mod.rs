//! The simulated servers on real ports of this machine, for any client: `serve_…` serves until the process
//! is stopped, `host_…` until the returned value is dropped.
//!
//! Only `host.rs` uses a real clock and a real network. Nothing here runs inside a simulation.

mod etcd;
mod host;
mod redis;
mod zookeeper;

use std::io;

pub use etcd::{host_etcd, serve_etcd};
pub use host::Hosting;
pub use redis::{host_redis, serve_redis};
pub use zookeeper::{host_zookeeper, serve_zookeeper};

/// The server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Listening on the port failed.
    #[error(
        "can't listen on 127.0.0.1:{port} ({source}): choose another with --port, or stop what listens there"
    )]
    Listen {
        /// The port.
        port: u16,
        /// The error.
        source: io::Error,
    },
    /// The machine lacks resources for a runtime.
    #[error("can't start ({0}): close some programs or raise the limit of open files")]
    Runtime(#[from] io::Error),
}
