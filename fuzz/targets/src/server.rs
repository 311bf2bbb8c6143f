//! A simulated server in memory, and its clients.

use std::time::Duration;

use sim::servers::host::Host;

use crate::machine::Local;
use crate::pipe::Far;
use crate::world::Executor;

/// The most timers that run while the harness waits for a server.
const WAKES_MAX: usize = 1000;

/// One life of a simulated server.
pub struct Server {
    executor: Executor,
    machine: Local,
}

impl Server {
    /// Starts `host` on a machine of its own.
    pub fn start(host: &impl Host<Local>) -> Self {
        let executor = Executor::new();
        let machine = Local::new(executor.world());
        Self::begin(executor, machine, host)
    }

    /// Ends the process of the server and starts it again, at the same time and with the same disk.
    #[must_use]
    pub fn restarted(self, host: &impl Host<Local>) -> Self {
        host.died();
        let executor = Executor::at(self.executor.world().nanos());
        let machine = self.machine.again(executor.world());
        Self::begin(executor, machine, host)
    }

    fn begin(mut executor: Executor, machine: Local, host: &impl Host<Local>) -> Self {
        executor.world().spawn(host.start(machine.clone()));
        executor.settle();
        Self { executor, machine }
    }

    /// Opens a connection.
    pub fn open(&mut self) -> Far {
        let far = self.machine.open();
        self.executor.settle();
        far
    }

    /// Sends `segments` one by one, each after the server has handled the one before. Returns the answer so
    /// far.
    pub fn send<'a>(&mut self, client: &Far, segments: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        for segment in segments {
            client.send(segment);
            self.executor.settle();
        }
        client.take()
    }

    /// Opens a connection, sends `bytes` and returns the answer so far.
    pub fn ask(&mut self, bytes: &[u8]) -> Vec<u8> {
        let client = self.open();
        self.send(&client, [bytes])
    }

    /// Lets `duration` pass.
    pub fn wait(&mut self, duration: Duration) {
        self.executor.advance(duration, WAKES_MAX);
    }
}

/// Cuts `bytes` into segments of 1 to 32 bytes, by a generator that begins with `seed`.
pub fn cut(bytes: &[u8], seed: u16) -> Vec<&[u8]> {
    let mut state = u32::from(seed) | 1 << 16;
    let mut rest = bytes;
    let mut segments = Vec::new();
    while !rest.is_empty() {
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let (segment, after) = rest.split_at((1 + state as usize % 32).min(rest.len()));
        segments.push(segment);
        rest = after;
    }
    segments
}
