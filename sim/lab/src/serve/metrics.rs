//! The metrics of a simulated server on a real port, and the port that serves them.
#![allow(
    clippy::disallowed_methods,
    reason = "counts live connections and answers live requests: nothing here runs inside a simulation"
)]

use std::fmt::Write;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// The largest head of a request for the metrics, in bytes.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Timeout for a request for the metrics.
const SCRAPE: Duration = Duration::from_secs(10);
/// The pause after a failed accept: usually this process has too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The counters of one server.
#[derive(Debug, Default)]
pub(super) struct Counters {
    connections: AtomicU64,
    open: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

impl Counters {
    /// Returns the counters of the server named `server` in the Prometheus text format, version 0.0.4.
    fn render(&self, server: &str) -> String {
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, value: &AtomicU64| {
            let value = value.load(Ordering::Relaxed);
            // Writing to a String can't fail.
            let _ = writeln!(
                text,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{{server=\"{server}\"}} {value}"
            );
        };
        family("sim_server_connections_total", "counter", "Connections accepted.", &self.connections);
        family("sim_server_open_connections", "gauge", "Connections open now.", &self.open);
        family("sim_server_received_bytes_total", "counter", "Bytes from clients.", &self.received_bytes);
        family("sim_server_sent_bytes_total", "counter", "Bytes to clients.", &self.sent_bytes);
        text
    }
}

/// A connection whose bytes are counted.
#[derive(Debug)]
pub(super) struct Counted {
    stream: TcpStream,
    counters: Arc<Counters>,
}

impl Counted {
    /// Counts `stream` as open until it is dropped.
    pub(super) fn new(stream: TcpStream, counters: &Arc<Counters>) -> Self {
        counters.connections.fetch_add(1, Ordering::Relaxed);
        counters.open.fetch_add(1, Ordering::Relaxed);
        Self { stream, counters: Arc::clone(counters) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.counters.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.counters.received_bytes.fetch_add((buffer.filled().len() - before) as u64, Ordering::Relaxed);
        polled
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(written)) = &polled {
            self.counters.sent_bytes.fetch_add(*written as u64, Ordering::Relaxed);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Answers `GET /metrics` with the counters of the server named `server`, until the program ends.
pub(super) async fn serve(listener: TcpListener, server: &'static str, counters: Arc<Counters>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let counters = Arc::clone(&counters);
        tokio::spawn(async move {
            // A client that is too slow, or sends too much, gets no answer.
            let _ = tokio::time::timeout(SCRAPE, answer(stream, server, &counters)).await;
        });
    }
}

async fn answer(mut stream: TcpStream, server: &str, counters: &Counters) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > HEAD_BYTES_MAX || stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let (status, body) = match head.starts_with(b"GET /metrics ") {
        true => ("200 OK", counters.render(server)),
        false => ("404 Not Found", "only GET /metrics is served here\n".to_owned()),
    };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}");
    stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n{body}").as_bytes()).await?;
    stream.shutdown().await
}
