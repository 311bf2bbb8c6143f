//! Free ports. Another process may take one before its server listens: then the server is started anew on others.
#![allow(clippy::disallowed_methods, reason = "asks the operating system for a free port")]

use std::net::TcpListener;

use super::error::ServerError;

/// How often a server is started whose ports are taken away.
const ATTEMPTS: u32 = 5;

/// `N` ports of 127.0.0.1 that nobody listens on at this moment, all different.
pub(super) fn free<const N: usize>() -> Result<[u16; N], ServerError> {
    // All are held until all are found.
    let mut listeners = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0");
        let bound = listener.and_then(|listener| Ok((listener.local_addr()?.port(), listener)));
        let (number, listener) =
            bound.map_err(|source| ServerError::Spawn { program: "a listener".to_owned(), source })?;
        *port = number;
        listeners.push(listener);
    }
    Ok(ports)
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
