//! The simulated etcd on a real port.

use std::net::SocketAddr;

use sim::servers::etcd::EtcdHost;

use super::host::{Hosting, LocalMachine, Served};
use super::{ServeError, host};

/// The only member.
const MEMBER: &str = "etcd-1";

/// Serves a simulated etcd of one member on `127.0.0.1:port` until the process is stopped, and prints the
/// address once it listens. Port 0 picks a free port.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn serve_etcd(port: u16) -> Result<(), ServeError> {
    host::serve(port, served())
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
