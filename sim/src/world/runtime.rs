//! The `dlock::Runtime` of a simulated process.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use dlock::{Instant, Runtime};
use dlock_runtime::Probe;

use super::process::ProcessId;
use super::stream::SimStream;
use super::{World, lock};
use crate::entropy::Site;

/// The world as one process sees it, in one of its lives. It spawns nothing after a crash.
#[derive(Clone)]
pub struct SimRuntime {
    world: World,
    process: ProcessId,
    life: u32,
    random: Arc<Mutex<Random>>,
}

/// The randomness of one life of a process.
struct Random {
    site: Site,
    /// How often the key of the world's entropy had been replaced when the site was made.
    epoch: usize,
}

impl SimRuntime {
    /// Returns the runtime of the process in its present life.
    pub fn new(world: &World, process: ProcessId) -> Self {
        let life = world.process(process).life();
        let random = Arc::new(Mutex::new(Random::new(world, process, life)));
        Self { world: world.clone(), process, life, random }
    }

    /// Returns its world.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Returns its process.
    pub fn process(&self) -> ProcessId {
        self.process
    }

    /// Reads the process's wall clock, in nanoseconds since the Unix epoch. It is not part of [`Runtime`]:
    /// locks must not read it.
    pub fn wall_nanos(&self) -> u64 {
        self.world.process(self.process).wall(self.world.now())
    }

    /// Yields to all other ready tasks, and waits for the end of a pause that has begun.
    pub async fn yield_now(&self) {
        let mut yielded = false;
        std::future::poll_fn(|cx| {
            if self.world.process(self.process).poll_running(Some(cx.waker())).is_pending() {
                yielded = true;
                return Poll::Pending;
            }
            if yielded {
                return Poll::Ready(());
            }
            yielded = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    fn lives(&self) -> bool {
        !self.world.is_over() && self.world.process(self.process).lives(self.life)
    }
}

impl Random {
    fn new(world: &World, process: ProcessId, life: u32) -> Self {
        let epoch = world.entropy().epoch(world.now());
        let name = format!("random {} {life}", world.process(process).name());
        Self { site: world.entropy().site_of(epoch, &name), epoch }
    }
}

impl Runtime for SimRuntime {
    type Stream = SimStream;

    fn now(&self) -> Instant {
        Instant::from_nanos(self.world.process(self.process).monotonic(self.world.now()))
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + Send {
        SimSleep::new(&self.world, self.process, deadline.as_nanos())
    }

    async fn connect(&self, address: &str) -> io::Result<SimStream> {
        self.world.connect(self.process, address).await
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if self.lives() {
            self.world.spawn(self.process, task);
        }
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        let mut random = lock(&self.random);
        if random.epoch != self.world.entropy().epoch(self.world.now()) {
            *random = Random::new(&self.world, self.process, self.life);
        }
        random.site.fill(bytes);
    }

    fn probe(&self, probe: &'static Probe, line: u32, seen: impl FnOnce() -> u64) {
        if self.lives() {
            self.world.probe(self.process, probe, line, seen);
        }
    }
}

/// A sleep by the clock of one process, whose rate may change meanwhile.
pub(super) struct SimSleep {
    world: World,
    process: ProcessId,
    /// On the process's monotonic clock, in nanoseconds.
    deadline: u64,
    alarm: Option<Armed>,
}

/// A timer that has been set. madsim's timers can't be cancelled. Dropping a sleep therefore removes the
/// waker, so that a timeout that did not expire costs no wake-up later.
struct Armed {
    at: u64,
    alarm: Arc<Alarm>,
    sleeper: u64,
}

struct Alarm(Mutex<Option<Waker>>);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        if let Some(waker) = lock(&self.0).take() {
            waker.wake();
        }
    }
}

impl Future for SimSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let process = this.world.process(this.process);
        if process.poll_running(Some(cx.waker())).is_pending() {
            return Poll::Pending;
        }
        let Some(at) = process.when(this.world.now(), this.deadline) else { return Poll::Ready(()) };
        match &this.alarm {
            Some(armed) if armed.at == at => *lock(&armed.alarm.0) = Some(cx.waker().clone()),
            _ => this.arm(at, cx.waker()),
        }
        Poll::Pending
    }
}

impl SimSleep {
    /// Returns a sleep until the monotonic clock of `process` reads `deadline`.
    pub(super) fn new(world: &World, process: ProcessId, deadline: u64) -> Self {
        Self { world: world.clone(), process, deadline, alarm: None }
    }

    fn arm(&mut self, at: u64, waker: &Waker) {
        self.disarm();
        let alarm = Arc::new(Alarm(Mutex::new(Some(waker.clone()))));
        let ring = Waker::from(Arc::clone(&alarm));
        self.world.wake_at(at, &ring);
        let sleeper = self.world.process(self.process).add_sleeper(ring);
        self.alarm = Some(Armed { at, alarm, sleeper });
    }

    fn disarm(&mut self) {
        if let Some(armed) = self.alarm.take() {
            *lock(&armed.alarm.0) = None;
            self.world.process(self.process).remove_sleeper(armed.sleeper);
        }
    }
}

impl Drop for SimSleep {
    fn drop(&mut self) {
        self.disarm();
    }
}
