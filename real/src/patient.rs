//! A byte stream that ends if its client is too slow: the resource keeps no connection for a client that
//! sends no request, or half of one.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a live connection: its deadlines are on the machine's clock"
)]

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// The longest times for which a server waits for a client.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For a whole request, from its first byte: header and body.
    pub request: Duration,
    /// For the next request on a connection that is open.
    pub idle: Duration,
}

impl Default for Patience {
    /// Returns 30 s for a request, and 75 s between two: nginx's default `keepalive_timeout`.
    fn default() -> Self {
        Self { request: Duration::from_secs(30), idle: Duration::from_secs(75) }
    }
}

/// A stream whose reads fail with [`io::ErrorKind::TimedOut`] once its client is too slow.
#[derive(Debug)]
pub(crate) struct Patient {
    stream: TcpStream,
    patience: Patience,
    deadline: Pin<Box<Sleep>>,
    /// True from the first byte of a request until its answer is written.
    is_asked: bool,
}

impl Patient {
    /// Wraps a stream on which nothing was read yet.
    pub(crate) fn new(stream: TcpStream, patience: Patience) -> Self {
        Self { stream, patience, deadline: Box::pin(sleep(patience.idle)), is_asked: false }
    }

    fn wait_for(&mut self, time: Duration) {
        self.deadline.as_mut().reset(Instant::now() + time);
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_ready() {
            if buffer.filled().len() > before && !self.is_asked {
                self.is_asked = true;
                let time = self.patience.request;
                self.wait_for(time);
            }
            return read;
        }
        self.deadline.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if written.is_ready() {
            self.is_asked = false;
            let time = self.patience.idle;
            self.wait_for(time);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
