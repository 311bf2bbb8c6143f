//! `tokio::net::unix::pipe`: pipes within a process, in memory. They have no latency and lose nothing.
//!
//! Named pipes are refused: the file system of a simulated machine has none, and no other process of the
//! world runs on it.

use std::fmt;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use real_tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};

use super::direction::Direction;
use crate::host;
use crate::net::connection::joined;
use crate::net::placeholder::Placeholder;

/// The most bytes that wait to be read, as in Linux (`pipe(7)`).
const CAPACITY: usize = 65_536;

/// The most bytes that one write sends as a whole or not at all (`PIPE_BUF` of Linux).
const WHOLE_MAX: usize = 4_096;

const INSTEAD: &str = "use tokio::net::unix::pipe::pipe, or a UnixStream, within the process; \
                       a TcpStream between processes";

/// Returns the two ends of a pipe.
///
/// # Errors
///
/// None.
pub fn pipe() -> io::Result<(Sender, Receiver)> {
    let sends = Direction::new(CAPACITY, WHOLE_MAX);
    let receives = sends.clone();
    let sender = Sender { direction: sends, placeholder: Placeholder::default() };
    Ok((sender, Receiver { direction: receives, placeholder: Placeholder::default() }))
}

/// The options under which a named pipe is opened, which is refused.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions(());

impl OpenOptions {
    /// Returns options with none set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes nothing.
    pub fn read_write(&mut self, _: bool) -> &mut Self {
        self
    }

    /// Changes nothing.
    pub fn unchecked(&mut self, _: bool) -> &mut Self {
        self
    }

    /// Refuses to open a named pipe.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn open_receiver<P: AsRef<Path>>(&self, _: P) -> io::Result<Receiver> {
        Err(host::refused("tokio::net::unix::pipe::OpenOptions::open_receiver", INSTEAD))
    }

    /// Refuses to open a named pipe.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn open_sender<P: AsRef<Path>>(&self, _: P) -> io::Result<Sender> {
        Err(host::refused("tokio::net::unix::pipe::OpenOptions::open_sender", INSTEAD))
    }
}

/// The end of a pipe that sends. Dropping it ends the pipe.
pub struct Sender {
    direction: Direction,
    placeholder: Placeholder,
}

/// The end of a pipe that receives. Dropping it closes the pipe: a sender gets an error.
pub struct Receiver {
    direction: Direction,
    placeholder: Placeholder,
}

impl Sender {
    /// Waits until a write of 4,096 bytes would not wait. `interest` has no influence: a sender can only
    /// write.
    ///
    /// # Errors
    ///
    /// None: the write has it.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        let _ = interest;
        self.writable().await?;
        let closed = if self.direction.is_closed() { Ready::WRITE_CLOSED } else { Ready::EMPTY };
        Ok(Ready::WRITABLE | closed)
    }

    /// Waits until a write of 4,096 bytes would not wait.
    ///
    /// # Errors
    ///
    /// None: the write has it.
    pub async fn writable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_write_ready(cx)).await
    }

    /// Polls until a write of 4,096 bytes would not wait.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        host::poll(cx.waker(), |waker| self.direction.check_room(waker))
    }

    /// Sends bytes, as far as there is room. Up to 4,096 are sent as a whole or not at all.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if there is no room, [`io::ErrorKind::BrokenPipe`] if the receiver has
    /// been dropped.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.direction.write(None, buf)
    }

    /// Sends bytes.
    ///
    /// # Errors
    ///
    /// As [`Sender::try_write`].
    pub fn try_write_vectored(&self, buf: &[IoSlice<'_>]) -> io::Result<usize> {
        self.try_write(&joined(buf))
    }

    /// Calls `f`, which must try to write.
    ///
    /// # Errors
    ///
    /// The errors of `f`.
    pub fn try_io<R>(&self, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        f()
    }
}

impl AsyncWrite for Sender {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        host::poll(cx.waker(), |waker| self.direction.write(waker, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write(cx, &joined(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Does nothing, as tokio's own: dropping the sender ends the pipe.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Receiver {
    /// Waits until it can be read. `interest` has no influence: a receiver can only read.
    ///
    /// # Errors
    ///
    /// None: the read has it.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        let _ = interest;
        self.readable().await?;
        let closed = if self.direction.is_closed() { Ready::READ_CLOSED } else { Ready::EMPTY };
        Ok(Ready::READABLE | closed)
    }

    /// Waits until it can be read.
    ///
    /// # Errors
    ///
    /// None: the read has it.
    pub async fn readable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_read_ready(cx)).await
    }

    /// Polls until it can be read.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        host::poll(cx.waker(), |waker| self.direction.peek(waker, &mut [])).map_ok(|_| ())
    }

    /// Reads what was sent; 0 at the end of the pipe.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if nothing was.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.direction.read(None, buf)
    }

    /// Reads what was sent into the first buffer that is not empty.
    ///
    /// # Errors
    ///
    /// As [`Receiver::try_read`].
    pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match bufs.iter_mut().find(|buf| !buf.is_empty()) {
            Some(buf) => self.try_read(buf),
            None => Ok(0),
        }
    }

    /// Reads what was sent into `buf`.
    ///
    /// # Errors
    ///
    /// As [`Receiver::try_read`].
    #[cfg(feature = "io-util")]
    pub fn try_read_buf<B: bytes::BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        let mut bytes = vec![0; buf.chunk_mut().len()];
        let length = self.try_read(&mut bytes)?;
        buf.put_slice(&bytes[..length]);
        Ok(length)
    }

    /// Calls `f`, which must try to read.
    ///
    /// # Errors
    ///
    /// The errors of `f`.
    pub fn try_io<R>(&self, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        f()
    }
}

impl AsyncRead for Receiver {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let bytes = buf.initialize_unfilled();
        if bytes.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let length = std::task::ready!(host::poll(cx.waker(), |waker| self.direction.read(waker, bytes)))?;
        buf.advance(length);
        Poll::Ready(Ok(()))
    }
}

/// Defines the conversions of an end of a pipe, which are refused, and its traits.
macro_rules! end {
    ($end:ident, $name:literal) => {
        impl $end {
            /// Refused: a descriptor is the real machine's.
            ///
            /// # Errors
            ///
            /// Always: the run ends with an error that names the line.
            pub fn from_file(_: File) -> io::Result<Self> {
                Err(host::refused(concat!($name, "::from_file"), INSTEAD))
            }

            /// Refused: a descriptor is the real machine's.
            ///
            /// # Errors
            ///
            /// Always: the run ends with an error that names the line.
            pub fn from_file_unchecked(_: File) -> io::Result<Self> {
                Err(host::refused(concat!($name, "::from_file_unchecked"), INSTEAD))
            }

            /// Refused: a descriptor is the real machine's.
            ///
            /// # Errors
            ///
            /// Always: the run ends with an error that names the line.
            pub fn from_owned_fd(_: OwnedFd) -> io::Result<Self> {
                Err(host::refused(concat!($name, "::from_owned_fd"), INSTEAD))
            }

            /// Refused: a descriptor is the real machine's.
            ///
            /// # Errors
            ///
            /// Always: the run ends with an error that names the line.
            pub fn from_owned_fd_unchecked(_: OwnedFd) -> io::Result<Self> {
                Err(host::refused(concat!($name, "::from_owned_fd_unchecked"), INSTEAD))
            }

            /// Refused: a descriptor is the real machine's.
            ///
            /// # Errors
            ///
            /// Always: the run ends with an error that names the line.
            pub fn into_blocking_fd(self) -> io::Result<OwnedFd> {
                Err(host::refused(concat!($name, "::into_blocking_fd"), INSTEAD))
            }

            /// Refused: a descriptor is the real machine's.
            ///
            /// # Errors
            ///
            /// Always: the run ends with an error that names the line.
            pub fn into_nonblocking_fd(self) -> io::Result<OwnedFd> {
                Err(host::refused(concat!($name, "::into_nonblocking_fd"), INSTEAD))
            }
        }

        impl Drop for $end {
            fn drop(&mut self) {
                self.direction.close();
            }
        }

        crate::net::socket::descriptor!($end, placeholder.socket());

        impl fmt::Debug for $end {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($end)).finish_non_exhaustive()
            }
        }
    };
}

end!(Sender, "tokio::net::unix::pipe::Sender");
end!(Receiver, "tokio::net::unix::pipe::Receiver");
