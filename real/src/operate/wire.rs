//! The network of the operator's tools: that of tokio, over TLS where the servers are.
//!
//! It knows why its last connection broke: a server refuses the certificate of a client only after the
//! handshake, and the clients of Redis and etcd may then report no more than a broken connection.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use dlock::tls::TlsConnector;
use dlock::{Instant, Runtime, TokioRuntime};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A byte stream, encrypted or not.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A runtime whose connections are over TLS if it has a connector. Clones share the reason of the last broken
/// connection.
#[derive(Clone)]
pub(super) struct Wire {
    runtime: TokioRuntime,
    tls: Option<TlsConnector>,
    broken: Broken,
}

/// The reason why the last connection broke, if it did.
#[derive(Clone, Default)]
struct Broken(Arc<Mutex<Option<String>>>);

/// A stream that notes its first error.
pub(super) struct Noted {
    stream: Box<dyn Duplex>,
    broken: Broken,
}

impl Wire {
    pub(super) fn new(runtime: TokioRuntime, tls: Option<TlsConnector>) -> Self {
        Self { runtime, tls, broken: Broken::default() }
    }

    /// Returns the same network with reasons of its own.
    pub(super) fn apart(&self) -> Self {
        Self::new(self.runtime.clone(), self.tls.clone())
    }

    /// Adds the reason why the connection broke to an error on it.
    pub(super) fn explained(&self, error: impl ToString) -> String {
        let error = error.to_string();
        match self.broken.0.lock().unwrap_or_else(PoisonError::into_inner).as_deref() {
            Some(reason) if !error.contains(reason) => format!("{error}: {reason}"),
            _ => error,
        }
    }
}

impl Broken {
    fn set(&self, reason: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    fn note(&self, error: &io::Error) {
        let mut reason = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reason.get_or_insert_with(|| error.to_string());
    }
}

impl Runtime for Wire {
    type Stream = Noted;

    fn now(&self) -> Instant {
        self.runtime.now()
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + Send {
        self.runtime.sleep_until(deadline)
    }

    async fn connect(&self, address: &str) -> io::Result<Noted> {
        self.broken.set(None);
        let stream = self.runtime.connect(address).await?;
        let stream: Box<dyn Duplex> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => Box::new(tls.connect(stream, address).await?),
        };
        Ok(Noted { stream, broken: self.broken.clone() })
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        self.runtime.fill_random(bytes);
    }
}

impl Noted {
    /// Notes a failed write. The peer may have said why it closed the connection: so the write fails only
    /// once a read has ended, which a closed connection wakes.
    fn written<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &written {
            match Pin::new(&mut self.stream).poll_read(cx, &mut ReadBuf::new(&mut [0; 1])) {
                Poll::Ready(Err(reason)) => self.broken.note(&reason),
                Poll::Ready(Ok(())) => self.broken.note(error),
                Poll::Pending => return Poll::Pending,
            }
        }
        written
    }
}

impl AsyncRead for Noted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if let Poll::Ready(Err(error)) = &read {
            self.broken.note(error);
        }
        read
    }
}

impl AsyncWrite for Noted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = Pin::new(&mut self.stream).poll_flush(cx);
        self.written(cx, written)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
