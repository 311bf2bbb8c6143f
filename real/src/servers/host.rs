//! A host of a network of ours, on which servers can run: a network namespace of this machine.
#![allow(clippy::disallowed_methods, reason = "a thread changes its namespace, and must be one of its own")]

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Where `ip netns` keeps the names.
const NAMES: &str = "/run/netns";

/// A host. Clones are the same one. [`Network`](crate::faults::Network) makes it, and what it offers to break the host's
/// links are methods here.
#[derive(Clone, Debug)]
pub struct Host(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    namespace: String,
    address: String,
    cable: Cable,
}

/// The cable that joins a host to its network.
#[derive(Debug)]
pub(crate) struct Cable {
    /// The namespace with the bridge that it leads to.
    pub(crate) bridge: String,
    /// Its name there.
    pub(crate) name: String,
}

impl Host {
    pub(crate) fn new(namespace: String, address: String, cable: Cable) -> Self {
        Self(Arc::new(Inner { namespace, address, cable }))
    }

    /// Its address, for the other hosts.
    pub fn address(&self) -> &str {
        &self.0.address
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.0.namespace
    }

    pub(crate) fn cable(&self) -> &Cable {
        &self.0.cable
    }

    /// Runs `job` on this host: its sockets, and the processes that it starts, are the host's.
    ///
    /// # Errors
    ///
    /// If the host is gone, with its network.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> io::Result<T> {
        let namespace = File::open(Path::new(NAMES).join(&self.0.namespace))?;
        // The thread ends with the job, and its namespace with it: no other code comes to run there.
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
