//! The links between one process of an experiment and its servers. They can be cut.

use std::io;

use tokio::runtime::{Builder, Runtime};

use super::LabError;
use crate::faults::{Direction, Link, Proxy};

/// A proxy before each server, for one process.
pub(crate) struct Network {
    proxies: Vec<Proxy>,
    /// Runs the proxies, and is dropped after them.
    _runtime: Runtime,
}

impl Network {
    /// Opens links to `servers`.
    pub(crate) fn to(servers: &[String]) -> Result<Self, LabError> {
        let failed = |error: io::Error| {
            LabError::Failed(format!(
                "no proxy could be started: {error}; raise this user's limits (ulimit -n)"
            ))
        };
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(failed)?;
        let start = async {
            let mut proxies = Vec::with_capacity(servers.len());
            for server in servers {
                proxies.push(Proxy::start(server).await?);
            }
            Ok(proxies)
        };
        let proxies = runtime.block_on(start).map_err(failed)?;
        Ok(Self { proxies, _runtime: runtime })
    }

    /// Returns the proxies' addresses, as `--servers` takes them.
    pub(crate) fn addresses(&self) -> String {
        self.proxies.iter().map(Proxy::address).collect::<Vec<_>>().join(",")
    }

    /// Holds back all traffic to and from the first `count` servers.
    pub(crate) fn cut(&self, count: usize) {
        self.proxies.iter().take(count).for_each(|proxy| proxy.set_both(Link::Cut));
    }

    /// Holds back the traffic in one direction, to or from the first `count` servers.
    pub(crate) fn cut_one_way(&self, count: usize, direction: Direction) {
        self.proxies.iter().take(count).for_each(|proxy| proxy.set(direction, Link::Cut));
    }

    /// Opens all links: bytes held back arrive.
    pub(crate) fn heal(&self) {
        self.proxies.iter().for_each(|proxy| proxy.set_both(Link::Open));
    }
}
