//! One HTTP/1.1 connection of the service, on any stream.

use std::convert::Infallible;
use std::future::Future;

use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};

use super::answer::Problem;
use super::{App, Peer};
use crate::metrics::Plain;

/// Serves one HTTP/1.1 connection on `stream` until the client closes it.
///
/// It sets no timer and sends no `Date`, since the service reads no clock. On the open internet, set a
/// timeout for connections outside.
///
/// # Errors
///
/// The error of the connection; the service itself is unharmed.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
///
/// use resource::http::{App, Config, serve_connection};
/// use resource::store::MemoryStore;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// let app = App::new(Arc::new(MemoryStore::new()), Config::default());
/// // The server's end is a connection of a `TcpListener` in a service.
/// let (mut client, server) = tokio::io::duplex(1024);
/// tokio::spawn(serve_connection(server, &app));
///
/// let request = "PUT /r/orders:42 HTTP/1.1\r\nHost: resource\r\nContent-Length: 4\r\n";
/// client.write_all(format!("{request}X-Fence-Token: 34\r\n\r\npaid").as_bytes()).await?;
/// client.shutdown().await?;
/// let mut answer = String::new();
/// client.read_to_string(&mut answer).await?;
/// assert!(answer.starts_with("HTTP/1.1 200 OK"));
/// assert!(answer.ends_with(r#"{"version":1,"max_fence":34}"#));
/// # Ok(())
/// # }
/// ```
pub fn serve_connection<I>(
    stream: I,
    app: &App,
) -> impl Future<Output = Result<(), hyper::Error>> + Send + use<I>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    server().serve_connection(TokioIo::new(stream), TowerToHyperService::new(app.router()))
}

/// Serves one connection as [`serve_connection`] does, of a client that the server knows as `peer`. The
/// guards and the records of operators use it.
///
/// # Errors
///
/// As [`serve_connection`].
pub fn serve_peer<I>(
    stream: I,
    app: &App,
    peer: Peer,
) -> impl Future<Output = Result<(), hyper::Error>> + Send + use<I>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(app.router());
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        service.call(request)
    });
    server().serve_connection(TokioIo::new(stream), service)
}

/// Answers the first request of a connection with 503 and closes it: for connections beyond a limit, which is
/// the caller's to decide.
///
/// # Errors
///
/// As [`serve_connection`].
pub fn refuse_connection<I>(
    stream: I,
    app: &App,
) -> impl Future<Output = Result<(), hyper::Error>> + Send + use<I>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    app.metrics.count(Plain::ConnectionsRefused);
    let busy = service_fn(async |_| Ok::<_, Infallible>(Problem::BUSY.into_response()));
    server().keep_alive(false).serve_connection(TokioIo::new(stream), busy)
}

fn server() -> Builder {
    let mut server = Builder::new();
    server
        .header_read_timeout(None)
        .auto_date_header(false)
        // A client may close its half after its request: a request that arrived whole is answered.
        .half_close(true);
    server
}
