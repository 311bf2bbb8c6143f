//! Serves the resource over TCP.
#![allow(clippy::disallowed_methods, reason = "this is where live connections come from")]

use std::io;
use std::time::Duration;

use dlock::tls::TlsAcceptor;
use resource::http::{App, serve_connection};
use tokio::net::{TcpListener, TcpStream};

pub use crate::patient::Patience;
use crate::patient::Patient;

/// The pause after a failed accept: usually this process has too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

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
/// handshake, request, or the rest of it, does not come.
pub async fn serve_resource(listener: TcpListener, app: App, tls: Option<TlsAcceptor>) {
    serve_patiently(listener, app, tls, Patience::default()).await;
}

/// Serves the resource as [`serve_resource`] does, and waits for clients as long as `patience` says.
pub async fn serve_patiently(listener: TcpListener, app: App, tls: Option<TlsAcceptor>, patience: Patience) {
    loop {
        let stream = Patient::new(accept(&listener).await, patience);
        let (app, tls) = (app.clone(), tls.clone());
        // A broken connection, and a refused certificate, are reported to the client.
        tokio::spawn(async move {
            match tls {
                None => drop(serve_connection(stream, &app).await),
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        drop(serve_connection(stream, &app).await);
                    }
                }
            }
        });
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
