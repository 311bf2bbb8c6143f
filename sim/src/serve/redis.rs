//! The simulated Redis on a real port.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;

use super::host::{Host, Hosted, Hosting};
use super::{ServeError, host};
use crate::servers::redis::{Server, ServerOptions, ServerWorld};

struct Redis(Server<Host>);

/// Serves a simulated Redis on `127.0.0.1:port` until the process is stopped, and prints the address once it listens.
/// Port 0 takes any free one.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn serve_redis(port: u16) -> Result<(), ServeError> {
    host::serve::<Redis>(port, ())
}

/// Serves a simulated Redis on any free port until the answer is dropped.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn host_redis() -> Result<Hosting, ServeError> {
    host::host::<Redis>(())
}

impl Hosted for Redis {
    const NAME: &'static str = "Redis";

    type Options = ();

    fn start(host: Host, _: SocketAddr, (): ()) -> Self {
        let server = Server::new(ServerOptions::new("redis"), host);
        let background = server.clone();
        host.spawn(async move { background.background().await });
        Self(server)
    }

    fn serve(&self, stream: TcpStream, peer: String) -> impl Future<Output = ()> + Send + 'static {
        let server = self.0.clone();
        async move { server.serve_connection(stream, &peer).await }
    }
}

impl ServerWorld for Host {
    fn wall_micros(&self) -> u64 {
        Host::wall_micros(*self)
    }

    async fn sleep(&self, duration: Duration) {
        Host::sleep(*self, duration).await;
    }
}
