//! The borrowed directions of a connection.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use real_tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};

use super::stream::TcpStream;
use crate::net::connection::joined;
use crate::net::halves::halves;

/// The direction in which it receives.
#[derive(Debug)]
pub struct ReadHalf<'a>(&'a TcpStream);

/// The direction in which it sends.
#[derive(Debug)]
pub struct WriteHalf<'a>(&'a TcpStream);

impl TcpStream {
    /// Borrows the two directions.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        (ReadHalf(self), WriteHalf(self))
    }
}

halves!(ReadHalf<'_>, WriteHalf<'_>, TcpStream, SocketAddr);

impl ReadHalf<'_> {
    /// Polls for bytes, and leaves them to be read.
    pub fn poll_peek(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<usize>> {
        self.0.poll_peek(cx, buf)
    }

    /// Waits for bytes, and leaves them to be read.
    ///
    /// # Errors
    ///
    /// As a read.
    pub async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.peek(buf).await
    }
}
