//! A host on which servers can run: a network namespace of this machine.
#![allow(clippy::disallowed_methods, reason = "a thread changes its namespace, and must be one of its own")]

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The folder in which `ip netns` keeps the namespaces' names.
const NAMES: &str = "/run/netns";

/// A host. Clones are the same host. [`Network`](crate::faults::Network) makes hosts, and adds methods that
/// break a host's links.
#[derive(Clone, Debug)]
pub struct Host(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    namespace: String,
    address: String,
    cable: Cable,
}

/// The cable between a host and its network.
#[derive(Debug)]
pub(crate) struct Cable {
    /// The namespace of the bridge.
    pub(crate) bridge: String,
    /// Its name there.
    pub(crate) name: String,
}

impl Host {
    pub(crate) fn new(namespace: String, address: String, cable: Cable) -> Self {
        Self(Arc::new(Inner { namespace, address, cable }))
    }

    /// Returns its address, as seen by other hosts.
    pub fn address(&self) -> &str {
        &self.0.address
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.0.namespace
    }

    pub(crate) fn cable(&self) -> &Cable {
        &self.0.cable
    }

    /// Runs `job` on this host: its sockets, and the processes it starts, belong to the host.
    ///
    /// # Errors
    ///
    /// If the host was removed with its network.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> io::Result<T> {
        let namespace = File::open(Path::new(NAMES).join(&self.0.namespace))?;
        // The thread ends with the job, so that no other code runs in its namespace.
        let on_host = || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(job())
        };
        thread::scope(|scope| match scope.spawn(on_host).join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}
