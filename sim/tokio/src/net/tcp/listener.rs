//! A listening socket.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::task::{Context, Poll};

use sim_host::Listener;

use super::stream::TcpStream;
use crate::host;
use crate::net::addr::{ToSocketAddrs, find};
use crate::net::placeholder::Placeholder;

/// A listening socket of the process.
pub struct TcpListener {
    listener: Box<dyn Listener>,
    placeholder: Placeholder,
}

impl TcpListener {
    /// Listens on an address of the process: others reach it by the process's name.
    ///
    /// # Errors
    ///
    /// If the process listens there already, or the address is another host's.
    pub async fn bind<A: ToSocketAddrs>(addr: A) -> io::Result<Self> {
        let mut last = None;
        for address in find(addr).await? {
            match Self::listen(address) {
                Ok(listener) => return Ok(listener),
                Err(error) => last = Some(error),
            }
        }
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "could not resolve to any address");
        Err(last.unwrap_or_else(none))
    }

    pub(super) fn listen(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { listener: host::process().listen(address)?, placeholder: Placeholder::default() })
    }

    /// Waits for the next connection. Returns it with the address of its other end.
    ///
    /// # Errors
    ///
    /// If the process is dead.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// Polls for the next connection.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let accepted = std::task::ready!(host::poll(cx.waker(), |waker| self.listener.accept(waker)));
        Poll::Ready(accepted.map(|stream| {
            let peer = stream.peer();
            (TcpStream::new(stream), peer)
        }))
    }

    /// Refused: a listener of the standard library is the real machine's.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn from_std(_: std::net::TcpListener) -> io::Result<Self> {
        Err(host::refused("tokio::net::TcpListener::from_std", "use TcpListener::bind"))
    }

    /// Refused: a listener of the standard library is the real machine's.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn into_std(self) -> io::Result<std::net::TcpListener> {
        Err(host::refused("tokio::net::TcpListener::into_std", "keep tokio's own type"))
    }

    /// Returns its address.
    ///
    /// # Errors
    ///
    /// None.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.listener.local())
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

impl TryFrom<std::net::TcpListener> for TcpListener {
    type Error = io::Error;

    fn try_from(listener: std::net::TcpListener) -> io::Result<Self> {
        Self::from_std(listener)
    }
}

// As tokio's own.
impl std::panic::UnwindSafe for TcpListener {}
impl std::panic::RefUnwindSafe for TcpListener {}

crate::net::socket::descriptor!(TcpListener, placeholder.socket());

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpListener").field("local", &self.listener.local()).finish()
    }
}
