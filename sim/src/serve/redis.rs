//! The simulated Redis on a real port.

use std::time::Duration;

use super::ServeError;
use super::host::{Host, host};
use crate::servers::redis::{Server, ServerOptions, ServerWorld};

/// Serves a simulated Redis on `127.0.0.1:port` until the process is stopped, and prints the address once it listens.
/// Port 0 takes any free one.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn serve_redis(port: u16) -> Result<(), ServeError> {
    let start = |host: Host, _| {
        let server = Server::new(ServerOptions::new("redis"), host);
        let background = server.clone();
        host.spawn(async move { background.background().await });
        server
    };
    host(port, "Redis", start, |server, stream, peer| {
        let server = server.clone();
        async move { server.serve_connection(stream, &peer).await }
    })
}

impl ServerWorld for Host {
    fn wall_micros(&self) -> u64 {
        Host::wall_micros(*self)
    }

    async fn sleep(&self, duration: Duration) {
        Host::sleep(*self, duration).await;
    }
}
