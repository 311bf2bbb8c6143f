//! Finds free ports. If another process takes one before the server listens, the server is started again on
//! others.
#![allow(clippy::disallowed_methods, reason = "asks the operating system for a free port")]

use std::fs;
use std::io;
use std::net::TcpListener;

use super::error::ServerError;

/// The number of attempts to start a server whose ports are taken.
const ATTEMPTS: u32 = 5;
/// The lowest port tried. Services have well-known ports below it.
const LOWEST: u16 = 10_240;
/// The file with Linux's range of ports for outgoing connections, and that range's default start.
const OUTGOING: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const OUTGOING_FROM: u16 = 32_768;
/// The number of ports tried for each one needed.
const TRIES: u32 = 1000;

/// Returns a port of 127.0.0.1 on which no process listens now.
///
/// # Errors
///
/// [`ServerError::Spawn`] if there is none.
pub fn free_port() -> Result<u16, ServerError> {
    free().map(|[port]| port)
}

/// Returns `N` different ports of 127.0.0.1 on which no process listens now.
///
/// They lie outside the range for outgoing connections, which could take the port of a server during its
/// restart.
pub(super) fn free<const N: usize>() -> Result<[u16; N], ServerError> {
    let failed = |source| ServerError::Spawn { program: "a listener".to_owned(), source };
    let end = outgoing_from();
    // Hold each port until all are found.
    let mut listeners = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = listen_below(end).map_err(failed)?;
        *port = listener.local_addr().map_err(failed)?.port();
        listeners.push(listener);
    }
    Ok(ports)
}

fn listen_below(end: u16) -> io::Result<TcpListener> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..TRIES {
        let port = LOWEST + rand::random::<u16>() % (end - LOWEST);
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Returns the start of the range for outgoing connections; the default if that leaves no room below.
fn outgoing_from() -> u16 {
    let text = fs::read_to_string(OUTGOING).unwrap_or_default();
    let from = text.split_whitespace().next().and_then(|word| word.parse().ok());
    from.filter(|from| *from > LOWEST + 1000).unwrap_or(OUTGOING_FROM)
}

/// Starts a server on ports that it picks itself; retries if one of them was taken meanwhile.
pub(super) fn on_free_ports<T>(mut start: impl FnMut() -> Result<T, ServerError>) -> Result<T, ServerError> {
    for _ in 1..ATTEMPTS {
        match start() {
            Err(ServerError::PortTaken { .. }) => {}
            done => return done,
        }
    }
    start()
}
