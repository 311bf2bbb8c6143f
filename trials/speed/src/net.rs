//! The network of a simulator.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncWrite};

/// A network with TCP.
pub trait Net: Clone + Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;
    type Listener: Send + Sync + 'static;

    fn connect(host: &str, port: u16) -> impl Future<Output = io::Result<Self::Stream>> + Send;
    fn listen(port: u16) -> impl Future<Output = io::Result<Self::Listener>> + Send;
    fn accept(
        listener: &mut Self::Listener,
    ) -> impl Future<Output = io::Result<(Self::Stream, SocketAddr)>> + Send;
}

/// tokio's own network: that of our simulator in a build by `cargo sim`.
#[derive(Clone)]
pub struct Tokio;

impl Net for Tokio {
    type Stream = tokio::net::TcpStream;
    type Listener = tokio::net::TcpListener;

    async fn connect(host: &str, port: u16) -> io::Result<Self::Stream> {
        tokio::net::TcpStream::connect((host, port)).await
    }

    async fn listen(port: u16) -> io::Result<Self::Listener> {
        tokio::net::TcpListener::bind(("0.0.0.0", port)).await
    }

    async fn accept(listener: &mut Self::Listener) -> io::Result<(Self::Stream, SocketAddr)> {
        listener.accept().await
    }
}

#[cfg(feature = "turmoil")]
#[derive(Clone)]
pub struct Turmoil;

#[cfg(feature = "turmoil")]
impl Net for Turmoil {
    type Stream = turmoil::net::TcpStream;
    type Listener = turmoil::net::TcpListener;

    async fn connect(host: &str, port: u16) -> io::Result<Self::Stream> {
        turmoil::net::TcpStream::connect((host, port)).await
    }

    async fn listen(port: u16) -> io::Result<Self::Listener> {
        turmoil::net::TcpListener::bind(("0.0.0.0", port)).await
    }

    async fn accept(listener: &mut Self::Listener) -> io::Result<(Self::Stream, SocketAddr)> {
        listener.accept().await
    }
}
