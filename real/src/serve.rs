//! Serves the resource, and the metrics of other commands, over TCP.
#![allow(clippy::disallowed_methods, reason = "this is where live connections come from")]

use std::io;
use std::time::Duration;

use dlock::tls::TlsAcceptor;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use resource::http::{App, serve_connection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub use crate::patient::Patience;
use crate::patient::Patient;

/// The largest head of a request for the metrics, in bytes.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Timeout for a request for the metrics.
const SCRAPE: Duration = Duration::from_secs(10);
/// The pause after a failed accept: usually this process has too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The buckets of all durations, in milliseconds: from a round trip to a long wait.
const MILLIS: [f64; 16] = [
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 10_000.0, 60_000.0,
];

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

/// Starts counting this process's lock metrics, with the help texts of [`dlock::metrics`].
///
/// # Errors
///
/// If another recorder is installed.
pub fn count() -> io::Result<PrometheusHandle> {
    let builder = PrometheusBuilder::new().set_buckets(&MILLIS).map_err(io::Error::other)?;
    let handle = builder.install_recorder().map_err(io::Error::other)?;
    dlock::metrics::describe();
    Ok(handle)
}

/// Serves `GET /metrics` until the process ends.
pub async fn serve_metrics(listener: TcpListener, metrics: PrometheusHandle) {
    loop {
        let stream = accept(&listener).await;
        let metrics = metrics.clone();
        tokio::spawn(async move {
            // A client that is too slow, or sends too much, gets no answer.
            let _ = tokio::time::timeout(SCRAPE, answer_scrape(stream, &metrics)).await;
        });
    }
}

async fn accept(listener: &TcpListener) -> TcpStream {
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

async fn answer_scrape(mut stream: TcpStream, metrics: &PrometheusHandle) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > HEAD_BYTES_MAX || stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let (status, body) = if head.starts_with(b"GET /metrics ") {
        metrics.run_upkeep();
        ("200 OK", metrics.render())
    } else {
        ("404 Not Found", "only GET /metrics is served here\n".to_owned())
    };
    let length = body.len();
    let kind = "text/plain; version=0.0.4";
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: \
         close\r\n\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
