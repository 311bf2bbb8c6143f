//! UDP.

mod options;

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use real_tokio::io::{Interest, ReadBuf, Ready};
use sim_host::Datagrams;
use socket2::Domain;

use crate::host;
use crate::net::addr::{ToSocketAddrs, find};
use crate::net::datagram::datagrams;
use crate::net::placeholder::Placeholder;

/// A socket for datagrams. They are lost, doubled and overtaken as the links and faults of the world have it.
pub struct UdpSocket {
    socket: Box<dyn Datagrams>,
    peer: Mutex<Option<SocketAddr>>,
    placeholder: Placeholder,
}

impl UdpSocket {
    /// Binds a socket to an address of the process: others reach it by the process's name.
    ///
    /// # Errors
    ///
    /// If the process has bound the port already, or the address is another host's.
    pub async fn bind<A: ToSocketAddrs>(addr: A) -> io::Result<Self> {
        let mut last = None;
        for address in find(addr).await? {
            match host::process().bind_datagrams(address) {
                Ok(socket) => {
                    let placeholder = Placeholder::datagrams(Domain::for_address(address));
                    return Ok(Self { socket, peer: Mutex::default(), placeholder });
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| no_address("could not resolve to any address")))
    }

    /// Refused: a socket of the standard library is the real machine's.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn from_std(_: std::net::UdpSocket) -> io::Result<Self> {
        Err(host::refused("tokio::net::UdpSocket::from_std", "use UdpSocket::bind"))
    }

    /// Refused: a socket of the standard library is the real machine's.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn into_std(self) -> io::Result<std::net::UdpSocket> {
        Err(host::refused("tokio::net::UdpSocket::into_std", "keep tokio's own type"))
    }

    /// Returns its address.
    ///
    /// # Errors
    ///
    /// None.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.socket.local())
    }

    /// Returns the address of its peer.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotConnected`] if it has none.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        let peer = *self.peer.lock().unwrap_or_else(PoisonError::into_inner);
        let none =
            || io::Error::new(io::ErrorKind::NotConnected, "the socket has no peer: call connect first");
        peer.ok_or_else(none)
    }

    /// Makes a host of the world its peer: it receives from no other.
    ///
    /// # Errors
    ///
    /// If there is no such host.
    pub async fn connect<A: ToSocketAddrs>(&self, addr: A) -> io::Result<()> {
        let mut last = None;
        for address in find(addr).await? {
            match self.socket.connect(address) {
                Ok(()) => {
                    *self.peer.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
                    return Ok(());
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| no_address("could not resolve to any address")))
    }

    /// Sends a datagram to a host of the world. Returns its length.
    ///
    /// # Errors
    ///
    /// If there is no such host, or the datagram is too long.
    pub async fn send_to<A: ToSocketAddrs>(&self, buf: &[u8], addr: A) -> io::Result<usize> {
        let target = find(addr).await?.first().copied();
        let target = target.ok_or_else(|| no_address("no addresses to send data to"))?;
        poll_fn(|cx| self.poll_send_to(cx, buf, target)).await
    }

    /// Polls until a datagram is sent.
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        target: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        host::poll(cx.waker(), |waker| self.socket.send_to(waker, buf, target))
    }

    /// Sends a datagram.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] while the process is paused; else as [`UdpSocket::send_to`].
    pub fn try_send_to(&self, buf: &[u8], target: SocketAddr) -> io::Result<usize> {
        self.socket.send_to(None, buf, target)
    }

    /// Waits for a datagram, and leaves it to be received.
    ///
    /// # Errors
    ///
    /// If the process is dead.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.peek_from(buf).await?.0)
    }

    /// Polls for a datagram, and leaves it to be received.
    pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_peek_from(cx, buf).map_ok(|_| ())
    }

    /// Copies a datagram that has arrived, and leaves it to be received.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if none has.
    pub fn try_peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.try_peek_from(buf)?.0)
    }

    /// Waits for a datagram, and leaves it to be received. Returns the number of bytes in `buf` and the
    /// sender.
    ///
    /// # Errors
    ///
    /// If the process is dead.
    pub async fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        poll_fn(|cx| host::poll(cx.waker(), |waker| self.receive_now(waker, buf, true))).await
    }

    /// Polls for a datagram, and leaves it to be received. Returns the sender.
    pub fn poll_peek_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        self.poll_datagram(cx, buf, true)
    }

    /// Copies a datagram that has arrived, and leaves it to be received. Returns the number of bytes in `buf`
    /// and the sender.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if none has.
    pub fn try_peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.receive_now(None, buf, true)
    }

    /// Waits for a datagram. Returns its sender.
    ///
    /// # Errors
    ///
    /// If the process is dead.
    pub async fn peek_sender(&self) -> io::Result<SocketAddr> {
        poll_fn(|cx| self.poll_peek_sender(cx)).await
    }

    /// Polls for a datagram. Returns its sender.
    pub fn poll_peek_sender(&self, cx: &mut Context<'_>) -> Poll<io::Result<SocketAddr>> {
        self.poll_peek_from(cx, &mut ReadBuf::new(&mut []))
    }

    /// Returns the sender of a datagram that has arrived.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if none has.
    pub fn try_peek_sender(&self) -> io::Result<SocketAddr> {
        Ok(self.try_peek_from(&mut [])?.1)
    }

    fn send_now(&self, waker: Option<&Waker>, bytes: &[u8]) -> io::Result<usize> {
        self.socket.send_to(waker, bytes, self.peer_addr()?)
    }

    /// Succeeds at once: a datagram that can't be delivered is lost.
    #[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "other sockets may have to wait")]
    fn send_ready(&self, _: Option<&Waker>) -> io::Result<()> {
        Ok(())
    }

    fn receive_now(
        &self,
        waker: Option<&Waker>,
        bytes: &mut [u8],
        is_kept: bool,
    ) -> io::Result<(usize, SocketAddr)> {
        if is_kept { self.socket.peek_from(waker, bytes) } else { self.socket.receive_from(waker, bytes) }
    }
}

datagrams!(UdpSocket, SocketAddr);

fn no_address(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}

impl TryFrom<std::net::UdpSocket> for UdpSocket {
    type Error = io::Error;

    fn try_from(socket: std::net::UdpSocket) -> io::Result<Self> {
        Self::from_std(socket)
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpSocket").field("local", &self.socket.local()).finish_non_exhaustive()
    }
}
