//! Unix sockets for datagrams.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use real_tokio::io::{Interest, ReadBuf, Ready};
use socket2::Domain;

use super::SocketAddr;
use super::queue::{Queue, WeakQueue};
use crate::host;
use crate::net::datagram::datagrams;
use crate::net::placeholder::Placeholder;

thread_local! {
    /// The bound sockets by process and path. A world has one thread, and a thread one world at a time.
    static BOUND: RefCell<BTreeMap<(String, PathBuf), Queue>> = const { RefCell::new(BTreeMap::new()) };
}

/// A Unix socket for datagrams, within the host of a process. No datagram is lost: a sender waits for room.
pub struct UnixDatagram {
    queue: Queue,
    local: SocketAddr,
    /// Its process and its name, if it is bound.
    key: Option<(String, PathBuf)>,
    peer: Mutex<Option<Peer>>,
    is_shut: AtomicBool,
    placeholder: Placeholder,
}

/// The socket to which one sends.
#[derive(Clone)]
struct Peer {
    queue: WeakQueue,
    address: SocketAddr,
}

impl UnixDatagram {
    /// Binds a socket to `path`, on the host of the process.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AddrInUse`] if the process has bound the path already.
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<Self> {
        let address = SocketAddr::at(path.as_ref())?;
        let key = (host::process().name(), address.key()?);
        BOUND.with_borrow_mut(|bound| {
            if bound.contains_key(&key) {
                let problem = format!("a socket is bound to {address:?} already: drop it first");
                return Err(io::Error::new(io::ErrorKind::AddrInUse, problem));
            }
            let socket = Self::new(address, Some(key.clone()));
            bound.insert(key, socket.queue.clone());
            Ok(socket)
        })
    }

    /// Returns two sockets that are connected to each other.
    ///
    /// # Errors
    ///
    /// None.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = (Self::unnamed(), Self::unnamed());
        one.join(&other.queue, SocketAddr::unnamed());
        other.join(&one.queue, SocketAddr::unnamed());
        Ok((one, other))
    }

    /// Returns a socket without a path.
    ///
    /// # Errors
    ///
    /// None.
    pub fn unbound() -> io::Result<Self> {
        Ok(Self::unnamed())
    }

    fn unnamed() -> Self {
        Self::new(SocketAddr::unnamed(), None)
    }

    fn new(local: SocketAddr, key: Option<(String, PathBuf)>) -> Self {
        Self {
            queue: Queue::default(),
            local,
            key,
            peer: Mutex::default(),
            is_shut: AtomicBool::new(false),
            placeholder: Placeholder::datagrams(Domain::UNIX),
        }
    }

    /// Connects it to the socket at `path`, on the host of the process: it receives from no other.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if no socket is bound there.
    pub fn connect<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        let address = SocketAddr::at(path.as_ref())?;
        self.join(&found(&address)?, address);
        Ok(())
    }

    fn join(&self, queue: &Queue, address: SocketAddr) {
        let queue = queue.downgrade();
        self.queue.connect(&queue);
        *self.peer() = Some(Peer { queue, address });
    }

    fn peer(&self) -> MutexGuard<'_, Option<Peer>> {
        self.peer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refused: a socket of the standard library is the real machine's.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn from_std(_: std::os::unix::net::UnixDatagram) -> io::Result<Self> {
        Err(host::refused("tokio::net::UnixDatagram::from_std", "use UnixDatagram::bind"))
    }

    /// Refused: a socket of the standard library is the real machine's.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn into_std(self) -> io::Result<std::os::unix::net::UnixDatagram> {
        Err(host::refused("tokio::net::UnixDatagram::into_std", "keep tokio's own type"))
    }

    /// Returns its path.
    ///
    /// # Errors
    ///
    /// None.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local.clone())
    }

    /// Returns the path of its peer.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotConnected`] if it has no peer.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.peer().as_ref().map(|peer| peer.address.clone()).ok_or_else(no_peer)
    }

    /// Sends a datagram to the socket at `target`, on the host of the process. Returns its length.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if no socket is bound there, [`io::ErrorKind::PermissionDenied`] if it is
    /// connected to another one.
    pub async fn send_to<P: AsRef<Path>>(&self, buf: &[u8], target: P) -> io::Result<usize> {
        poll_fn(|cx| self.poll_send_to(cx, buf, &target)).await
    }

    /// Polls until a datagram is sent.
    pub fn poll_send_to<P: AsRef<Path>>(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        target: P,
    ) -> Poll<io::Result<usize>> {
        host::poll(cx.waker(), |waker| self.put(waker, &found(&SocketAddr::at(target.as_ref())?)?, buf))
    }

    /// Sends a datagram.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if the receiver's queue is full; else as [`UnixDatagram::send_to`].
    pub fn try_send_to<P: AsRef<Path>>(&self, buf: &[u8], target: P) -> io::Result<usize> {
        self.put(None, &found(&SocketAddr::at(target.as_ref())?)?, buf)
    }

    /// Ends a direction, or both. No task that waits for a datagram is woken, as with tokio's own.
    ///
    /// # Errors
    ///
    /// None.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        if matches!(how, Shutdown::Write | Shutdown::Both) {
            self.is_shut.store(true, Ordering::Relaxed);
        }
        if matches!(how, Shutdown::Read | Shutdown::Both) {
            self.queue.shut();
        }
        Ok(())
    }

    fn put(&self, waker: Option<&Waker>, queue: &Queue, bytes: &[u8]) -> io::Result<usize> {
        if self.is_shut.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        queue.put(waker, &self.queue, &self.local, bytes)
    }

    /// Returns the queue of the peer.
    fn peer_queue(&self) -> io::Result<Queue> {
        let peer = self.peer().clone().ok_or_else(no_peer)?;
        let closed = || io::Error::new(io::ErrorKind::ConnectionRefused, "the peer has been dropped");
        peer.queue.upgrade().ok_or_else(closed)
    }

    fn send_now(&self, waker: Option<&Waker>, bytes: &[u8]) -> io::Result<usize> {
        self.put(waker, &self.peer_queue()?, bytes)
    }

    fn send_ready(&self, waker: Option<&Waker>) -> io::Result<()> {
        // The call that sends has the error.
        self.peer_queue().map_or(Ok(()), |queue| queue.check_room(waker))
    }

    fn receive_now(
        &self,
        waker: Option<&Waker>,
        bytes: &mut [u8],
        is_kept: bool,
    ) -> io::Result<(usize, SocketAddr)> {
        self.queue.take(waker, bytes, is_kept)
    }
}

datagrams!(UnixDatagram, SocketAddr);

/// Returns the queue of the socket at `address`, on the host of the process.
fn found(address: &SocketAddr) -> io::Result<Queue> {
    let key = (host::process().name(), address.key()?);
    let none = || io::Error::new(io::ErrorKind::NotFound, format!("no socket is bound to {address:?}"));
    BOUND.with_borrow(|bound| bound.get(&key).cloned()).ok_or_else(none)
}

fn no_peer() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the socket has no peer: call connect, or send_to a path")
}

impl TryFrom<std::os::unix::net::UnixDatagram> for UnixDatagram {
    type Error = io::Error;

    fn try_from(socket: std::os::unix::net::UnixDatagram) -> io::Result<Self> {
        Self::from_std(socket)
    }
}

impl Drop for UnixDatagram {
    fn drop(&mut self) {
        // Wakes the tasks that wait for room.
        self.queue.shut();
        let Some(key) = &self.key else { return };
        // At the end of the thread, the map may be gone.
        let _ = BOUND.try_with(|bound| {
            let mut bound = bound.borrow_mut();
            if bound.get(key).is_some_and(|queue| queue.is(&self.queue)) {
                bound.remove(key);
            }
        });
    }
}

impl fmt::Debug for UnixDatagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixDatagram").field("local", &self.local).finish_non_exhaustive()
    }
}
