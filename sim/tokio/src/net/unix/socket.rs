//! A Unix socket that is neither connected nor listening yet.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use socket2::{Domain, Socket, Type};

use super::SocketAddr;
use super::bound::Bound;
use super::datagram::UnixDatagram;
use super::listener::UnixListener;
use super::stream::UnixStream;
use crate::net::placeholder::{self, Placeholder};

/// A Unix socket that is neither connected nor listening yet, within the host of a process. An address to
/// which it is bound is free again once the socket is dropped, or the listener, connection or socket for
/// datagrams that is made from it.
pub struct UnixSocket {
    /// Stands for it where code sets options by its descriptor.
    socket: Socket,
    is_stream: bool,
    bound: Mutex<State>,
}

/// The address of a socket.
enum State {
    Unbound,
    Stream(Bound),
    Datagrams(UnixDatagram),
}

impl UnixSocket {
    /// Returns a socket for datagrams.
    ///
    /// # Errors
    ///
    /// The errors of the real machine.
    pub fn new_datagram() -> io::Result<Self> {
        placeholder::open(Domain::UNIX, Type::DGRAM).map(|socket| Self::over(socket, false))
    }

    /// Returns a socket for connections.
    ///
    /// # Errors
    ///
    /// The errors of the real machine.
    pub fn new_stream() -> io::Result<Self> {
        placeholder::open(Domain::UNIX, Type::STREAM).map(|socket| Self::over(socket, true))
    }

    fn over(socket: Socket, is_stream: bool) -> Self {
        Self { socket, is_stream, bound: Mutex::new(State::Unbound) }
    }

    fn bound(&self) -> MutexGuard<'_, State> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Binds it to `path`, on the host of the process.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AddrInUse`] if the process has bound the path already,
    /// [`io::ErrorKind::InvalidInput`] if this socket is bound already or the path is no address.
    pub fn bind(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut bound = self.bound();
        if !matches!(*bound, State::Unbound) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the socket is bound already"));
        }
        let path = path.as_ref();
        *bound = if self.is_stream {
            State::Stream(Bound::new(&SocketAddr::at(path)?)?)
        } else {
            State::Datagrams(UnixDatagram::bind(path)?)
        };
        Ok(())
    }

    /// Listens at the path to which it is bound.
    ///
    /// # Errors
    ///
    /// If it is a socket for datagrams; [`io::ErrorKind::InvalidInput`] if it is not bound.
    pub fn listen(self, _: u32) -> io::Result<UnixListener> {
        match self.into_stream("listen cannot be called on a datagram socket")? {
            (Some(bound), placeholder) => Ok(UnixListener::over(bound, placeholder)),
            (None, _) => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "the socket has no path: call bind first"))
            }
        }
    }

    /// Connects to the listener at `path`, on the host of the process.
    ///
    /// # Errors
    ///
    /// If it is a socket for datagrams; [`io::ErrorKind::NotFound`] if no socket is bound to `path`,
    /// [`io::ErrorKind::ConnectionRefused`] if it does not listen.
    #[allow(clippy::unused_async, reason = "tokio's own is async")]
    pub async fn connect(self, path: impl AsRef<Path>) -> io::Result<UnixStream> {
        let (bound, placeholder) = self.into_stream("connect cannot be called on a datagram socket")?;
        UnixStream::connect_from(bound, placeholder, &SocketAddr::at(path.as_ref())?)
    }

    /// Returns the address to which it is bound, and the descriptor.
    fn into_stream(self, problem: &'static str) -> io::Result<(Option<Bound>, Placeholder)> {
        let placeholder = Placeholder::of(self.socket.into());
        match self.bound.into_inner().unwrap_or_else(PoisonError::into_inner) {
            State::Stream(bound) => Ok((Some(bound), placeholder)),
            State::Unbound if self.is_stream => Ok((None, placeholder)),
            State::Unbound | State::Datagrams(_) => Err(io::Error::other(problem)),
        }
    }

    /// Returns the socket for datagrams.
    ///
    /// # Errors
    ///
    /// If it is a socket for connections.
    pub fn datagram(self) -> io::Result<UnixDatagram> {
        match self.bound.into_inner().unwrap_or_else(PoisonError::into_inner) {
            State::Datagrams(socket) => Ok(socket),
            State::Unbound if !self.is_stream => UnixDatagram::unbound(),
            State::Unbound | State::Stream(_) => {
                Err(io::Error::other("datagram cannot be called on a stream socket"))
            }
        }
    }
}

crate::net::socket::descriptor!(UnixSocket, socket);

#[allow(unsafe_code, reason = "the trait is unsafe, since its caller gives the descriptor away")]
impl FromRawFd for UnixSocket {
    unsafe fn from_raw_fd(descriptor: RawFd) -> Self {
        // SAFETY: the caller gives the descriptor away.
        let socket = Socket::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        let is_stream = socket.r#type().is_ok_and(|kind| kind != Type::DGRAM);
        Self::over(socket, is_stream)
    }
}

impl IntoRawFd for UnixSocket {
    fn into_raw_fd(self) -> RawFd {
        self.socket.into_raw_fd()
    }
}

impl fmt::Debug for UnixSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixSocket").field("is_stream", &self.is_stream).finish_non_exhaustive()
    }
}
