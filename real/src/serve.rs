//! Serves the resource over TCP.
#![allow(clippy::disallowed_methods, reason = "this is where live connections come from")]

use std::io;
use std::sync::Arc;
use std::time::Duration;

use dlock::tls::TlsAcceptor;
use resource::http::{App, Peer, refuse_connection, serve_peer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

pub use crate::patient::Patience;
use crate::patient::Patient;

/// The pause after a failed accept: usually this process has too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The largest number of connections beyond the limit that are answered at a time.
pub const REFUSALS_MAX: usize = 64;
/// The time for the request of such a connection, and for its handshake.
const REFUSAL: Patience = Patience { request: Duration::from_secs(1), idle: Duration::from_secs(1) };

/// Listens on `address`, `host:port`; port 0 picks a free one.
///
/// # Errors
///
/// An error that says what to do.
pub async fn listen(address: &str) -> io::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let help = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "stop the process that listens there, or give port 0 to pick a free one"
            }
            io::ErrorKind::PermissionDenied => "give a port above 1023",
            _ => "give host:port, such as 127.0.0.1:8080",
        };
        io::Error::new(error.kind(), format!("can't listen on {address}: {error}; {help}"))
    })
}

/// Serves the resource until the process ends, over TLS if `tls` is given. Closes a connection whose
/// handshake, request, or the rest of it, does not come. Answers connections beyond `max_connections` with
/// 503 and closes them.
///
/// A client learns more from that answer than from a connection that is closed, or that waits in the queue of
/// the kernel: nothing was applied, and when to try again. nginx (`limit_conn`) answers so, too. At most
/// [`REFUSALS_MAX`] such answers are under way; connections beyond them are closed at once.
pub async fn serve_resource(
    listener: TcpListener,
    app: App,
    tls: Option<TlsAcceptor>,
    max_connections: Option<usize>,
) {
    serve(listener, app, tls, Patience::default(), max_connections).await;
}

/// Serves the resource as [`serve_resource`] does, and waits for clients as long as `patience` says.
pub async fn serve_patiently(listener: TcpListener, app: App, tls: Option<TlsAcceptor>, patience: Patience) {
    serve(listener, app, tls, patience, None).await;
}

async fn serve(
    listener: TcpListener,
    app: App,
    tls: Option<TlsAcceptor>,
    patience: Patience,
    max_connections: Option<usize>,
) {
    let connections = max_connections.map(places);
    let refusals = places(REFUSALS_MAX);
    loop {
        let stream = accept(&listener).await;
        let (app, tls) = (app.clone(), tls.clone());
        let place = connections.as_ref().map(|places| Arc::clone(places).try_acquire_owned());
        match place.transpose() {
            Ok(place) => tokio::spawn(async move {
                serve_client(stream, &app, tls, patience).await;
                drop(place);
            }),
            Err(_) => {
                let Ok(place) = Arc::clone(&refusals).try_acquire_owned() else {
                    // Counts the connection, and closes it.
                    drop(refuse_connection(stream, &app));
                    continue;
                };
                tokio::spawn(async move {
                    refuse(stream, &app, tls).await;
                    drop(place);
                })
            }
        };
    }
}

fn places(number: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(number.min(Semaphore::MAX_PERMITS)))
}

/// Serves one connection. A broken connection, and a refused certificate, are reported to the client.
async fn serve_client(stream: TcpStream, app: &App, tls: Option<TlsAcceptor>, patience: Patience) {
    let address = stream.peer_addr().ok().map(|address| address.ip());
    let stream = Patient::new(stream, patience);
    match tls {
        None => drop(serve_peer(stream, app, Peer { address, certificate: None }).await),
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                let certificate = stream.peer_certificate().map(Arc::from);
                drop(serve_peer(stream, app, Peer { address, certificate }).await);
            }
        }
    }
}

/// Answers one connection beyond the limit.
async fn refuse(stream: TcpStream, app: &App, tls: Option<TlsAcceptor>) {
    let stream = Patient::new(stream, REFUSAL);
    match tls {
        None => drop(refuse_connection(stream, app).await),
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                drop(refuse_connection(stream, app).await);
            }
        }
    }
}

/// Accepts the next connection.
pub(crate) async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // On failure the connection works, only slower.
                let _ = stream.set_nodelay(true);
                return stream;
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}
