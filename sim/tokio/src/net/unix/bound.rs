//! The addresses to which the stream sockets of each process are bound, and the connections that wait to be
//! accepted there.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::task::{Poll, Waker};

use super::SocketAddr;
use super::ends::{self, End};
use crate::host;

thread_local! {
    /// The bound sockets by process and name. A world has one thread, and a thread one world at a time.
    static BOUND: RefCell<BTreeMap<(String, PathBuf), Backlog>> = const { RefCell::new(BTreeMap::new()) };
}

#[derive(Default)]
struct Backlog {
    is_listening: bool,
    /// The connections, each with the address of its other end.
    connections: VecDeque<(End, SocketAddr)>,
    waiting: Vec<Waker>,
}

/// An address to which a stream socket of the process is bound. Dropping it frees the address.
pub(super) struct Bound {
    key: (String, PathBuf),
    address: SocketAddr,
}

impl Bound {
    /// Binds a socket to `address`, on the host of the process.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AddrInUse`] if a stream socket of the process is bound to it already.
    pub(super) fn new(address: &SocketAddr) -> io::Result<Self> {
        let key = (host::process().name(), address.key()?);
        BOUND.with_borrow_mut(|bound| {
            if bound.contains_key(&key) {
                let problem = format!("a socket is bound to {address:?} already: drop it first");
                return Err(io::Error::new(io::ErrorKind::AddrInUse, problem));
            }
            bound.insert(key.clone(), Backlog::default());
            Ok(Self { key, address: address.clone() })
        })
    }

    /// Accepts connections from now on.
    pub(super) fn listen(&self) {
        BOUND.with_borrow_mut(|bound| {
            if let Some(backlog) = bound.get_mut(&self.key) {
                backlog.is_listening = true;
            }
        });
    }

    /// Returns the address.
    pub(super) fn address(&self) -> &SocketAddr {
        &self.address
    }

    /// Returns the next connection, with the address of its other end. Wakes `waker` when it comes.
    pub(super) fn poll_accept(&self, waker: &Waker) -> Poll<(End, SocketAddr)> {
        BOUND.with_borrow_mut(|bound| {
            let Some(backlog) = bound.get_mut(&self.key) else { return Poll::Pending };
            match backlog.connections.pop_front() {
                Some(accepted) => Poll::Ready(accepted),
                None => {
                    backlog.waiting.push(waker.clone());
                    Poll::Pending
                }
            }
        })
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // At the end of the thread, the map may be gone.
        let _ = BOUND.try_with(|bound| bound.borrow_mut().remove(&self.key));
    }
}

/// Connects the socket at `from` to the listener at `to`, on the host of the process.
///
/// # Errors
///
/// [`io::ErrorKind::NotFound`] if no socket is bound to `to`, [`io::ErrorKind::ConnectionRefused`] if it does
/// not listen.
pub(super) fn connect(from: &SocketAddr, to: &SocketAddr) -> io::Result<End> {
    let key = (host::process().name(), to.key()?);
    BOUND.with_borrow_mut(|bound| {
        let none = || io::Error::new(io::ErrorKind::NotFound, format!("nobody listens at {to:?}"));
        let backlog = bound.get_mut(&key).ok_or_else(none)?;
        if !backlog.is_listening {
            let problem = format!("the socket at {to:?} does not listen: call listen first");
            return Err(io::Error::new(io::ErrorKind::ConnectionRefused, problem));
        }
        let (own, other) = ends::pair();
        backlog.connections.push_back((other, from.clone()));
        backlog.waiting.drain(..).for_each(Waker::wake);
        Ok(own)
    })
}
