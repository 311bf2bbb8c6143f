//! The simulated etcd on a real port.

use std::net::SocketAddr;

use sim::servers::etcd::EtcdHost;

use super::host::{Hosting, LocalMachine, Served};
use super::{Ports, ServeError, host};

/// The only member.
const MEMBER: &str = "etcd-1";

/// Serves a simulated etcd of one member on `ports` until the process is stopped, and prints the
/// address once it listens.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn serve_etcd(ports: Ports) -> Result<(), ServeError> {
    host::serve(ports, served())
}

/// Serves a simulated etcd of one member on a free port until the returned value is dropped.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn host_etcd() -> Result<Hosting, ServeError> {
    host::host(served())
}

fn served() -> Served<impl FnOnce(SocketAddr) -> EtcdHost<LocalMachine>> {
    let make = |address| EtcdHost::single(MEMBER, format!("http://{address}"));
    Served { name: "etcd", machine: MEMBER, make }
}
