//! The simulated ZooKeeper on a real port, for any ZooKeeper client to be pointed at.
//!
//! Like `serve.rs`, with a real clock and a real network: nothing here runs inside a simulation.
#![allow(
    clippy::disallowed_methods,
    reason = "a live server for live clients: it has the machine's own clock, network and scheduler"
)]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;

use crate::serve::ServeError;
use crate::servers::zookeeper::{Ensemble, EnsembleOptions, Server, ServerWorld};

/// Serves a simulated ZooKeeper, a standalone one, on `127.0.0.1:port` until the process is stopped, and prints the
/// address once it listens. Port 0 takes any free one.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn serve_zookeeper(port: u16) -> Result<(), ServeError> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listen = |source| ServeError::Listen { port, source };
        let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        println!("simulated ZooKeeper listens on {address}; Ctrl-C stops it");
        let ensemble = Ensemble::new(EnsembleOptions::new(["zookeeper"]));
        match ensemble.member("zookeeper", Machine { started: Instant::now() }) {
            Some(server) => serve(&listener, server).await,
            None => Ok(()),
        }
    })
}

async fn serve(listener: &TcpListener, server: Server<Machine>) -> ! {
    let member = server.clone();
    tokio::spawn(async move { member.run().await });
    loop {
        // A connection that broke before it was accepted, or a passing shortage of sockets.
        let Ok((stream, peer)) = listener.accept().await else {
            server_pause().await;
            continue;
        };
        tokio::spawn(serve_client(server.clone(), stream, peer.to_string()));
    }
}

async fn server_pause() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

async fn serve_client(server: Server<Machine>, stream: TcpStream, peer: String) {
    // Without it, small replies wait for one another; a failure costs time only.
    let _ = stream.set_nodelay(true);
    server.serve_connection(stream, &peer).await;
}

/// The real world.
#[derive(Clone, Copy, Debug)]
struct Machine {
    started: Instant,
}

impl ServerWorld for Machine {
    fn monotonic_nanos(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn wall_millis(&self) -> u64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn reaches(&self, _: &str) -> bool {
        true
    }
}
