//! A connection.

use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use real_tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use sim_host::Stream;

use crate::host;
use crate::net::addr::{ToSocketAddrs, find};
use crate::net::connection::{connection, joined};
use crate::net::placeholder::{self, Placeholder};

/// A connection of the process.
pub struct TcpStream {
    stream: Arc<dyn Stream>,
    placeholder: Placeholder,
}

impl TcpStream {
    /// Connects to a host of the world.
    ///
    /// # Errors
    ///
    /// If there is no such host, or it does not listen there.
    pub async fn connect<A: ToSocketAddrs>(addr: A) -> io::Result<Self> {
        let mut last = None;
        for address in find(addr).await? {
            match host::connect(address).await {
                Ok(stream) => return Ok(Self::new(stream)),
                Err(error) => last = Some(error),
            }
        }
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "could not resolve to any address");
        Err(last.unwrap_or_else(none))
    }

    pub(super) fn new(stream: Arc<dyn Stream>) -> Self {
        Self::over(stream, Placeholder::default())
    }

    pub(super) fn over(stream: Arc<dyn Stream>, placeholder: Placeholder) -> Self {
        Self { stream, placeholder }
    }

    /// Takes a connection back from the standard library's type.
    ///
    /// # Errors
    ///
    /// If it was not made by [`TcpStream::into_std`].
    pub fn from_std(stream: std::net::TcpStream) -> io::Result<Self> {
        let (placeholder, stream) = placeholder::take_back(stream.into())?;
        Ok(Self::over(stream, placeholder))
    }

    /// Gives the connection to the standard library's type, whose options can be set. It can't send or
    /// receive, which would block: give it back to [`TcpStream::from_std`].
    ///
    /// # Errors
    ///
    /// None.
    pub fn into_std(self) -> io::Result<std::net::TcpStream> {
        Ok(self.placeholder.lend(self.stream).into())
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    ///
    /// None.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.stream.local())
    }

    /// Returns the address of the other end.
    ///
    /// # Errors
    ///
    /// None.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.stream.peer())
    }

    /// Returns the option, which changes nothing.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.placeholder.socket().tcp_nodelay()
    }

    /// Sets the option, which changes nothing: each write is a segment.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.placeholder.socket().set_tcp_nodelay(nodelay)
    }

    /// Returns the option, which changes nothing.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    #[cfg(target_os = "linux")]
    pub fn quickack(&self) -> io::Result<bool> {
        self.placeholder.socket().tcp_quickack()
    }

    /// Sets the option, which changes nothing.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    #[cfg(target_os = "linux")]
    pub fn set_quickack(&self, quickack: bool) -> io::Result<()> {
        self.placeholder.socket().set_tcp_quickack(quickack)
    }

    /// Returns the option, which changes nothing.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        self.placeholder.socket().linger()
    }

    /// Sets the option, which changes nothing: what was sent arrives.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    pub fn set_linger(&self, dur: Option<Duration>) -> io::Result<()> {
        self.placeholder.socket().set_linger(dur)
    }

    /// Sets the option, which changes nothing: what was sent arrives.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// Returns the option, which changes nothing.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    pub fn ttl(&self) -> io::Result<u32> {
        self.placeholder.socket().ttl_v4()
    }

    /// Sets the option, which changes nothing.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.placeholder.socket().set_ttl_v4(ttl)
    }
}

connection!(TcpStream);

impl TryFrom<std::net::TcpStream> for TcpStream {
    type Error = io::Error;

    fn try_from(stream: std::net::TcpStream) -> io::Result<Self> {
        Self::from_std(stream)
    }
}

impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpStream")
            .field("local", &self.stream.local())
            .field("peer", &self.stream.peer())
            .finish()
    }
}
