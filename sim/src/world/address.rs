//! IP addresses in a world: each process has one, and each alias has one that moves with it.
//!
//! The first process is 10.0.0.1, the next one 10.0.0.2, and so on, in the order in which they were named;
//! the first alias is 10.128.0.1. Every process is 127.0.0.1 to itself.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::process::ProcessId;
use super::{World, lock};

/// The addresses before those of the processes and of the aliases.
const PROCESSES: u32 = u32::from_be_bytes([10, 0, 0, 0]);
const ALIASES: u32 = u32::from_be_bytes([10, 128, 0, 0]);

/// The ports of sockets that ask for no certain one: Linux's range, `ip_local_port_range`.
pub(super) const OPENERS_FROM: u16 = 32_768;
pub(super) const OPENERS_TO: u16 = 60_999;
const OPENERS: usize = (OPENERS_TO - OPENERS_FROM) as usize + 1;

impl World {
    /// Returns the address of the process.
    pub(super) fn address_of(&self, id: ProcessId) -> IpAddr {
        numbered(PROCESSES, id.0)
    }

    /// Looks up the address of `host`.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if the world has no such host.
    pub(super) fn look_up(&self, host: &str) -> io::Result<IpAddr> {
        if let Ok(address) = host.trim_matches(['[', ']']).parse() {
            return Ok(address);
        }
        if host == "localhost" {
            return Ok(Ipv4Addr::LOCALHOST.into());
        }
        if let Some(id) = self.0.processes.iter().position(|process| process.name() == host) {
            return Ok(numbered(PROCESSES, id));
        }
        match lock(&self.0.aliases).keys().position(|alias| alias == host) {
            Some(number) => Ok(numbered(ALIASES, number)),
            None => Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no host called {host}"))),
        }
    }

    /// Returns the name of the host behind an address, as `process` sees it; `None` if there is none.
    pub(super) fn host_at(&self, process: ProcessId, address: IpAddr) -> Option<String> {
        if address.is_loopback() || address.is_unspecified() {
            return Some(self.process(process).name().to_owned());
        }
        let IpAddr::V4(address) = address else { return None };
        let number = u32::from(address);
        if let Some(alias) = number.checked_sub(ALIASES + 1) {
            return lock(&self.0.aliases).keys().nth(alias as usize).cloned();
        }
        let process = self.0.processes.get(number.checked_sub(PROCESSES + 1)? as usize)?;
        Some(process.name().to_owned())
    }

    /// Returns the address of the opener's end of a connection.
    pub(super) fn opener_of(&self, opener: ProcessId, connection: usize) -> SocketAddr {
        let port = OPENERS_FROM.saturating_add(u16::try_from(connection / 2 % OPENERS).unwrap_or(0));
        (self.address_of(opener), port).into()
    }
}

/// Returns the address with this number, counted from 0 after `base`.
fn numbered(base: u32, number: usize) -> IpAddr {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    Ipv4Addr::from(base.saturating_add(number).saturating_add(1)).into()
}
