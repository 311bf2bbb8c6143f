//! A connected socket of either kind.

#![allow(clippy::disallowed_methods, reason = "this is the seam's live side")]

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A connected socket.
#[derive(Debug)]
pub(super) enum Socket {
    /// To another machine, or to this one over its network.
    Tcp(TcpStream),
    /// To a program of this machine, by a path of its file system.
    Unix(UnixStream),
}

impl Socket {
    /// Connects to an address, written `host:port` or `unix:/path`.
    pub(super) async fn connect(address: &str) -> io::Result<Self> {
        if let Some(path) = address.strip_prefix(crate::setup::UNIX) {
            return UnixStream::connect(path).await.map(Self::Unix);
        }
        let stream = TcpStream::connect(address).await?;
        // A lock's commands are small and urgent: Nagle's algorithm would delay them until an
        // acknowledgement.
        stream.set_nodelay(true)?;
        Ok(Self::Tcp(stream))
    }
}

/// Calls a method of the stream inside.
macro_rules! inside {
    ($socket:expr, $inner:ident => $call:expr) => {
        match $socket {
            Self::Tcp($inner) => $call,
            Self::Unix($inner) => $call,
        }
    };
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        inside!(self, inner => inner.as_fd())
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        inside!(&mut *self, inner => Pin::new(inner).poll_read(cx, buf))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        inside!(&mut *self, inner => Pin::new(inner).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        inside!(&mut *self, inner => Pin::new(inner).poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        inside!(self, inner => inner.is_write_vectored())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inside!(&mut *self, inner => Pin::new(inner).poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inside!(&mut *self, inner => Pin::new(inner).poll_shutdown(cx))
    }
}
