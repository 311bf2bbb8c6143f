//! The simulated etcd on a real port.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;

use super::host::{Host, Hosted, Hosting};
use super::{ServeError, host};
use crate::servers::etcd::{Cluster, ClusterOptions, EtcdWorld};

/// The only member.
const MEMBER: usize = 0;

struct Etcd(Cluster<Host>);

/// Serves a simulated etcd of one member on `127.0.0.1:port` until the process is stopped, and prints the address once it
/// listens. Port 0 takes any free one.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn serve_etcd(port: u16) -> Result<(), ServeError> {
    host::serve::<Etcd>(port, ())
}

/// Serves a simulated etcd of one member on any free port until the answer is dropped.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub fn host_etcd() -> Result<Hosting, ServeError> {
    host::host::<Etcd>(())
}

impl Hosted for Etcd {
    const NAME: &'static str = "etcd";

    type Options = ();

    fn start(host: Host, address: SocketAddr, (): ()) -> Self {
        let members = vec![("etcd-1".to_owned(), format!("http://{address}"))];
        let options = ClusterOptions { members, ..ClusterOptions::new("etcd", &[]) };
        let cluster = Cluster::new(options, host);
        let member = cluster.clone();
        host.spawn(async move { member.run_member(MEMBER).await });
        Self(cluster)
    }

    fn serve(&self, stream: TcpStream, peer: String) -> impl Future<Output = ()> + Send + 'static {
        let cluster = self.0.clone();
        async move { cluster.serve_connection(MEMBER, stream, &peer).await }
    }
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
