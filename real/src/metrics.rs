//! The metrics of a command: counts them, and serves them to Prometheus.
#![allow(clippy::disallowed_methods, reason = "this is where live connections come from")]

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use metrics::{describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;

use crate::serve::{accept, listen};

/// The largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Timeout for a request.
const SCRAPE: Duration = Duration::from_secs(10);
/// The buckets of all durations, in milliseconds: from a round trip to a long hold.
const MILLIS: [f64; 17] = [
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 10_000.0, 60_000.0,
    600_000.0,
];

/// The environment variable of the flag that serves metrics. Children do not inherit it: they would serve on
/// their parent's port.
pub const VARIABLE: &str = "DLOCK_METRICS";

/// Starts counting this process's metrics, with the help texts of [`dlock::metrics`] and of the long run.
/// `real_info` says which command it is.
///
/// # Errors
///
/// If another recorder is installed.
pub fn count(command: &'static str) -> io::Result<PrometheusHandle> {
    let builder = PrometheusBuilder::new().set_buckets(&MILLIS).map_err(io::Error::other)?;
    let handle = builder.install_recorder().map_err(io::Error::other)?;
    dlock::metrics::describe();
    describe_gauge!("real_info", "1, with the command and its version as labels");
    describe_counter!("chaos_faults_total", "Faults of a long run that have struck, by kind");
    describe_gauge!("chaos_faults_in_force", "Faults of a long run that have not ended yet, by kind");
    gauge!("real_info", "command" => command, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    Ok(handle)
}

/// Answers `GET /metrics` with the metrics of this process, and `GET /targets` with those of its children,
/// until the process ends.
pub async fn serve_metrics(listener: TcpListener, metrics: PrometheusHandle, targets: Targets) {
    loop {
        let stream = accept(&listener).await;
        let (metrics, targets) = (metrics.clone(), targets.clone());
        tokio::spawn(async move {
            // A client that is too slow, or sends too much, gets no answer.
            let _ = tokio::time::timeout(SCRAPE, answer(stream, &metrics, &targets)).await;
        });
    }
}

/// Serves as [`serve_metrics`] does, on `address`, in a thread of its own: for a command that blocks its
/// threads. Returns the address once it listens.
///
/// # Errors
///
/// As [`listen`], or an error of the thread.
pub fn serve_metrics_aside(address: &str, metrics: PrometheusHandle, targets: Targets) -> io::Result<String> {
    let executor = Builder::new_current_thread().enable_all().build()?;
    let listener = executor.block_on(listen(address))?;
    let address = listener.local_addr()?.to_string();
    let serve = move || executor.block_on(serve_metrics(listener, metrics, targets));
    thread::Builder::new().name("metrics".to_owned()).spawn(serve)?;
    Ok(address)
}

/// The children of a process that serve metrics of their own: the answer to `GET /targets`, in the format of
/// Prometheus' HTTP service discovery.
#[derive(Clone, Debug, Default)]
pub struct Targets(Arc<Mutex<Vec<Child>>>);

#[derive(Clone, Debug)]
struct Child {
    name: String,
    /// The file of its output, which names its port.
    log: PathBuf,
}

/// A group of targets.
#[derive(Serialize)]
struct Group {
    targets: [String; 1],
    labels: Labels,
}

#[derive(Serialize)]
struct Labels {
    process: String,
}

impl Targets {
    /// Replaces all children by these: their names and the files of their output. A child's file may not
    /// exist yet.
    pub fn set(&self, children: impl IntoIterator<Item = (String, PathBuf)>) {
        let children = children.into_iter().map(|(name, log)| Child { name, log });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = children.collect();
    }

    /// Returns the targets as JSON. The files are read each time, since a child that was started again has
    /// another port.
    fn json(&self) -> String {
        let children = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let group = |Child { name, log }| {
            let address = served_at(&fs::read_to_string(log).ok()?)?;
            Some(Group { targets: [address], labels: Labels { process: name } })
        };
        let groups: Vec<_> = children.into_iter().filter_map(group).collect();
        // Text alone can always be written as JSON.
        serde_json::to_string(&groups).unwrap_or_default()
    }
}

/// Returns the address of `/metrics` that a command has printed: a resource serves them on its own port.
fn served_at(output: &str) -> Option<String> {
    output.lines().rev().find_map(|line| {
        let of_command =
            line.strip_prefix("metrics on http://").and_then(|rest| rest.strip_suffix("/metrics"));
        of_command.or_else(|| line.strip_prefix("listening on ")).map(str::to_owned)
    })
}

async fn answer(mut stream: TcpStream, metrics: &PrometheusHandle, targets: &Targets) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > HEAD_BYTES_MAX || stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let (status, kind, body) = if head.starts_with(b"GET /metrics ") {
        metrics.run_upkeep();
        ("200 OK", "text/plain; version=0.0.4", metrics.render())
    } else if head.starts_with(b"GET /targets ") {
        ("200 OK", "application/json", targets.json())
    } else {
        let body = "only GET /metrics and GET /targets are served here\n";
        ("404 Not Found", "text/plain", body.to_owned())
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: \
         close\r\n\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_the_addresses_that_children_have_printed() {
        let folder = crate::servers::Stage::new().unwrap();
        let log = |name: &str, text: &str| {
            let path = folder.directory().join(name);
            fs::write(&path, text).unwrap();
            (name.to_owned(), path)
        };
        let targets = Targets::default();
        targets.set([
            log("worker-1", "metrics on http://127.0.0.1:7/metrics\nworker-1: account:0 token 1: written\n"),
            log("resource", "listening on 127.0.0.1:8\n"),
            log("silent", "nothing yet\n"),
            ("not started".to_owned(), folder.directory().join("none")),
        ]);
        let expected = r#"[{"targets":["127.0.0.1:7"],"labels":{"process":"worker-1"}},{"targets":["127.0.0.1:8"],"labels":{"process":"resource"}}]"#;
        assert_eq!(targets.json(), expected);
    }
}
