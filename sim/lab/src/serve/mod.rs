//! The simulated servers on real ports of this machine, for any client: `serve_…` serves until the process
//! is stopped, `host_…` until the returned value is dropped.
//!
//! Only `host.rs` and `metrics.rs` use a real clock and a real network. Nothing here runs inside a
//! simulation.

mod etcd;
mod host;
mod metrics;
mod redis;
mod zookeeper;

use std::io;

pub use etcd::{host_etcd, serve_etcd};
pub use host::Hosting;
pub use redis::{RedisArguments, host_redis, host_redis_of, serve_redis};
pub use zookeeper::{host_zookeeper, serve_zookeeper};

/// The ports of a server on 127.0.0.1; 0 picks a free one.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Ports {
    /// The port on 127.0.0.1; 0 picks a free one.
    #[arg(long)]
    pub port: u16,
    /// Serves /metrics in Prometheus' format on this port of 127.0.0.1; 0 picks a free one and prints it.
    #[arg(long, value_name = "PORT")]
    pub metrics: Option<u16>,
}

/// The server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Listening on the port failed.
    #[error(
        "can't listen on 127.0.0.1:{port} ({source}): choose another with --port or --metrics, or stop what \
         listens there"
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
