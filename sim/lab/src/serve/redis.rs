//! The simulated Redis on a real port.

use std::net::SocketAddr;

use sim::servers::redis::RedisHost;

use super::host::{Hosting, LocalMachine, Served};
use super::{Ports, ServeError, host};

/// Serves a simulated Redis on `ports` until the process is stopped, and prints the address once it
/// listens.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn serve_redis(ports: Ports) -> Result<(), ServeError> {
    host::serve(ports, served())
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
