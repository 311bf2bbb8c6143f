//! A socket that is neither connected nor listening yet. Its options are set on a real socket, and change
//! nothing.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::listener::TcpListener;
use super::stream::TcpStream;
use crate::host;
use crate::net::placeholder::{self, Placeholder};

/// A socket that is neither connected nor listening yet.
pub struct TcpSocket {
    socket: Socket,
    bound: Mutex<Option<SocketAddr>>,
}

/// Defines options of the real socket.
macro_rules! options {
    ($($(#[$cfg:meta])? $name:ident, $set:ident: $type:ty => $real:ident, $set_real:ident;)*) => {$(
        /// Returns the option, which changes nothing.
        ///
        /// # Errors
        ///
        /// Those of the real machine.
        $(#[$cfg])?
        pub fn $name(&self) -> io::Result<$type> {
            self.socket.$real()
        }

        /// Sets the option, which changes nothing.
        ///
        /// # Errors
        ///
        /// Those of the real machine.
        $(#[$cfg])?
        pub fn $set(&self, value: $type) -> io::Result<()> {
            self.socket.$set_real(value)
        }
    )*};
}

impl TcpSocket {
    /// Returns a socket for IPv4.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    pub fn new_v4() -> io::Result<Self> {
        placeholder::open(Domain::IPV4, Type::STREAM).map(Self::over)
    }

    /// Returns a socket for IPv6.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    pub fn new_v6() -> io::Result<Self> {
        placeholder::open(Domain::IPV6, Type::STREAM).map(Self::over)
    }

    fn over(socket: Socket) -> Self {
        Self { socket, bound: Mutex::default() }
    }

    /// Takes a socket of the standard library that is not connected.
    pub fn from_std_stream(std_stream: std::net::TcpStream) -> Self {
        Self::over(std_stream.into())
    }

    options! {
        keepalive, set_keepalive: bool => keepalive, set_keepalive;
        reuseaddr, set_reuseaddr: bool => reuse_address, set_reuse_address;
        nodelay, set_nodelay: bool => tcp_nodelay, set_tcp_nodelay;
        linger, set_linger: Option<Duration> => linger, set_linger;
        tos, set_tos: u32 => tos_v4, set_tos_v4;
        tos_v4, set_tos_v4: u32 => tos_v4, set_tos_v4;
        #[cfg(target_os = "linux")]
        tclass_v6, set_tclass_v6: u32 => tclass_v6, set_tclass_v6;
    }

    /// Returns the option, which changes nothing.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    #[cfg(all(unix, not(target_os = "solaris"), not(target_os = "illumos")))]
    pub fn reuseport(&self) -> io::Result<bool> {
        self.socket.reuse_port()
    }

    /// Sets the option, which changes nothing.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    #[cfg(all(unix, not(target_os = "solaris"), not(target_os = "illumos")))]
    pub fn set_reuseport(&self, reuseport: bool) -> io::Result<()> {
        self.socket.set_reuse_port(reuseport)
    }

    /// Sets the option, which changes nothing.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// Returns the size, which changes nothing.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    pub fn send_buffer_size(&self) -> io::Result<u32> {
        self.socket.send_buffer_size().map(|size| u32::try_from(size).unwrap_or(u32::MAX))
    }

    /// Sets the size, which changes nothing.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    pub fn set_send_buffer_size(&self, size: u32) -> io::Result<()> {
        self.socket.set_send_buffer_size(size as usize)
    }

    /// Returns the size, which changes nothing.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    pub fn recv_buffer_size(&self) -> io::Result<u32> {
        self.socket.recv_buffer_size().map(|size| u32::try_from(size).unwrap_or(u32::MAX))
    }

    /// Sets the size, which changes nothing.
    ///
    /// # Errors
    ///
    /// Those of the real machine.
    pub fn set_recv_buffer_size(&self, size: u32) -> io::Result<()> {
        self.socket.set_recv_buffer_size(size as usize)
    }

    /// Returns `None`: it is bound to no interface.
    ///
    /// # Errors
    ///
    /// None.
    #[cfg(target_os = "linux")]
    pub fn device(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// Refuses an interface: the hosts of a world have only one.
    ///
    /// # Errors
    ///
    /// For an interface: the run ends with an error that names the line.
    #[cfg(target_os = "linux")]
    pub fn bind_device(&self, interface: Option<&[u8]>) -> io::Result<()> {
        match interface {
            Some(_) => Err(host::refused("tokio::net::TcpSocket::bind_device", "bind an address")),
            None => Ok(()),
        }
    }

    /// Returns the address to which it is bound.
    ///
    /// # Errors
    ///
    /// None.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let any: SocketAddr = match self.socket.domain()? {
            Domain::IPV6 => (Ipv6Addr::UNSPECIFIED, 0).into(),
            _ => (Ipv4Addr::UNSPECIFIED, 0).into(),
        };
        Ok(self.bound().unwrap_or(any))
    }

    fn bound(&self) -> Option<SocketAddr> {
        *self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `None`.
    ///
    /// # Errors
    ///
    /// None.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    /// Sets the address on which it will listen. A connection takes any port.
    ///
    /// # Errors
    ///
    /// None: [`TcpSocket::listen`] has them.
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        *self.bound.lock().unwrap_or_else(PoisonError::into_inner) = Some(addr);
        Ok(())
    }

    /// Connects to a host of the world.
    ///
    /// # Errors
    ///
    /// If there is no such host, or it does not listen there.
    pub async fn connect(self, addr: SocketAddr) -> io::Result<TcpStream> {
        let stream = host::connect(addr).await?;
        Ok(TcpStream::over(stream, Placeholder::of(self.socket.into())))
    }

    /// Listens on the address to which it is bound.
    ///
    /// # Errors
    ///
    /// As [`TcpListener::bind`].
    pub fn listen(self, _: u32) -> io::Result<TcpListener> {
        TcpListener::listen(self.local_addr()?)
    }
}

crate::net::socket::descriptor!(TcpSocket, socket);

#[allow(unsafe_code, reason = "the trait is unsafe, since its caller gives the descriptor away")]
impl FromRawFd for TcpSocket {
    unsafe fn from_raw_fd(descriptor: RawFd) -> Self {
        // SAFETY: the caller gives the descriptor away.
        Self::over(Socket::from(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }
}

impl IntoRawFd for TcpSocket {
    fn into_raw_fd(self) -> RawFd {
        self.socket.into_raw_fd()
    }
}

impl fmt::Debug for TcpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpSocket").field("bound", &self.bound()).finish_non_exhaustive()
    }
}
