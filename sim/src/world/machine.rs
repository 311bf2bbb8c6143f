//! A machine, as a simulated server sees it: its clocks, tasks, disk and network.
//!
//! [`Machine`] is all that a server knows of the world around it. The simulated world implements it
//! ([`WorldMachine`]), `serve` on this machine's own clock and network, a test on a clock that it moves by
//! hand.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::time::Duration;

use dlock_runtime::{Probe, Probed};
use tokio::io::{AsyncRead, AsyncWrite};

use super::World;
use super::disk::Disk;
use super::process::ProcessId;
use super::runtime::SimSleep;
use super::stream::{Listener, SimStream};

/// What a simulated server needs of the machine that it runs on. Clones are the same machine, which outlives
/// the server's process. It hears of the server's probes.
pub trait Machine: Probed {
    /// A connection to another machine.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// A port that is listened on.
    type Listener: Accept<Stream = Self::Stream>;

    /// The machine's name, under which others reach it.
    fn name(&self) -> &str;

    /// The monotonic clock: nanoseconds since an origin of its own.
    fn monotonic_nanos(&self) -> u64;

    /// The wall clock: microseconds since the Unix epoch. It can be set, forward or back.
    fn wall_micros(&self) -> u64;

    /// Completes once the monotonic clock reads `nanos` or more.
    fn sleep_until(&self, nanos: u64) -> impl Future<Output = ()> + Send;

    /// Completes after `duration` on the monotonic clock.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.sleep_until(self.monotonic_nanos().saturating_add(nanos))
    }

    /// Runs a task in the server's process, with which it ends.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);

    /// Whether the server's process runs: it is alive and not paused.
    fn is_running(&self) -> bool;

    /// Whether this machine and the one called `other` can talk to each other: `other` runs, and the links
    /// between the two are open in both directions. Whether this machine itself runs is not looked at. It
    /// must not use the servers.
    fn reaches(&self, other: &str) -> bool;

    /// The disk: one file, which outlives the process.
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
    /// If nobody listens there, or there is no such host.
    fn connect(&self, address: &str) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Has `name` lead to this machine from now on, as a virtual address does. Open connections stay where
    /// they are.
    fn take_name(&self, name: &str);

    /// Names a moment at which faults can be aimed, such as "this command was executed". A fault strikes
    /// within the call.
    fn point(&self, name: &str);

    /// Listens on `port` and serves each connection in a task of its own, until the process ends.
    /// `serve_connection` is given the connection and the name of the client.
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

/// A port that is listened on. Dropping it closes the port.
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
    /// The machine of `process`.
    pub fn new(world: &World, process: ProcessId) -> Self {
        Self { world: world.clone(), process }
    }

    /// The world that it belongs to.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The process that runs on it.
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
