//! A TLS connection, of either side.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::reason;

/// A byte stream over TLS on a stream `S`. Its errors say why the other side has refused a certificate.
#[derive(Debug)]
pub struct TlsStream<S>(tokio_rustls::TlsStream<S>);

impl<S> TlsStream<S> {
    pub(super) fn client(stream: tokio_rustls::client::TlsStream<S>) -> Self {
        Self(stream.into())
    }

    pub(super) fn server(stream: tokio_rustls::server::TlsStream<S>) -> Self {
        Self(stream.into())
    }

    /// Returns the certificate that the other side has shown, in DER; `None` of a client that showed none.
    pub fn peer_certificate(&self) -> Option<&[u8]> {
        self.0.get_ref().1.peer_certificates()?.first().map(AsRef::as_ref)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf).map_err(reason::explained)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
