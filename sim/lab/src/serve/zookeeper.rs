//! The simulated ZooKeeper on a real port.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use sim::servers::zookeeper::{EnsembleOptions, ZooKeeperHost};

use super::host::{Hosting, LocalMachine, Served};
use super::{Ports, ServeError, host};

/// The only member.
const MEMBER: &str = "zookeeper";

/// Serves a simulated standalone ZooKeeper on `ports` until the process is stopped, and prints the
/// address once it listens.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn serve_zookeeper(ports: Ports) -> Result<(), ServeError> {
    host::serve(ports, served(EnsembleOptions::new([MEMBER])))
}

/// Serves a simulated standalone ZooKeeper on a free port until the returned value is dropped. Its sessions
/// expire at whole ticks, after timeouts within `session_timeouts`.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn host_zookeeper(
    tick: Duration,
    session_timeouts: RangeInclusive<Duration>,
) -> Result<Hosting, ServeError> {
    let session_timeouts = Some(session_timeouts);
    host::host(served(EnsembleOptions { tick, session_timeouts, ..EnsembleOptions::new([MEMBER]) }))
}

fn served(options: EnsembleOptions) -> Served<impl FnOnce(SocketAddr) -> ZooKeeperHost<LocalMachine>> {
    Served { name: "ZooKeeper", machine: MEMBER, make: |_| ZooKeeperHost::first(options) }
}
