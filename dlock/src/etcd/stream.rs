//! tonic on the runtime's streams and tasks: nothing of it opens a socket, spawns a thread or sets a timer.

use std::future::{Future, Ready, ready};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use dlock_runtime::Runtime;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::Uri;

use crate::sync::Changes;

/// The state of a connection: open for new requests, or over.
#[derive(Default)]
pub(super) struct Life {
    over: AtomicBool,
    changed: Changes,
    /// The error with which the stream failed. HTTP/2 gives it to one of the requests in progress, or to
    /// none.
    failure: OnceLock<String>,
}

impl Life {
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.changed.announce();
    }

    /// Returns the error with which the stream failed, if it did.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Notes that the stream failed; the first error counts.
    fn failed(&self, error: &io::Error) {
        let _ = self.failure.set(error.to_string());
    }

    /// Completes once it is over.
    pub(super) async fn over(&self) {
        self.changed.until(|| self.is_over().then_some(())).await;
    }
}

/// A stream that ends the connection when HTTP/2 drops it, before a request fails on it.
pub(super) struct Mortal<S> {
    stream: S,
    life: Arc<Life>,
}

impl<S> Mortal<S> {
    pub(super) fn new(stream: S, life: &Arc<Life>) -> Self {
        Self { stream, life: Arc::clone(life) }
    }
}

impl<S: AsyncRead + Unpin> Mortal<S> {
    /// Notes a failed write. HTTP/2 reads no more after it, but the peer may have said why it closed the
    /// connection. So the write fails only once a read has ended, which a closed connection wakes.
    fn written<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &written {
            let mut rest = [0; 1];
            match Pin::new(&mut self.stream).poll_read(cx, &mut ReadBuf::new(&mut rest)) {
                Poll::Ready(Err(reason)) => self.life.failed(&reason),
                Poll::Ready(Ok(())) => self.life.failed(error),
                Poll::Pending => return Poll::Pending,
            }
        }
        written
    }
}

impl<S> Drop for Mortal<S> {
    fn drop(&mut self) {
        self.life.end();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Mortal<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if let Poll::Ready(Err(error)) = &read {
            self.life.failed(error);
        }
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Mortal<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.written(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.written(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Gives tonic one stream, once: `connector.rs` chooses the next member.
pub(super) struct Once<S>(pub(super) Option<S>);

impl<S> tower_service::Service<Uri> for Once<S> {
    type Response = TokioIo<S>;
    type Error = io::Error;
    type Future = Ready<io::Result<TokioIo<S>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let ended = || io::Error::new(io::ErrorKind::NotConnected, "the connection has ended");
        ready(self.0.take().map(TokioIo::new).ok_or_else(ended))
    }
}

/// Runs tonic's tasks.
pub(super) struct Spawner<R>(pub(super) R);

impl<R: Runtime, F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Spawner<R> {
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A stream whose peer has refused this side, and closed it.
    struct Refused;

    impl AsyncRead for Refused {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::Error::other("the server wants a certificate")))
        }
    }

    impl AsyncWrite for Refused {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_failed_write_is_explained_by_what_the_peer_said() {
        let life = Arc::new(Life::default());
        let mut stream = Mortal::new(Refused, &life);
        assert!(stream.write_all(b"PRI").await.is_err());
        assert_eq!(life.failure(), Some("the server wants a certificate"));
    }

    #[tokio::test]
    async fn a_failed_read_is_kept() {
        let life = Arc::new(Life::default());
        assert_eq!(life.failure(), None);
        assert!(Mortal::new(Refused, &life).read_u8().await.is_err());
        assert_eq!(life.failure(), Some("the server wants a certificate"));
    }
}
