//! A Prometheus, which collects metrics and answers queries.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::error::ServerError;
use super::guard::Stage;
use super::port::{free, on_free_ports};
use super::process::{Launch, Process};
use super::program;
use super::ready::{ask_within, await_ready};

const PACKAGE: &str = "prometheus";
/// Timeout for an answer: a query reads from disk.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A Prometheus server.
#[derive(Debug)]
pub struct Prometheus {
    process: Process,
    port: u16,
}

impl Prometheus {
    /// Starts a server with this configuration (YAML) on a free port and waits until it serves.
    ///
    /// # Errors
    ///
    /// [`ServerError`] says what to do.
    pub fn start(stage: &Stage, configuration: &str) -> Result<Self, ServerError> {
        let directory = stage.subdirectory("prometheus")?;
        let file = directory.join("prometheus.yml");
        fs::write(&file, configuration)
            .map_err(|source| ServerError::Directory { path: file.clone(), source })?;
        on_free_ports(|| {
            let [port] = free()?;
            let launch = Launch::new("prometheus", program::find("prometheus", PACKAGE)?, &directory).args([
                "--config.file=prometheus.yml".to_owned(),
                "--storage.tsdb.path=data".to_owned(),
                "--log.level=error".to_owned(),
                format!("--web.listen-address=127.0.0.1:{port}"),
            ]);
            let mut server = Self { process: stage.spawn(&launch)?, port };
            let is_ready = || server_answer(port, "/-/ready").is_ok_and(|text| text.contains("200 OK"));
            await_ready(&mut server.process, port, is_ready)?;
            Ok(server)
        })
    }

    /// Finds promtool, which checks configurations and rules.
    ///
    /// # Errors
    ///
    /// [`ServerError::Missing`].
    pub fn tool() -> Result<PathBuf, ServerError> {
        program::find("promtool", PACKAGE)
    }

    /// Returns the samples that `query` evaluates to now: objects with `metric`, the labels, and `value`.
    ///
    /// # Errors
    ///
    /// An error of the connection, or the reason why the server refuses the query.
    pub fn query(&self, query: &str) -> io::Result<Vec<Value>> {
        let path = format!("/api/v1/query?query={}", utf8_percent_encode(query, NON_ALPHANUMERIC));
        let mut data = self.api(&path)?;
        match data["result"].take() {
            Value::Array(samples) => Ok(samples),
            other => Err(io::Error::other(format!("{query}: {other} is no list of samples"))),
        }
    }

    /// Returns the field `data` of the answer to `GET path`.
    ///
    /// # Errors
    ///
    /// An error of the connection, or that in the answer.
    pub fn api(&self, path: &str) -> io::Result<Value> {
        let answer = server_answer(self.port, path)?;
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        let mut answer: Value = serde_json::from_str(body)?;
        match answer["status"].as_str() {
            Some("success") => Ok(answer["data"].take()),
            _ => Err(io::Error::other(format!("GET {path}: {}", answer["error"]))),
        }
    }
}

/// Returns the answer to `GET path`. In HTTP/1.0, an answer has no chunks.
fn server_answer(port: u16, path: &str) -> io::Result<String> {
    let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    ask_within(port, &request, ANSWER_TIMEOUT, |_| false)
}
