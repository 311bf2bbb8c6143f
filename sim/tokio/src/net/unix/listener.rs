//! A listening Unix socket.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::Path;
use std::task::{Context, Poll};

use super::SocketAddr;
use super::bound::Bound;
use super::stream::UnixStream;
use crate::host;
use crate::net::placeholder::Placeholder;

/// A listening Unix socket of the process.
pub struct UnixListener {
    bound: Bound,
    placeholder: Placeholder,
}

impl UnixListener {
    /// Listens at `path`, on the host of the process.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AddrInUse`] if the process listens there already.
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<Self> {
        Self::bind_addr(&SocketAddr::at(path.as_ref())?)
    }

    /// Listens at an address, on the host of the process.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AddrInUse`] if the process listens there already, [`io::ErrorKind::InvalidInput`] if
    /// it has no name.
    pub fn bind_addr(socket_addr: &SocketAddr) -> io::Result<Self> {
        Ok(Self::over(Bound::new(socket_addr)?, Placeholder::default()))
    }

    pub(super) fn over(bound: Bound, placeholder: Placeholder) -> Self {
        bound.listen();
        Self { bound, placeholder }
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    ///
    /// None.
    pub async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// Polls for the next connection.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(UnixStream, SocketAddr)>> {
        self.bound.poll_accept(cx.waker()).map(|(end, peer)| {
            let stream = UnixStream::new(end, self.bound.address().clone(), peer.clone());
            Ok((stream, peer))
        })
    }

    /// Returns its path.
    ///
    /// # Errors
    ///
    /// None.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.bound.address().clone())
    }

    /// Returns `None`.
    ///
    /// # Errors
    ///
    /// None.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    /// Refused: a listener of the standard library is the real machine's.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn from_std(_: std::os::unix::net::UnixListener) -> io::Result<Self> {
        Err(host::refused("tokio::net::UnixListener::from_std", "use UnixListener::bind"))
    }

    /// Refused: a listener of the standard library is the real machine's.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn into_std(self) -> io::Result<std::os::unix::net::UnixListener> {
        Err(host::refused("tokio::net::UnixListener::into_std", "keep tokio's own type"))
    }
}

impl TryFrom<std::os::unix::net::UnixListener> for UnixListener {
    type Error = io::Error;

    fn try_from(listener: std::os::unix::net::UnixListener) -> io::Result<Self> {
        Self::from_std(listener)
    }
}

crate::net::socket::descriptor!(UnixListener, placeholder.socket());

impl fmt::Debug for UnixListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixListener").field("local", self.bound.address()).finish()
    }
}
