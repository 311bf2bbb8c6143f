//! Free ports. Another process may take one before its server listens: then the server is started anew on others.
#![allow(clippy::disallowed_methods, reason = "asks the operating system for a free port")]

use std::fs;
use std::io;
use std::net::TcpListener;

use super::error::ServerError;

/// How often a server is started whose ports are taken away.
const ATTEMPTS: u32 = 5;
/// The lowest port that is looked at. Below it are those that services are known by.
const LOWEST: u16 = 10_240;
/// Where Linux says from which ports on it picks those of outgoing connections, and where it does by default.
const OUTGOING: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const OUTGOING_FROM: u16 = 32_768;
/// How many ports are tried for each that is wanted.
const TRIES: u32 = 1000;

/// `N` ports of 127.0.0.1 that nobody listens on at this moment, all different.
///
/// They are none that outgoing connections are given: while a server restarts, one of those could have its port.
pub(super) fn free<const N: usize>() -> Result<[u16; N], ServerError> {
    let failed = |source| ServerError::Spawn { program: "a listener".to_owned(), source };
    let end = outgoing_from();
    // All are held until all are found.
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

/// Where outgoing connections begin; if that leaves no room below, the usual place.
fn outgoing_from() -> u16 {
    let text = fs::read_to_string(OUTGOING).unwrap_or_default();
    let from = text.split_whitespace().next().and_then(|word| word.parse().ok());
    from.filter(|from| *from > LOWEST + 1000).unwrap_or(OUTGOING_FROM)
}

/// Starts something on ports that it picks itself, again if one of them was taken meanwhile.
pub(super) fn on_free_ports<T>(mut start: impl FnMut() -> Result<T, ServerError>) -> Result<T, ServerError> {
    for _ in 1..ATTEMPTS {
        match start() {
            Err(ServerError::PortTaken { .. }) => {}
            done => return done,
        }
    }
    start()
}
