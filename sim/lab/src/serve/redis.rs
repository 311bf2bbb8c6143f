//! The simulated Redis on a real port.

use std::net::SocketAddr;

use sim::servers::redis::RedisHost;

use super::host::{Hosting, LocalMachine, Served};
use super::{ServeError, host};

/// Serves a simulated Redis on `127.0.0.1:port` until the process is stopped, and prints the address once it
/// listens. Port 0 picks a free port.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn serve_redis(port: u16) -> Result<(), ServeError> {
    host::serve(port, served())
}

/// Serves a simulated Redis on a free port until the returned value is dropped.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn host_redis() -> Result<Hosting, ServeError> {
    host::host(served())
}

fn served() -> Served<impl FnOnce(SocketAddr) -> RedisHost<LocalMachine>> {
    Served { name: "Redis", machine: "redis", make: |_| RedisHost::new() }
}
