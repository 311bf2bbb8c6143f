//! The simulated ZooKeeper on a real port.

use std::time::Duration;

use super::ServeError;
use super::host::{Host, host};
use crate::servers::zookeeper::{Ensemble, EnsembleOptions, ServerWorld};

/// The only member.
const MEMBER: &str = "zookeeper";

/// Serves a simulated ZooKeeper, a standalone one, on `127.0.0.1:port` until the process is stopped, and prints the
/// address once it listens. Port 0 takes any free one.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn serve_zookeeper(port: u16) -> Result<(), ServeError> {
    let start = |host: Host, _| {
        // An ensemble has the members that it is made of.
        let server = Ensemble::new(EnsembleOptions::new([MEMBER])).member(MEMBER, host);
        if let Some(member) = server.clone() {
            host.spawn(async move { member.run().await });
        }
        server
    };
    host(port, "ZooKeeper", start, |server, stream, peer| {
        let server = server.clone();
        async move {
            if let Some(server) = server {
                server.serve_connection(stream, &peer).await;
            }
        }
    })
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
