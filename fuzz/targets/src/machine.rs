//! The world as the surroundings of a simulated server ([`Machine`]) and of a client ([`Runtime`]).

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use dlock_runtime::{Instant, Probed, Runtime};
use sim::world::disk::Disk;
use sim::world::machine::{Accept, Machine};

use crate::pipe::{Far, Near, pipe};
use crate::world::{World, lock};

/// A machine with one port, one disk, and a network on which all others are reachable. As a runtime, its
/// connections lead to the harness.
#[derive(Clone)]
pub struct Local {
    world: World,
    disk: Disk,
    arrivals: Arc<Mutex<Arrivals>>,
    /// The harness's ends of connections that a client has opened.
    opened: Arc<Mutex<Vec<Far>>>,
    random: Arc<Mutex<u64>>,
}

/// Connections that wait to be accepted.
#[derive(Default)]
struct Arrivals {
    queue: VecDeque<Near>,
    acceptor: Option<Waker>,
}

/// The port of a [`Local`] machine.
pub struct Port(Arc<Mutex<Arrivals>>);

impl Local {
    /// Returns a machine in `world` with an empty disk.
    pub fn new(world: &World) -> Self {
        Self {
            world: world.clone(),
            disk: Disk::new(),
            arrivals: Arc::default(),
            opened: Arc::default(),
            random: Arc::new(Mutex::new(1)),
        }
    }

    /// Returns the machine in another world, after a restart: with the same disk.
    #[must_use]
    pub fn again(&self, world: &World) -> Self {
        Self { disk: self.disk.clone(), ..Self::new(world) }
    }

    /// Opens a connection to the server on the machine.
    pub fn open(&self) -> Far {
        let (far, near) = pipe();
        let mut arrivals = lock(&self.arrivals);
        arrivals.queue.push_back(near);
        if let Some(acceptor) = arrivals.acceptor.take() {
            acceptor.wake();
        }
        far
    }

    /// Takes the connections that the client has opened.
    pub fn opened(&self) -> Vec<Far> {
        std::mem::take(&mut lock(&self.opened))
    }
}

impl Probed for Local {}

impl Machine for Local {
    type Stream = Near;
    type Listener = Port;

    fn name(&self) -> &str {
        "server"
    }

    fn monotonic_nanos(&self) -> u64 {
        self.world.nanos()
    }

    fn wall_micros(&self) -> u64 {
        // The year 2024.
        1_704_067_200_000_000 + self.world.nanos() / 1000
    }

    fn sleep_until(&self, nanos: u64) -> impl Future<Output = ()> + Send {
        self.world.sleep_until(nanos)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.world.spawn(task);
    }

    fn is_running(&self) -> bool {
        true
    }

    fn reaches(&self, _: &str) -> bool {
        true
    }

    fn disk(&self) -> Disk {
        self.disk.clone()
    }

    fn listen(&self, _: u16) -> io::Result<Port> {
        Ok(Port(Arc::clone(&self.arrivals)))
    }

    async fn connect(&self, _: &str) -> io::Result<Near> {
        Err(io::ErrorKind::ConnectionRefused.into())
    }

    fn take_name(&self, _: &str) {}

    fn point(&self, _: &str) {}
}

impl Accept for Port {
    type Stream = Near;

    fn accept(&mut self) -> impl Future<Output = (Near, String)> + Send {
        let arrivals = Arc::clone(&self.0);
        poll_fn(move |cx: &mut Context<'_>| {
            let mut arrivals = lock(&arrivals);
            match arrivals.queue.pop_front() {
                Some(stream) => Poll::Ready((stream, "client".to_owned())),
                None => {
                    arrivals.acceptor = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
    }
}

impl Runtime for Local {
    type Stream = Near;

    fn now(&self) -> Instant {
        Instant::from_nanos(self.world.nanos())
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + Send {
        self.world.sleep_until(deadline.as_nanos())
    }

    async fn connect(&self, _: &str) -> io::Result<Near> {
        let (far, near) = pipe();
        lock(&self.opened).push(far);
        Ok(near)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.world.spawn(task);
    }

    /// Counts up: owner tokens differ, and an input can name them.
    fn fill_random(&self, bytes: &mut [u8]) {
        let mut count = lock(&self.random);
        bytes.fill(*count as u8);
        *count += 1;
    }
}
