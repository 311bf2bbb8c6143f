//! Byte streams over the network: listeners, connections, and the tokio traits that the real clients read
//! and write.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::World;
use super::capture::{Leg, Passage};
use super::network::Listening;
use super::pipe::{Arrived, Ending};
use super::process::ProcessId;

/// The beginnings of the names of network points ([`World::hear_network`]).
const OPENS: &str = "opens to";
pub(super) const ACCEPTS: &str = "accepts from";
const CLOSES: &str = "closes to";
const CONNECTS: &str = "connects to";
pub(super) const SENDS: &str = "sends to";
pub(super) const RECEIVES: &str = "receives from";

/// One end of a connection.
pub struct SimStream {
    world: World,
    /// The process that holds this end, and the number of its life.
    process: ProcessId,
    life: u32,
    /// The numbers of the pipes that this end reads and writes.
    reads: usize,
    writes: usize,
}

/// A listening socket of a process. Dropping it closes it.
pub struct Listener {
    world: World,
    process: ProcessId,
    /// The number of the process's life in which it was made.
    life: u32,
    address: String,
}

impl World {
    /// Listens on `address`, written `host:port`.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AddrInUse`] if another listener has the address, [`io::ErrorKind::NotConnected`] if
    /// the process is dead: otherwise the process's next life would find its address taken.
    pub fn listen(&self, process: ProcessId, address: &str) -> io::Result<Listener> {
        if !self.process(process).is_alive() {
            let name = self.process(process).name();
            return Err(io::Error::new(io::ErrorKind::NotConnected, format!("{name} is dead")));
        }
        let address = self.resolve(address)?.1;
        let mut network = self.network();
        if network.listeners.contains_key(&address) {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, format!("{address} is taken")));
        }
        let listening = Listening { process, backlog: VecDeque::new(), acceptor: None };
        network.listeners.insert(address.clone(), listening);
        Ok(Listener { world: self.clone(), process, life: self.process(process).life(), address })
    }

    /// Returns the process behind `host:port`, and the address with the process's own name.
    fn resolve(&self, address: &str) -> io::Result<(ProcessId, String)> {
        let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
        match self.find(host) {
            Some(id) => Ok((id, [self.process(id).name(), ":", port].concat())),
            None => Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no host called {host}"))),
        }
    }

    /// Connects the process to the listener at `address`. The kernel of a paused process still accepts. Waits
    /// while the link is cut, as TCP retries. A host without that listener refuses the connection.
    pub(super) async fn connect(&self, process: ProcessId, address: &str) -> io::Result<SimStream> {
        let (to, address) = self.resolve(address)?;
        let requested = self.now();
        self.network_point(process, OPENS, to.0);
        let number = self.network().notes.handshake(process.0, to.0);
        let mut handshake = Handshake { world: self, number, is_over: false };
        handshake.cross(process, to).await;
        let accepted = self.accept_for(process, &address);
        let times = requested..self.now();
        self.network().notes.request((process.0, to.0), &address, times, accepted.is_some());
        self.network_point(to, ACCEPTS, process.0);
        handshake.cross(to, process).await;
        handshake.is_over = true;
        if let Some(number) = accepted {
            self.network().notes.connected(number, self.now());
            self.note_opened(number, &address);
            self.network_point(process, CONNECTS, to.0);
        }
        match accepted {
            Some(number) => Ok(SimStream {
                world: self.clone(),
                process,
                life: self.process(process).life(),
                reads: number + 1,
                writes: number,
            }),
            None => Err(io::Error::new(io::ErrorKind::ConnectionRefused, format!("{address} refused"))),
        }
    }

    pub(super) fn accept_for(&self, from: ProcessId, address: &str) -> Option<usize> {
        let mut network = self.network();
        let to = network.listeners.get(address)?.process;
        let number = network.add_connection(from.0, to.0);
        let listening = network.listeners.get_mut(address)?;
        listening.backlog.push_back(number);
        if let Some(waker) = listening.acceptor.take() {
            waker.wake();
        }
        Some(number)
    }
}

/// A request for a connection under way. If it is dropped early, its opener has given up.
struct Handshake<'w> {
    world: &'w World,
    number: Option<usize>,
    is_over: bool,
}

impl Handshake<'_> {
    /// Waits for the time that a packet takes from one process to the other.
    async fn cross(&self, from: ProcessId, to: ProcessId) {
        let mut is_again = false;
        let at = std::future::poll_fn(|cx| {
            let mut network = self.world.network();
            let now = self.world.now();
            let arrival = network.arrival(now, from.0, to.0);
            let is_slow = arrival.is_some_and(|at| network.is_slow(at - now));
            let leg = Leg { sent: now, passage: Passage::of(arrival), is_slow };
            if arrival.is_some() || !is_again {
                network.notes.leg(self.number, leg, is_again);
            }
            if let Some(at) = arrival {
                return Poll::Ready(at);
            }
            is_again = true;
            network.wait_for_link(from.0, to.0, cx.waker());
            Poll::Pending
        })
        .await;
        self.world.sleep_until(at).await;
    }
}

impl Drop for Handshake<'_> {
    fn drop(&mut self) {
        if !self.is_over && !self.world.is_over() {
            self.world.network().notes.give_up(self.number, self.world.now());
        }
    }
}

impl Listener {
    /// Waits for the next connection, and returns it with the name of the process that opened it.
    pub async fn accept(&mut self) -> (SimStream, String) {
        let stream = std::future::poll_fn(|cx| self.poll_accept(Some(cx.waker()))).await;
        let from = self.world.process(stream.peer()).name().to_owned();
        (stream, from)
    }

    /// Returns the next connection. Wakes `waker`, if there is one, when it comes.
    pub(super) fn poll_accept(&self, waker: Option<&Waker>) -> Poll<SimStream> {
        let mut network = self.world.network();
        let Some(listening) = network.listeners.get_mut(&self.address) else { return Poll::Pending };
        let Some(number) = listening.backlog.pop_front() else {
            if let Some(waker) = waker {
                listening.acceptor = Some(waker.clone());
            }
            return Poll::Pending;
        };
        drop(network);
        let life = self.world.process(self.process).life();
        let (world, process) = (self.world.clone(), self.process);
        Poll::Ready(SimStream { world, process, life, reads: number, writes: number + 1 })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut network = self.world.network();
        // A crash has closed it already, and the next life may listen here again before this life's tasks are
        // dropped.
        if network.listeners.get(&self.address).is_some_and(|listening| listening.process == self.process)
            && self.world.process(self.process).lives(self.life)
        {
            network.listeners.remove(&self.address);
        }
    }
}

impl SimStream {
    /// Returns the number of its connection, which both ends have.
    pub(super) fn connection(&self) -> usize {
        self.reads.min(self.writes)
    }

    /// Returns the process at the other end.
    pub(super) fn peer(&self) -> ProcessId {
        ProcessId(self.world.network().pipes[self.writes].to)
    }

    /// Pending while the process is paused; an error after its death. Wakes `waker`, if there is one, when a
    /// call is worth another try, as all calls below do.
    pub(super) fn poll_alive(&self, waker: Option<&Waker>) -> Poll<io::Result<()>> {
        let process = self.world.process(self.process);
        if !process.lives(self.life) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        process.poll_running(waker).map(Ok)
    }

    /// Moves what has arrived into `buf`, as far as it fits; nothing at the end.
    pub(super) fn receive(&self, waker: Option<&Waker>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.poll_alive(waker))?;
        let mut network = self.world.network();
        let pipe = &mut network.pipes[self.reads];
        match pipe.poll(&self.world, waker) {
            Arrived::Nothing => Poll::Pending,
            Arrived::Ended(ending) => Poll::Ready(ending.as_read()),
            Arrived::Bytes(arrived) => {
                pipe.read_into(buf, arrived);
                let peer = pipe.from;
                drop(network);
                self.world.0.requests.answered(self.writes);
                self.world.network_point(self.process, RECEIVES, peer);
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Copies what has arrived into `buf`, as far as it fits, and leaves it to be read.
    pub(super) fn peek(&self, waker: Option<&Waker>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.poll_alive(waker))?;
        let mut network = self.world.network();
        let pipe = &mut network.pipes[self.reads];
        match pipe.poll(&self.world, waker) {
            Arrived::Nothing => Poll::Pending,
            Arrived::Ended(ending) => Poll::Ready(ending.as_read()),
            Arrived::Bytes(arrived) => {
                let length = arrived.min(buf.remaining());
                buf.put_slice(&pipe.bytes.iter().take(length).copied().collect::<Vec<u8>>());
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Sends `bytes` as one segment. Returns their number.
    pub(super) fn send(&self, waker: Option<&Waker>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        std::task::ready!(self.poll_alive(waker))?;
        let mut network = self.world.network();
        if network.pipes[self.writes].is_reset() {
            network.notes.unsent(self.writes, self.world.now(), bytes);
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if !bytes.is_empty() {
            network.send(&self.world, self.writes, bytes);
            let peer = network.pipes[self.writes].to;
            drop(network);
            self.world.0.requests.sent(self.writes, bytes);
            self.world.network_point(self.process, SENDS, peer);
        }
        Poll::Ready(Ok(bytes.len()))
    }

    /// Closes the direction in which this end sends.
    pub(super) fn shut_down(&self, waker: Option<&Waker>) -> Poll<io::Result<()>> {
        std::task::ready!(self.poll_alive(waker))?;
        self.world.network().end(&self.world, self.writes, Ending::Closed);
        self.closed();
        Poll::Ready(Ok(()))
    }

    /// Passes the point of a connection that this end has closed.
    fn closed(&self) {
        let peer = self.world.network().pipes[self.writes].to;
        self.world.network_point(self.process, CLOSES, peer);
    }
}

impl AsyncRead for SimStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.receive(Some(cx.waker()), buf)
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.send(Some(cx.waker()), buf)
    }

    /// Does nothing, as no byte is buffered. A flush that woke the peer would keep two HTTP/2 ends awake for
    /// ever.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_alive(Some(cx.waker()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shut_down(Some(cx.waker()))
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        self.world.0.requests.dropped(self.writes);
        if self.world.is_over() || !self.world.process(self.process).lives(self.life) {
            return;
        }
        let mut network = self.world.network();
        network.abandon(self.reads, self.world.now());
        network.end(&self.world, self.writes, Ending::Closed);
        drop(network);
        self.closed();
    }
}
