//! The directions of a connection over a Unix socket.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use real_tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};

use super::SocketAddr;
use super::stream::UnixStream;
use crate::net::connection::joined;
use crate::net::halves::{halves, owned_halves};

/// The direction in which it receives.
#[derive(Debug)]
pub struct ReadHalf<'a>(&'a UnixStream);

/// The direction in which it sends.
#[derive(Debug)]
pub struct WriteHalf<'a>(&'a UnixStream);

impl UnixStream {
    /// Borrows the two directions.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        (ReadHalf(self), WriteHalf(self))
    }
}

halves!(ReadHalf<'_>, WriteHalf<'_>, UnixStream, SocketAddr);
owned_halves!(UnixStream, SocketAddr);
