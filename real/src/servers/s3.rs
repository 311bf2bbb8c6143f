//! An S3: moto, which simulates AWS, with one thread.

use super::error::ServerError;
use super::guard::Stage;
use super::port::{free, on_free_ports};
use super::process::{Launch, Process};
use super::program;
use super::ready::{ask_http, await_ready};

const PACKAGE: &str = "moto";
/// The folder of the package and of those that it needs.
const FOLDER: &str = "moto";
const SERVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/servers/s3.py");

/// The header by which moto finds the service; it checks no signature.
const ANYBODY: &str = "Authorization: AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/s3/aws4_request\r\n";

/// A server of S3's protocol, in memory, that admits every user. One thread serves all requests.
#[derive(Debug)]
pub struct S3 {
    process: Process,
    port: u16,
}

impl S3 {
    /// Starts a server on a free port, waits until it answers, and creates the bucket `bucket`.
    ///
    /// # Errors
    ///
    /// [`ServerError`] says what to do.
    pub fn start(stage: &Stage, bucket: &str) -> Result<Self, ServerError> {
        let packages = program::fetched_folder(FOLDER, PACKAGE)?;
        let python = program::find("python3", "python3")?;
        let directory = stage.subdirectory("s3")?;
        on_free_ports(|| {
            let [port] = free()?;
            let mut launch = Launch::new("s3", &python, &directory).args([SERVE, &port.to_string()]);
            launch.environment.push(("PYTHONPATH".into(), packages.clone().into()));
            let mut server = Self { process: stage.spawn(&launch)?, port };
            let is_ready = || {
                let answer = ask_http(port, "PUT", &format!("/{bucket}"), ANYBODY, "");
                answer.is_ok_and(|answer| answer.contains(" 200 "))
            };
            await_ready(&mut server.process, port, is_ready)?;
            Ok(server)
        })
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}
