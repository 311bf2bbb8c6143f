//! When a server is ready: it is asked again and again, and watched meanwhile.
#![allow(clippy::disallowed_methods, reason = "waits for other processes, in real time")]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::error::ServerError;
use super::process::Process;

/// How long a server may take until it is ready. Servers need 12 ms to 2 s; a machine that also compiles may need far more.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to wait between two questions.
const PAUSE: Duration = Duration::from_millis(10);
/// How long one question may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// Among how many of a server's last lines the reason of its death is looked for: Java says it above its stack.
const REASON_LINES: usize = 40;
/// How servers say that another process has their port: Redis, etcd, Java, PostgreSQL.
const TAKEN: [&str; 2] = ["address already in use", "bindexception"];

/// Waits until `ready`, while `process` lives.
pub(super) fn await_ready(
    process: &mut Process,
    port: u16,
    mut ready: impl FnMut() -> bool,
) -> Result<(), ServerError> {
    let begun = Instant::now();
    loop {
        // Dead first: another server may answer on its port.
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

/// Sends `question` to a port of this machine and returns the answer: up to the end of the connection, or until `whole`
/// says that nothing more will come.
///
/// # Errors
///
/// Those of the connection; a second of silence is one.
pub fn ask(port: u16, question: &str, whole: impl Fn(&str) -> bool) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), ANSWER_TIMEOUT)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
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

/// Sends an HTTP request with a JSON body (empty: none) to a port of this machine and returns the answer, head and body.
///
/// # Errors
///
/// As [`ask`].
pub fn ask_http(port: u16, method: &str, path: &str, headers: &str, body: &str) -> io::Result<String> {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    ask(port, &request, |_| false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::{Launch, Stage};

    #[test]
    fn a_taken_port_is_known_from_above_a_stack_of_java() {
        let stage = Stage::new().unwrap();
        let says = "echo java.net.BindException: Address already in use; for frame in $(seq 20); do echo at $frame; done; exit 1";
        let launch = Launch::new("java", "sh", stage.directory()).args(["-c", says]);
        let mut process = stage.spawn(&launch).unwrap();
        let error = await_ready(&mut process, 7, || false).unwrap_err();
        assert!(matches!(error, ServerError::PortTaken { port: 7 }), "{error}");
    }
}
