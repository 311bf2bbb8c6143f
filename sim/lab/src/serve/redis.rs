//! The simulated Redis on a real port.

use std::net::SocketAddr;

use sim::servers::redis::{RedisHost, Version};

use super::host::{Hosting, LocalMachine, Served};
use super::{Ports, ServeError, host};

/// The arguments of `serve-redis`.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct RedisArguments {
    /// The ports.
    #[command(flatten)]
    pub ports: Ports,
    /// The version whose commands the server has: redis-7, redis-8.4 or valkey-9.
    #[arg(long, default_value_t)]
    pub version: crate::Version,
}

/// Serves a simulated Redis until the process is stopped, and prints the address once it listens.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn serve_redis(arguments: RedisArguments) -> Result<(), ServeError> {
    host::serve(arguments.ports, served(arguments.version.simulated()))
}

/// Serves a simulated Redis on a free port until the returned value is dropped.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn host_redis() -> Result<Hosting, ServeError> {
    host_redis_of(Version::default())
}

/// As [`host_redis`], with the commands of `version`.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn host_redis_of(version: Version) -> Result<Hosting, ServeError> {
    host::host(served(version))
}

fn served(version: Version) -> Served<impl FnOnce(SocketAddr) -> RedisHost<LocalMachine>> {
    Served { name: "Redis", machine: "redis", make: move |_| RedisHost::new().version(version) }
}
