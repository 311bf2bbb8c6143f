//! A connection over a Unix socket.

use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use real_tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use sim_host::Stream;

use super::bound::{self, Bound};
use super::ends::{self, End};
use super::{SocketAddr, gid_t, pid_t, uid_t};
use crate::host;
use crate::net::connection::{connection, joined};
use crate::net::placeholder::Placeholder;

/// A connection within the host of a process.
pub struct UnixStream {
    stream: Arc<dyn Stream>,
    placeholder: Placeholder,
    local: SocketAddr,
    peer: SocketAddr,
    /// The address that its own end occupies.
    _bound: Option<Bound>,
}

/// The user of the process at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UCred(());

impl UCred {
    /// Returns the user: 1000.
    pub fn uid(&self) -> uid_t {
        1000
    }

    /// Returns the group: 1000.
    pub fn gid(&self) -> gid_t {
        1000
    }

    /// Returns `None`: simulated processes have no numbers.
    pub fn pid(&self) -> Option<pid_t> {
        None
    }
}

impl UnixStream {
    /// Connects to the listener at `path`, on the host of the process.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if nobody listens there.
    #[allow(clippy::unused_async, reason = "tokio's own is async")]
    pub async fn connect<P: AsRef<Path>>(path: P) -> io::Result<Self> {
        Self::connect_from(None, Placeholder::default(), &SocketAddr::at(path.as_ref())?)
    }

    /// Connects to the listener at an address, on the host of the process.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if nobody listens there, [`io::ErrorKind::InvalidInput`] if the address
    /// has no name.
    #[allow(clippy::unused_async, reason = "tokio's own is async")]
    pub async fn connect_addr(socket_addr: &SocketAddr) -> io::Result<Self> {
        Self::connect_from(None, Placeholder::default(), socket_addr)
    }

    /// Connects a socket, which may be bound, to the listener at `peer`.
    pub(super) fn connect_from(
        bound: Option<Bound>,
        placeholder: Placeholder,
        peer: &SocketAddr,
    ) -> io::Result<Self> {
        let local = bound.as_ref().map_or_else(SocketAddr::unnamed, |bound| bound.address().clone());
        let end = bound::connect(&local, peer)?;
        Ok(Self { placeholder, _bound: bound, ..Self::new(end, local, peer.clone()) })
    }

    /// Returns the two ends of a connection.
    ///
    /// # Errors
    ///
    /// None.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = ends::pair();
        let end = |end| Self::new(end, SocketAddr::unnamed(), SocketAddr::unnamed());
        Ok((end(one), end(other)))
    }

    pub(super) fn new(end: End, local: SocketAddr, peer: SocketAddr) -> Self {
        Self { stream: Arc::new(end), placeholder: Placeholder::default(), local, peer, _bound: None }
    }

    /// Refused: a socket of the standard library is the real machine's.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn from_std(_: std::os::unix::net::UnixStream) -> io::Result<Self> {
        Err(host::refused("tokio::net::UnixStream::from_std", "use UnixStream::connect"))
    }

    /// Refused: a socket of the standard library is the real machine's.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn into_std(self) -> io::Result<std::os::unix::net::UnixStream> {
        Err(host::refused("tokio::net::UnixStream::into_std", "keep tokio's own type"))
    }

    /// Returns the path of this end.
    ///
    /// # Errors
    ///
    /// None.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local.clone())
    }

    /// Returns the path of the other end.
    ///
    /// # Errors
    ///
    /// None.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer.clone())
    }

    /// Returns the user of the process at the other end.
    ///
    /// # Errors
    ///
    /// None.
    pub fn peer_cred(&self) -> io::Result<UCred> {
        Ok(UCred(()))
    }
}

connection!(UnixStream);

impl TryFrom<std::os::unix::net::UnixStream> for UnixStream {
    type Error = io::Error;

    fn try_from(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        Self::from_std(stream)
    }
}

impl fmt::Debug for UnixStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixStream").field("local", &self.local).field("peer", &self.peer).finish()
    }
}
