//! Sockets for datagrams.

use std::io;
use std::net::SocketAddr;
use std::task::{Poll, Waker};

use super::{Datagram, Place};
use crate::world::World;
use crate::world::process::ProcessId;
use crate::world::stream::{RECEIVES, SENDS};

/// The most bytes in a datagram over IPv4.
const LENGTH_MAX: usize = 65_507;

/// A bound socket of one life of a process. Dropping it closes it.
pub(in crate::world) struct DatagramSocket {
    pub(super) world: World,
    pub(super) process: ProcessId,
    pub(super) life: u32,
    pub(super) place: Place,
}

impl DatagramSocket {
    fn is_open(&self) -> bool {
        !self.world.is_over() && self.world.process(self.process).lives(self.life)
    }

    fn check_alive(&self) -> io::Result<()> {
        let dead = || io::Error::new(io::ErrorKind::NotConnected, "the process is dead");
        self.is_open().then_some(()).ok_or_else(dead)
    }

    /// Fails if the process is dead, or while it is paused.
    fn check_running(&self, waker: Option<&Waker>) -> io::Result<()> {
        self.check_alive()?;
        match self.world.process(self.process).poll_running(waker) {
            Poll::Ready(()) => Ok(()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Returns the process at `to`, and the address that it sees as the sender's.
    fn route(&self, to: SocketAddr) -> io::Result<(ProcessId, SocketAddr)> {
        let invalid = |problem: String| Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        if to.port() == 0 {
            return invalid(format!("no socket has port 0: send to another one than {to}"));
        }
        let host = self.world.host_at(self.process, to.ip());
        let Some(host) = host.and_then(|host| self.world.find(&host)) else {
            let problem = format!("the world has no host at {}", to.ip());
            return Err(io::Error::new(io::ErrorKind::HostUnreachable, problem));
        };
        let local = self.bound();
        let ip = match local.ip() {
            ip if !ip.is_unspecified() => ip,
            _ if to.ip().is_loopback() => to.ip(),
            _ => self.world.address_of(self.process),
        };
        if ip.is_loopback() && host != self.process {
            return invalid(format!("{local} reaches its own host only, not {to}: bind 0.0.0.0"));
        }
        Ok((host, SocketAddr::new(ip, local.port())))
    }

    /// Returns the address to which it is bound.
    fn bound(&self) -> SocketAddr {
        let any = SocketAddr::from(([0, 0, 0, 0], self.place.port));
        self.world.datagrams().sockets.get(&self.place).map_or(any, |mailbox| mailbox.address)
    }

    /// Sends a datagram to a place of `host`.
    fn send(&self, host: ProcessId, place: Place, datagram: &Datagram) {
        let (arrival, latency_max) = {
            let mut network = self.world.network();
            (network.arrival(self.world.now(), self.process.0, host.0), network.latency_max())
        };
        let link = (self.process, host);
        let mut datagrams = self.world.datagrams();
        let arrivals = match arrival {
            Some(at) => datagrams.arrivals(&self.world, link, at, latency_max),
            None => {
                // Drawn all the same: a cut changes no later draw.
                datagrams.arrivals(&self.world, link, 0, latency_max);
                Vec::new()
            }
        };
        for at in arrivals {
            datagrams.send(&self.world, place, datagram.clone(), at);
        }
    }

    /// Takes the first datagram that has arrived, or copies it if it `is_kept`.
    fn receive(
        &self,
        waker: Option<&Waker>,
        bytes: &mut [u8],
        is_kept: bool,
    ) -> io::Result<(usize, SocketAddr)> {
        self.check_running(waker)?;
        let mut datagrams = self.world.datagrams();
        datagrams.deliver(self.place, self.world.now());
        let next = datagrams.next(self.place);
        let Some(mailbox) = datagrams.sockets.get_mut(&self.place) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let datagram = if is_kept { mailbox.arrived.front().cloned() } else { mailbox.take() };
        let Some(datagram) = datagram else {
            if let Some(waker) = waker {
                mailbox.wait(&self.world, waker, next);
            }
            return Err(io::ErrorKind::WouldBlock.into());
        };
        drop(datagrams);
        let length = datagram.bytes.len().min(bytes.len());
        bytes[..length].copy_from_slice(&datagram.bytes[..length]);
        if !is_kept {
            self.world.network_point(self.process, RECEIVES, datagram.sender);
        }
        Ok((length, datagram.from))
    }
}

impl sim_host::Datagrams for DatagramSocket {
    fn local(&self) -> SocketAddr {
        self.bound()
    }

    fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        self.check_alive()?;
        let (_, local) = self.route(peer)?;
        let mut datagrams = self.world.datagrams();
        datagrams.deliver(self.place, self.world.now());
        if let Some(mailbox) = datagrams.sockets.get_mut(&self.place) {
            (mailbox.peer, mailbox.address) = (Some(peer), local);
        }
        Ok(())
    }

    fn send_to(&self, waker: Option<&Waker>, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.check_running(waker)?;
        if bytes.len() > LENGTH_MAX {
            let problem =
                format!("a datagram of {} bytes is too long: send at most {LENGTH_MAX}", bytes.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let (host, from) = self.route(to)?;
        let datagram = Datagram { sender: self.process.0, from, to: to.ip(), bytes: bytes.to_vec() };
        let place = Place { process: host.0, port: to.port() };
        self.send(host, place, &datagram);
        self.world.network_point(self.process, SENDS, host.0);
        Ok(bytes.len())
    }

    fn receive_from(&self, waker: Option<&Waker>, bytes: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.receive(waker, bytes, false)
    }

    fn peek_from(&self, waker: Option<&Waker>, bytes: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.receive(waker, bytes, true)
    }
}

impl Drop for DatagramSocket {
    fn drop(&mut self) {
        // A crash has closed it already, and the next life may have bound its port.
        let closed = if self.is_open() { self.world.datagrams().sockets.remove(&self.place) } else { None };
        drop(closed);
    }
}
