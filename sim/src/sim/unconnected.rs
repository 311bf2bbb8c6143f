//! A stream that stands for the failure to open one, for clients that make their own kind of error.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::world::stream::SimStream;

/// An attempt to connect. After a failure, the first read or write fails with its error.
pub(super) enum Attempt {
    Connected(SimStream),
    /// The error; `None` once it was returned.
    Failed(Option<io::Error>),
}

impl From<io::Result<SimStream>> for Attempt {
    fn from(result: io::Result<SimStream>) -> Self {
        match result {
            Ok(stream) => Self::Connected(stream),
            Err(error) => Self::Failed(Some(error)),
        }
    }
}

impl Attempt {
    fn stream(&mut self) -> io::Result<Pin<&mut SimStream>> {
        match self {
            Self::Connected(stream) => Ok(Pin::new(stream)),
            Self::Failed(error) => Err(error.take().unwrap_or_else(|| io::ErrorKind::NotConnected.into())),
        }
    }
}

impl AsyncRead for Attempt {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream()?.poll_read(cx, buf)
    }
}

impl AsyncWrite for Attempt {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(cx)
    }
}
