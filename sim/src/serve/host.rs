//! This machine: its clocks, its network, its scheduler.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a live server for live clients: it has the machine's own clock, network and scheduler"
)]

use std::future::Future;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;

use super::ServeError;

/// The real world, since the server started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    started: Instant,
}

impl Host {
    /// Nanoseconds since the server started.
    pub(super) fn monotonic_nanos(self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Microseconds since the Unix epoch.
    pub(super) fn wall_micros(self) -> u64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX)
    }

    pub(super) async fn sleep(self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    pub(super) fn spawn(self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(task);
    }
}

/// Serves what `start` makes of the host and the address on `127.0.0.1:port`, until the process is stopped: `serve` is
/// called for each connection. Prints the address once it listens; `name` is what the line calls the server.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub(super) fn host<S, F>(
    port: u16,
    name: &str,
    start: impl FnOnce(Host, SocketAddr) -> S,
    serve: impl Fn(&S, TcpStream, String) -> F,
) -> Result<(), ServeError>
where
    F: Future<Output = ()> + Send + 'static,
{
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listen = |source| ServeError::Listen { port, source };
        let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let host = Host { started: Instant::now() };
        let server = start(host, address);
        println!("simulated {name} listens on {address}; Ctrl-C stops it");
        loop {
            // A connection that broke before it was accepted, or a passing shortage of sockets.
            let Ok((stream, peer)) = listener.accept().await else {
                host.sleep(Duration::from_millis(10)).await;
                continue;
            };
            // Without it, small replies wait for one another; a failure costs time only.
            let _ = stream.set_nodelay(true);
            host.spawn(serve(&server, stream, peer.to_string()));
        }
    })
}
