//! The simulated ZooKeeper on a real port.

use std::future::Future;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::net::TcpStream;

use super::host::{Host, Hosted, Hosting};
use super::{ServeError, host};
use crate::servers::zookeeper::{Ensemble, EnsembleOptions, Server, ServerWorld};

/// The only member.
const MEMBER: &str = "zookeeper";

/// An ensemble has the members that it is made of.
struct ZooKeeper(Option<Server<Host>>);

/// Serves a simulated ZooKeeper, a standalone one, on `127.0.0.1:port` until the process is stopped, and prints the
/// address once it listens. Port 0 takes any free one.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn serve_zookeeper(port: u16) -> Result<(), ServeError> {
    host::serve::<ZooKeeper>(port, EnsembleOptions::new([MEMBER]))
}

/// Serves a simulated ZooKeeper, a standalone one, on any free port until the answer is dropped. Its sessions expire at
/// whole ticks, after timeouts within `session_timeouts`.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn host_zookeeper(
    tick: Duration,
    session_timeouts: RangeInclusive<Duration>,
) -> Result<Hosting, ServeError> {
    let session_timeouts = Some(session_timeouts);
    host::host::<ZooKeeper>(EnsembleOptions { tick, session_timeouts, ..EnsembleOptions::new([MEMBER]) })
}

impl Hosted for ZooKeeper {
    const NAME: &'static str = "ZooKeeper";

    type Options = EnsembleOptions;

    fn start(host: Host, _: SocketAddr, options: EnsembleOptions) -> Self {
        let server = Ensemble::new(options).member(MEMBER, host);
        if let Some(member) = server.clone() {
            host.spawn(async move { member.run().await });
        }
        Self(server)
    }

    fn serve(&self, stream: TcpStream, peer: String) -> impl Future<Output = ()> + Send + 'static {
        let server = self.0.clone();
        async move {
            if let Some(server) = server {
                server.serve_connection(stream, &peer).await;
            }
        }
    }
}

impl ServerWorld for Host {
    fn monotonic_nanos(&self) -> u64 {
        Host::monotonic_nanos(*self)
    }

    fn wall_millis(&self) -> u64 {
        Host::wall_micros(*self) / 1000
    }

    async fn sleep(&self, duration: Duration) {
        Host::sleep(*self, duration).await;
    }

    fn reaches(&self, _: &str) -> bool {
        true
    }
}
