//! The simulated servers on real ports of this machine, for any client to be pointed at: `serve_…` until the
//! process is stopped, `host_…` for as long as a value lives.
//!
//! `host.rs` is the one place of this library with a real clock and a real network; nothing here runs inside
//! a simulation.

mod etcd;
mod host;
mod redis;
mod zookeeper;

use std::io;

pub use etcd::{host_etcd, serve_etcd};
pub use host::Hosting;
pub use redis::{host_redis, serve_redis};
pub use zookeeper::{host_zookeeper, serve_zookeeper};

/// Why the server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port can't be listened on.
    #[error(
        "can't listen on 127.0.0.1:{port} ({source}): choose another with --port, or stop what listens there"
    )]
    Listen {
        /// The port.
        port: u16,
        /// Why not.
        source: io::Error,
    },
    /// The machine is short of what a runtime needs.
    #[error("can't start ({0}): close some programs or raise the limit of open files")]
    Runtime(#[from] io::Error),
}
