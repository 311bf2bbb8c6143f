//! The simulated etcd on a real port, for etcdctl and any other client.
//!
//! As [`crate::serve`]: a real clock and a real network, and nothing here runs inside a simulation.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a live server for live clients: it has the machine's own clock, network and scheduler"
)]

use std::future::Future;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;

use crate::serve::ServeError;
use crate::servers::etcd::{Cluster, ClusterOptions, EtcdWorld};

/// The only member.
const MEMBER: usize = 0;

/// Serves a simulated etcd of one member on `127.0.0.1:port` until the process is stopped, and prints the address once it
/// listens. Port 0 takes any free one.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn serve_etcd(port: u16) -> Result<(), ServeError> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listen = |source| ServeError::Listen { port, source };
        let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        println!("simulated etcd listens on {address}; Ctrl-C stops it");
        serve(&listener, &format!("http://{address}")).await
    })
}

async fn serve(listener: &TcpListener, address: &str) -> ! {
    let members = vec![("etcd-1".to_owned(), address.to_owned())];
    let options = ClusterOptions { members, ..ClusterOptions::new("etcd", &[]) };
    let cluster = Cluster::new(options, Machine { started: Instant::now() });
    let member = cluster.clone();
    tokio::spawn(async move { member.run_member(MEMBER).await });
    loop {
        // A connection that broke before it was accepted, or a passing shortage of sockets.
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        tokio::spawn(serve_client(cluster.clone(), stream, peer.to_string()));
    }
}

async fn serve_client(cluster: Cluster<Machine>, stream: TcpStream, peer: String) {
    // Without it, small replies wait for one another; a failure costs time only.
    let _ = stream.set_nodelay(true);
    cluster.serve_connection(MEMBER, stream, &peer).await;
}

/// The real world.
#[derive(Clone, Copy, Debug)]
struct Machine {
    started: Instant,
}

impl EtcdWorld for Machine {
    fn now_nanos(&self, _: usize) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    async fn sleep_until(&self, _: usize, nanos: u64) {
        let left = nanos.saturating_sub(self.now_nanos(MEMBER));
        tokio::time::sleep(Duration::from_nanos(left)).await;
    }

    fn spawn(&self, _: usize, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(task);
    }

    fn delivers(&self, _: usize, _: usize) -> bool {
        true
    }
}
