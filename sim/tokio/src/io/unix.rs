//! `tokio::io::unix`: descriptors of the real machine are refused. The types exist so that code with them
//! compiles, and have no values.

#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    reason = "tokio's own are async and return results; here nothing can call them"
)]

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::task::{Context, Poll};

pub use real_tokio::io::unix::TryIoError;

use super::{Interest, Ready};
use crate::host::refused;

const NAME: &str = "tokio::io::unix::AsyncFd";
const INSTEAD: &str = "connect through tokio::net, whose sockets are simulated";

/// A descriptor of the real machine, which no simulated process can wait for.
pub struct AsyncFd<T: AsRawFd>(Infallible, PhantomData<T>);

/// The readiness of a descriptor, which no simulated process gets.
#[must_use = "call a method that clears the readiness or retains it"]
pub struct AsyncFdReadyGuard<'a, T: AsRawFd>(Infallible, PhantomData<&'a AsyncFd<T>>);

/// The readiness of a descriptor, which no simulated process gets.
#[must_use = "call a method that clears the readiness or retains it"]
pub struct AsyncFdReadyMutGuard<'a, T: AsRawFd>(Infallible, PhantomData<&'a mut AsyncFd<T>>);

/// A descriptor that was refused, with the error.
pub struct AsyncFdRegisterError<T> {
    inner: T,
    cause: io::Error,
}

/// The former name of [`AsyncFdRegisterError`].
#[doc(hidden)]
pub type AsyncFdTryNewError<T> = AsyncFdRegisterError<T>;

#[allow(unsafe_code, reason = "tokio's own are unsafe, since they trust the descriptor; here none is used")]
impl<T: AsRawFd> AsyncFd<T> {
    /// Refuses the descriptor.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    ///
    /// # Safety
    ///
    /// Always safe.
    pub unsafe fn register(inner: T) -> Result<Self, AsyncFdRegisterError<T>> {
        Err(AsyncFdRegisterError { inner, cause: refused(NAME, INSTEAD) })
    }

    /// Refuses the descriptor.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    ///
    /// # Safety
    ///
    /// Always safe.
    pub unsafe fn register_with_interest(inner: T, _: Interest) -> Result<Self, AsyncFdRegisterError<T>> {
        Err(AsyncFdRegisterError { inner, cause: refused(NAME, INSTEAD) })
    }

    /// Refuses the descriptor.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn new(_: T) -> io::Result<Self> {
        Err(refused(NAME, INSTEAD))
    }

    /// Refuses the descriptor.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn with_interest(_: T, _: Interest) -> io::Result<Self> {
        Err(refused(NAME, INSTEAD))
    }

    /// Refuses the descriptor.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn try_new(inner: T) -> Result<Self, AsyncFdRegisterError<T>> {
        Err(AsyncFdRegisterError { inner, cause: refused(NAME, INSTEAD) })
    }

    /// Refuses the descriptor.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn try_with_interest(inner: T, _: Interest) -> Result<Self, AsyncFdRegisterError<T>> {
        Err(AsyncFdRegisterError { inner, cause: refused(NAME, INSTEAD) })
    }
}

impl<T: AsRawFd> AsyncFd<T> {
    /// Can't be called: there is no such descriptor.
    pub fn get_ref(&self) -> &T {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn get_mut(&mut self) -> &mut T {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn into_inner(self) -> T {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn poll_read_ready<'a>(&'a self, _: &mut Context<'_>) -> Poll<io::Result<AsyncFdReadyGuard<'a, T>>> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn poll_read_ready_mut<'a>(
        &'a mut self,
        _: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyMutGuard<'a, T>>> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn poll_write_ready<'a>(&'a self, _: &mut Context<'_>) -> Poll<io::Result<AsyncFdReadyGuard<'a, T>>> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn poll_write_ready_mut<'a>(
        &'a mut self,
        _: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyMutGuard<'a, T>>> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub async fn ready(&self, _: Interest) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub async fn ready_mut(&mut self, _: Interest) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub async fn readable(&self) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub async fn readable_mut(&mut self) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub async fn writable(&self) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub async fn writable_mut(&mut self) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub async fn async_io<R>(&self, _: Interest, _: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub async fn async_io_mut<R>(
        &mut self,
        _: Interest,
        _: impl FnMut(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn try_io<R>(&self, _: Interest, _: impl FnOnce(&T) -> io::Result<R>) -> io::Result<R> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn try_io_mut<R>(&mut self, _: Interest, _: impl FnOnce(&mut T) -> io::Result<R>) -> io::Result<R> {
        match self.0 {}
    }
}

impl<'a, T: AsRawFd> AsyncFdReadyGuard<'a, T> {
    /// Can't be called: there is no such descriptor.
    pub fn clear_ready(&mut self) {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn clear_ready_matching(&mut self, _: Ready) {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn retain_ready(&mut self) {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn ready(&self) -> Ready {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn try_io<R>(
        &mut self,
        _: impl FnOnce(&'a AsyncFd<T>) -> io::Result<R>,
    ) -> Result<io::Result<R>, TryIoError> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn get_ref(&self) -> &'a AsyncFd<T> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn get_inner(&self) -> &'a T {
        match self.0 {}
    }
}

impl<T: AsRawFd> AsyncFdReadyMutGuard<'_, T> {
    /// Can't be called: there is no such descriptor.
    pub fn clear_ready(&mut self) {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn clear_ready_matching(&mut self, _: Ready) {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn retain_ready(&mut self) {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn ready(&self) -> Ready {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn try_io<R>(
        &mut self,
        _: impl FnOnce(&mut AsyncFd<T>) -> io::Result<R>,
    ) -> Result<io::Result<R>, TryIoError> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn get_ref(&self) -> &AsyncFd<T> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn get_mut(&mut self) -> &mut AsyncFd<T> {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn get_inner(&self) -> &T {
        match self.0 {}
    }

    /// Can't be called: there is no such descriptor.
    pub fn get_inner_mut(&mut self) -> &mut T {
        match self.0 {}
    }
}

impl<T: AsRawFd> AsRawFd for AsyncFd<T> {
    fn as_raw_fd(&self) -> RawFd {
        match self.0 {}
    }
}

impl<T: AsRawFd> AsFd for AsyncFd<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}

impl<T: fmt::Debug + AsRawFd> fmt::Debug for AsyncFd<T> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

impl<T: fmt::Debug + AsRawFd> fmt::Debug for AsyncFdReadyGuard<'_, T> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

impl<T: fmt::Debug + AsRawFd> fmt::Debug for AsyncFdReadyMutGuard<'_, T> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

impl<T> AsyncFdRegisterError<T> {
    /// Returns the descriptor and the error.
    pub fn into_parts(self) -> (T, io::Error) {
        (self.inner, self.cause)
    }
}

impl<T> fmt::Display for AsyncFdRegisterError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.cause, f)
    }
}

impl<T> fmt::Debug for AsyncFdRegisterError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.cause, f)
    }
}

impl<T> Error for AsyncFdRegisterError<T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

impl<T> From<AsyncFdRegisterError<T>> for io::Error {
    fn from(error: AsyncFdRegisterError<T>) -> Self {
        error.cause
    }
}
