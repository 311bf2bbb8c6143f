//! The simulated Redis on a real port, for any Redis client to be pointed at.
//!
//! The one place in this crate with a real clock and a real network: nothing here runs inside a simulation.
#![allow(
    clippy::disallowed_methods,
    reason = "a live server for live clients: it has the machine's own clock, network and scheduler"
)]

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;

use crate::servers::redis::{Server, ServerOptions, ServerWorld};

/// Why the server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port can't be listened on.
    #[error(
        "can't listen on 127.0.0.1:{port} ({source}): choose another with --port, or stop what listens there"
    )]
    Listen {
        /// The port.
        port: u16,
        /// Why not.
        source: io::Error,
    },
    /// The machine is short of what a runtime needs.
    #[error("can't start ({0}): close some programs or raise the limit of open files")]
    Runtime(#[from] io::Error),
}

/// Serves a simulated Redis on `127.0.0.1:port` until the process is stopped, and prints the address once it listens.
/// Port 0 takes any free one.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn serve_redis(port: u16) -> Result<(), ServeError> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listen = |source| ServeError::Listen { port, source };
        let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        println!("simulated Redis listens on {address}; Ctrl-C stops it");
        serve(&listener).await
    })
}

async fn serve(listener: &TcpListener) -> ! {
    let server = Server::new(ServerOptions::new("redis"), Machine);
    let background = server.clone();
    tokio::spawn(async move { background.background().await });
    loop {
        // A connection that broke before it was accepted, or a passing shortage of sockets.
        let Ok((stream, peer)) = listener.accept().await else {
            Machine.sleep(Duration::from_millis(10)).await;
            continue;
        };
        tokio::spawn(serve_client(server.clone(), stream, peer.to_string()));
    }
}

async fn serve_client(server: Server<Machine>, stream: TcpStream, peer: String) {
    // Without it, small replies wait for one another; a failure costs time only.
    let _ = stream.set_nodelay(true);
    server.serve_connection(stream, &peer).await;
}

/// The real world.
#[derive(Clone, Copy, Debug)]
struct Machine;

impl ServerWorld for Machine {
    fn wall_micros(&self) -> u64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX)
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
