//! The simulated etcd on a real port.

use std::future::Future;
use std::time::Duration;

use super::ServeError;
use super::host::{Host, host};
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
    let start = |host: Host, address| {
        let members = vec![("etcd-1".to_owned(), format!("http://{address}"))];
        let options = ClusterOptions { members, ..ClusterOptions::new("etcd", &[]) };
        let cluster = Cluster::new(options, host);
        let member = cluster.clone();
        host.spawn(async move { member.run_member(MEMBER).await });
        cluster
    };
    host(port, "etcd", start, |cluster, stream, peer| {
        let cluster = cluster.clone();
        async move { cluster.serve_connection(MEMBER, stream, &peer).await }
    })
}

impl EtcdWorld for Host {
    fn now_nanos(&self, _: usize) -> u64 {
        self.monotonic_nanos()
    }

    async fn sleep_until(&self, _: usize, nanos: u64) {
        let left = nanos.saturating_sub(self.monotonic_nanos());
        Host::sleep(*self, Duration::from_nanos(left)).await;
    }

    fn spawn(&self, _: usize, task: impl Future<Output = ()> + Send + 'static) {
        Host::spawn(*self, task);
    }

    fn delivers(&self, _: usize, _: usize) -> bool {
        true
    }
}
