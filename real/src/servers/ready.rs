//! Waits until a server is ready: polls it, and checks that its process lives.
#![allow(clippy::disallowed_methods, reason = "waits for other processes, in real time")]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::error::ServerError;
use super::process::Process;

/// Timeout for a server to become ready. Servers need 12 ms to 2 s; a machine under load may need far more.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// The wait between two polls.
const PAUSE: Duration = Duration::from_millis(10);
/// Timeout for the answer to a single request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of last lines that are searched for the reason of an exit: Java prints it above its stack
/// trace.
const REASON_LINES: usize = 40;
/// The messages of Redis, etcd, Java, PostgreSQL and MariaDB if another process has their port.
const TAKEN: [&str; 2] = ["address already in use", "bindexception"];

/// Waits until `ready` returns true, while `process` lives.
pub(super) fn await_ready(
    process: &mut Process,
    port: u16,
    mut ready: impl FnMut() -> bool,
) -> Result<(), ServerError> {
    let begun = Instant::now();
    loop {
        // Check the process first: another server may answer on its port.
        if let Some(status) = process.exited() {
            return Err(explain_death(process, port, status));
        }
        if ready() {
            return Ok(());
        }
        let waited = begun.elapsed();
        if waited > READY_TIMEOUT {
            let (name, log) = (process.name().to_owned(), process.last_words());
            return Err(ServerError::Silent { name, waited, log });
        }
        thread::sleep(PAUSE);
    }
}

fn explain_death(process: &Process, port: u16, status: std::process::ExitStatus) -> ServerError {
    let words = process.last_lines(REASON_LINES).to_lowercase();
    if TAKEN.iter().any(|taken| words.contains(taken)) {
        return ServerError::PortTaken { port };
    }
    process.died(status)
}

/// Sends `question` to a port of this machine and returns the answer: up to the end of the connection, or
/// until `whole` returns true.
///
/// # Errors
///
/// An error of the connection, or a second without an answer.
pub fn ask(port: u16, question: &str, whole: impl Fn(&str) -> bool) -> io::Result<String> {
    ask_within(port, question, ANSWER_TIMEOUT, whole)
}

/// As [`ask`], with another timeout for each step.
pub(super) fn ask_within(
    port: u16,
    question: &str,
    timeout: Duration,
    whole: impl Fn(&str) -> bool,
) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    stream.write_all(question.as_bytes())?;
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    loop {
        let count = stream.read(&mut part)?;
        answer.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&answer);
        if count == 0 || whole(&text) {
            return Ok(text.into_owned());
        }
    }
}

/// Sends an HTTP request with a JSON body (or none, if empty) to a port of this machine, and returns the
/// whole response.
///
/// # Errors
///
/// As [`ask`].
pub fn ask_http(port: u16, method: &str, path: &str, headers: &str, body: &str) -> io::Result<String> {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Length: \
         {length}\r\n{headers}\r\n{body}"
    );
    ask(port, &request, |_| false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::{Launch, Stage};

    #[test]
    fn a_taken_port_is_found_above_a_stack_trace() {
        let stage = Stage::new().unwrap();
        let says = "echo java.net.BindException: Address already in use; for frame in $(seq 20); do echo at \
             $frame; done; exit 1";
        let launch = Launch::new("java", "sh", stage.directory()).args(["-c", says]);
        let mut process = stage.spawn(&launch).unwrap();
        let error = await_ready(&mut process, 7, || false).unwrap_err();
        assert!(matches!(error, ServerError::PortTaken { port: 7 }), "{error}");
    }
}
