//! The machine of a simulated server: its clocks, tasks, disk and network.
//!
//! A server knows nothing of its surroundings but [`Machine`]. The simulated world implements it
//! ([`WorldMachine`]); so do `serve`, with this machine's own clock and network, and tests, with a clock that
//! they set.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::time::Duration;

use dlock_runtime::{Probe, Probed};
use history::Span;
use tokio::io::{AsyncRead, AsyncWrite};

use super::World;
use super::disk::Disk;
use super::process::ProcessId;
use super::runtime::SimSleep;
use super::stream::{Listener, SimStream};

/// The machine on which a simulated server runs. Clones are the same machine, which outlives the server's
/// process. The probes of the server report to it.
pub trait Machine: Probed {
    /// A connection to another machine.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// A listening port.
    type Listener: Accept<Stream = Self::Stream>;

    /// Returns the machine's name, under which others reach it.
    fn name(&self) -> &str;

    /// Reads the monotonic clock: nanoseconds since an origin of its own.
    fn monotonic_nanos(&self) -> u64;

    /// Reads the wall clock: microseconds since the Unix epoch. It can be set, forward or back.
    fn wall_micros(&self) -> u64;

    /// Completes once the monotonic clock reads `nanos` or more.
    fn sleep_until(&self, nanos: u64) -> impl Future<Output = ()> + Send;

    /// Completes after `duration` on the monotonic clock.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        self.sleep_until(self.monotonic_nanos().saturating_add(Span(duration).as_nanos()))
    }

    /// Runs a task in the server's process. It ends with the process.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);

    /// Returns true if the server's process is alive and not paused.
    fn is_running(&self) -> bool;

    /// Returns true if `other` runs, and the links between it and this machine are open in both directions.
    /// The state of this machine itself is ignored. An implementation must not use the servers.
    fn reaches(&self, other: &str) -> bool;

    /// Returns the disk: one file, which outlives the process.
    fn disk(&self) -> Disk;

    /// Listens on `port`.
    ///
    /// # Errors
    ///
    /// If the port is taken, or the process is dead.
    fn listen(&self, port: u16) -> io::Result<Self::Listener>;

    /// Connects to `address`, written `host:port`.
    ///
    /// # Errors
    ///
    /// If there is no such host, or it does not listen there.
    fn connect(&self, address: &str) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Makes `name` a virtual address of this machine from now on. Open connections stay with their machines.
    fn take_name(&self, name: &str);

    /// Passes the point `name`, at which faults can be aimed, such as "this command was executed". A fault
    /// strikes within the call.
    fn point(&self, name: &str);

    /// Notes that the server refused `command` as unknown: a search reports it.
    fn refused_unknown(&self, command: &str) {
        let _ = command;
    }

    /// Listens on `port` and serves each connection in a task of its own, until the process ends. Calls
    /// `serve_connection` with the connection and the name of the client.
    ///
    /// # Errors
    ///
    /// As [`Machine::listen`]. It never completes otherwise.
    fn serve<F: Future<Output = ()> + Send + 'static>(
        &self,
        port: u16,
        serve_connection: impl Fn(Self::Stream, String) -> F + Send,
    ) -> impl Future<Output = io::Result<Infallible>> + Send {
        async move {
            let mut listener = self.listen(port)?;
            loop {
                let (stream, client) = listener.accept().await;
                self.spawn(serve_connection(stream, client));
            }
        }
    }
}

/// A listening port. Dropping it closes the port.
pub trait Accept: Send {
    /// A connection.
    type Stream;

    /// Waits for the next connection, and returns it with the name of the client.
    fn accept(&mut self) -> impl Future<Output = (Self::Stream, String)> + Send;
}

/// The machine of one process of a simulated world, in all lives of the process.
#[derive(Clone)]
pub struct WorldMachine {
    world: World,
    process: ProcessId,
}

impl WorldMachine {
    /// Returns the machine of `process`.
    pub fn new(world: &World, process: ProcessId) -> Self {
        Self { world: world.clone(), process }
    }

    /// Returns its world.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Returns the process that runs on it.
    pub fn process(&self) -> ProcessId {
        self.process
    }
}

impl Machine for WorldMachine {
    type Stream = SimStream;
    type Listener = Listener;

    fn name(&self) -> &str {
        self.world.process(self.process).name()
    }

    fn monotonic_nanos(&self) -> u64 {
        self.world.process(self.process).monotonic(self.world.now())
    }

    fn wall_micros(&self) -> u64 {
        self.world.process(self.process).wall(self.world.now()) / 1000
    }

    fn sleep_until(&self, nanos: u64) -> impl Future<Output = ()> + Send {
        SimSleep::new(&self.world, self.process, nanos)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.world.spawn(self.process, task);
    }

    fn is_running(&self) -> bool {
        self.world.process(self.process).is_running()
    }

    fn reaches(&self, other: &str) -> bool {
        let Some(other) = self.world.find(other) else { return false };
        self.world.process(other).is_running()
            && self.world.is_open(self.process, other)
            && self.world.is_open(other, self.process)
    }

    fn disk(&self) -> Disk {
        self.world.process(self.process).disk().clone()
    }

    fn listen(&self, port: u16) -> io::Result<Listener> {
        self.world.listen(self.process, &format!("{}:{port}", self.name()))
    }

    async fn connect(&self, address: &str) -> io::Result<SimStream> {
        self.world.connect(self.process, address).await
    }

    fn take_name(&self, name: &str) {
        self.world.alias(name, self.process);
    }

    fn point(&self, name: &str) {
        self.world.point(self.process, name);
    }

    fn refused_unknown(&self, command: &str) {
        self.world.note_unknown(self.process, command);
    }
}

impl Probed for WorldMachine {
    fn probe(&self, probe: &'static Probe, line: u32, seen: impl FnOnce() -> u64) {
        self.world.probe(self.process, probe, line, seen);
    }
}

impl Accept for Listener {
    type Stream = SimStream;

    async fn accept(&mut self) -> (SimStream, String) {
        Listener::accept(self).await
    }
}
