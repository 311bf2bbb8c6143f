//! Real sockets without a connection that stand for simulated ones: code sets options by their descriptors,
//! and passes them through the standard library's types (`into_std`, `from_std`).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use sim_host::Stream;
use socket2::{Domain, Socket, Type};

thread_local! {
    /// The connections that the standard library's type holds, by the number of the descriptor.
    static LENT: RefCell<BTreeMap<i32, Arc<dyn Stream>>> = const { RefCell::new(BTreeMap::new()) };
}

/// A socket that is made when its descriptor is first asked for.
#[derive(Debug)]
pub(in crate::net) struct Placeholder {
    socket: OnceLock<Socket>,
    domain: Domain,
    kind: Type,
}

impl Default for Placeholder {
    /// Stands for a connection over IPv4.
    fn default() -> Self {
        Self { socket: OnceLock::new(), domain: Domain::IPV4, kind: Type::STREAM }
    }
}

impl Placeholder {
    /// Stands for a simulated socket by a descriptor that exists.
    pub(in crate::net) fn of(descriptor: OwnedFd) -> Self {
        Self { socket: Socket::from(descriptor).into(), ..Self::default() }
    }

    /// Stands for a socket for datagrams.
    pub(in crate::net) fn datagrams(domain: Domain) -> Self {
        Self { socket: OnceLock::new(), domain, kind: Type::DGRAM }
    }

    /// Returns the socket.
    ///
    /// # Panics
    ///
    /// If the program has no descriptors left.
    #[allow(clippy::expect_used, reason = "a descriptor can't be asked for with an error")]
    pub(in crate::net) fn socket(&self) -> &Socket {
        self.socket.get_or_init(|| open(self.domain, self.kind).expect("a socket"))
    }

    /// Lends the connection to the standard library's type, which gets this descriptor.
    pub(in crate::net) fn lend(self, stream: Arc<dyn Stream>) -> OwnedFd {
        self.socket();
        // It has just been made.
        #[allow(clippy::expect_used, reason = "it was made in the line above")]
        let descriptor: OwnedFd = self.socket.into_inner().expect("a socket").into();
        LENT.with_borrow_mut(|lent| lent.insert(descriptor.as_raw_fd(), stream));
        descriptor
    }
}

/// Opens a socket of the real machine, for its descriptor and its options.
///
/// # Errors
///
/// Those of the real machine.
pub(in crate::net) fn open(domain: Domain, kind: Type) -> io::Result<Socket> {
    // The simulator lets a process open a socket once the process has called this crate.
    let _ = sim_host::process();
    Socket::new(domain, kind, None)
}

/// Takes back the connection behind a descriptor.
///
/// # Errors
///
/// If it is no simulated one.
pub(in crate::net) fn take_back(descriptor: OwnedFd) -> io::Result<(Placeholder, Arc<dyn Stream>)> {
    match LENT.with_borrow_mut(|lent| lent.remove(&descriptor.as_raw_fd())) {
        Some(stream) => Ok((Placeholder::of(descriptor), stream)),
        None => Err(crate::host::refused(
            "a socket of the standard library",
            "connect through tokio::net, whose sockets are simulated",
        )),
    }
}
