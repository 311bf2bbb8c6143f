//! The simulated world, on madsim's tasks, nodes and timers: processes with clocks of their own, a network
//! of directed links, and disks that lose unsynced data.
//!
//! Read in this order: [`clock`] (time as a process sees it), [`process`] (pause, crash, restart),
//! [`network`] (links, segments, cuts), [`stream`] (the byte streams over them), [`capture`] (what they
//! carried), [`disk`], `files`, [`runtime`] (the `dlock::Runtime` of real clients), `guest` (programs on a
//! simulated tokio), and [`machine`] (the surroundings of simulated servers).

mod activity;
mod address;
pub(crate) mod blocking;
#[doc(hidden)]
pub mod capture;
#[doc(hidden)]
pub mod clock;
pub(crate) mod current;
mod datagrams;
mod dice;
pub mod disk;
pub(crate) mod escape;
pub(crate) mod exercise;
pub(crate) mod files;
#[cfg(target_os = "linux")]
mod getaddrinfo;
pub(crate) mod guest;
mod guest_files;
#[cfg(target_os = "linux")]
pub(crate) mod interrupt;
#[cfg(target_os = "linux")]
mod libc_calls;
pub(crate) mod look_ups;
#[doc(hidden)]
pub mod machine;
#[doc(hidden)]
pub mod network;
mod pages;
mod pipe;
pub(crate) mod probes;
#[doc(hidden)]
pub mod process;
mod rare;
#[doc(hidden)]
pub mod requests;
pub mod runtime;
pub(crate) mod signals;
pub(crate) mod stall;
mod std_time;
pub mod stream;

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use dlock_runtime::{Probe, ProbeKind};
use madsim::runtime::{Handle, NodeHandle};
use madsim::time::{Sleep, TimeHandle};

use crate::entropy::Entropy;
use capture::Capture;
use datagrams::Datagrams;
use exercise::Exercise;
use look_ups::LookUps;
use network::Network;
use probes::{Failed, Hits};
use process::{Process, ProcessId};
use rare::RareBranches;
use requests::Requests;

/// One simulated world. Clones are the same world.
#[doc(hidden)]
#[derive(Clone)]
pub struct World(Arc<Inner>);

struct Inner {
    time: TimeHandle,
    /// Sets all of madsim's timers, one after the other: a sleep for each would double the cost of a timer.
    alarm: Mutex<Sleep>,
    /// madsim's origin, from which its own instants count.
    origin: std::time::Instant,
    handle: Handle,
    processes: Vec<Process>,
    /// Runs the harness's own tasks: never paused, never killed before the end.
    harness: NodeHandle,
    /// Virtual addresses, each with its process, such as that of a primary.
    aliases: Mutex<BTreeMap<String, ProcessId>>,
    network: Mutex<Network>,
    datagrams: Mutex<Datagrams>,
    requests: Requests,
    look_ups: Mutex<LookUps>,
    entropy: Entropy,
    over: AtomicBool,
    /// True while the memory of a killed process is dropped.
    muted: AtomicBool,
    /// True if `point_listener` is set. Without a listener, a point costs only this check.
    has_listener: AtomicBool,
    point_listener: Mutex<Option<Arc<dyn PointListener>>>,
    /// True if the listener gets points of the network. Their names would cost more than the messages
    /// themselves.
    hears_network: AtomicBool,
    hits: Mutex<Hits>,
    exercise: Mutex<Exercise>,
    rare_branches: Mutex<RareBranches>,
}

/// A listener for the points that processes pass ([`World::hear_points`]). A closure is one.
#[doc(hidden)]
pub trait PointListener: Send + Sync {
    /// Hears that `process` has passed the point called `name`, within the process's task. It may stop the
    /// process.
    fn passed(&self, process: ProcessId, name: &str);
}

impl<F: Fn(ProcessId, &str) + Send + Sync> PointListener for F {
    fn passed(&self, process: ProcessId, name: &str) {
        self(process, name);
    }
}

/// A dead process. Events that are emitted while its memory is dropped don't count.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dead;

impl World {
    /// Returns a world with the processes `names`, on the madsim runtime of the current task. Each link
    /// between two processes delays a segment by a time drawn from `latency`, both ends included.
    pub fn new(entropy: Entropy, names: &[&str], latency: (Duration, Duration)) -> Self {
        let handle = Handle::current();
        let time = TimeHandle::current();
        let origin = time.now_instant() - time.elapsed();
        let processes = names.iter().map(|name| Process::new(&handle, &entropy, name)).collect();
        let network = Mutex::new(Network::new(&entropy, names, latency));
        let over = AtomicBool::new(false);
        let muted = AtomicBool::new(false);
        let alarm = Mutex::new(time.sleep(Duration::ZERO));
        let harness = handle.create_node().name("harness").build();
        let aliases = Mutex::default();
        let world = Self(Arc::new(Inner {
            time,
            alarm,
            origin,
            handle,
            processes,
            harness,
            aliases,
            network,
            datagrams: Mutex::default(),
            requests: Requests::default(),
            look_ups: Mutex::default(),
            entropy,
            over,
            muted,
            has_listener: AtomicBool::new(false),
            hears_network: AtomicBool::new(false),
            point_listener: Mutex::default(),
            hits: Mutex::default(),
            exercise: Mutex::default(),
            rare_branches: Mutex::default(),
        }));
        current::enter(&world);
        stall::reset();
        world
    }

    /// Returns true if `std::time` inside a process reads the process's clocks. It does on Linux, if the
    /// linker takes the first of several definitions of a name (`tools/init` sets the flag).
    pub fn is_std_time_of_processes(&self) -> bool {
        std_time::is_of_process(self)
    }

    /// Returns the true time: nanoseconds since the run began.
    pub fn now(&self) -> u64 {
        let elapsed = self.0.time.elapsed();
        elapsed.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(elapsed.subsec_nanos()))
    }

    /// Completes at the true time `at`. Only the harness uses it: a process sleeps by its own clock.
    pub fn sleep_until(&self, at: u64) -> impl Future<Output = ()> + Send + use<> {
        let mut sleep = self.0.time.sleep(Duration::ZERO);
        Pin::new(&mut sleep).reset(self.0.origin + Duration::from_nanos(at));
        sleep
    }

    /// Returns the process with this name or alias.
    pub fn find(&self, name: &str) -> Option<ProcessId> {
        let found = self.0.processes.iter().position(|process| process.name() == name).map(ProcessId);
        found.or_else(|| lock(&self.0.aliases).get(name).copied())
    }

    /// Makes `name` a virtual address of the process from now on. Open connections stay with their processes.
    pub fn alias(&self, name: &str, id: ProcessId) {
        let former = lock(&self.0.aliases).insert(name.to_owned(), id);
        if let Some(former) = former.filter(|former| *former != id) {
            self.note_former(name, former);
        }
    }

    /// Returns true if the process has an alias.
    pub fn has_alias(&self, id: ProcessId) -> bool {
        lock(&self.0.aliases).values().any(|aliased| *aliased == id)
    }

    /// Runs a task of the harness itself.
    pub fn spawn_harness(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.harness.spawn(task));
    }

    /// Returns the process whose task is running, or `None` in the harness itself.
    ///
    /// # Errors
    ///
    /// [`Dead`] if the process is dead and its memory is being dropped.
    pub fn speaker(&self) -> Result<Option<ProcessId>, Dead> {
        if self.is_over() || self.0.muted.load(Ordering::Relaxed) {
            return Err(Dead);
        }
        let node = madsim::plugin::node();
        match self.0.processes.iter().position(|process| process.node() == node) {
            Some(number) if !self.0.processes[number].is_alive() => Err(Dead),
            found => Ok(found.map(ProcessId)),
        }
    }

    /// Calls `listener` whenever a process passes a point ([`World::point`]), from now on. Replaces an
    /// earlier listener.
    pub fn hear_points(&self, listener: impl PointListener + 'static) {
        *lock(&self.0.point_listener) = Some(Arc::new(listener));
        self.0.has_listener.store(true, Ordering::Relaxed);
    }

    /// Passes points of the network to the listener, too: a process `sends to NAME`, `receives from NAME` and
    /// so on.
    pub fn hear_network(&self) {
        self.0.hears_network.store(true, Ordering::Relaxed);
    }

    /// Passes a point of the network: the process has `done` something with `peer`. The caller must hold no
    /// mutex, as a fault may strike.
    #[inline]
    fn network_point(&self, id: ProcessId, done: &str, peer: usize) {
        if self.0.hears_network.load(Ordering::Relaxed) {
            self.point(id, &format!("{done} {}", self.0.processes[peer].name()));
        }
    }

    /// Passes the point called `name` in the process: faults that are aimed at it strike.
    #[inline]
    pub fn point(&self, id: ProcessId, name: &str) {
        if !self.0.has_listener.load(Ordering::Relaxed) {
            return;
        }
        let listener = lock(&self.0.point_listener).clone();
        if let Some(listener) = listener {
            listener.passed(id, name);
        }
    }

    /// Counts a probe that the process evaluates at `line` of the probe's file, unless the process is dead.
    pub(crate) fn probe(&self, id: ProcessId, probe: &'static Probe, line: u32, seen: impl FnOnce() -> u64) {
        if !self.is_mute(id) {
            let seen = seen();
            let mut hits = lock(&self.0.hits);
            hits.note(probe.kind, probe.name, seen, self.now());
            let has_failed = hits.count(probe, line, seen);
            drop(hits);
            if has_failed {
                let problem = format!("{} ({}:{line})", probe.about.trim(), probe.file);
                self.fail(id, probe.name, problem);
            }
        }
    }

    /// Counts a probe that the process names.
    pub(crate) fn own_probe(
        &self,
        id: ProcessId,
        kind: ProbeKind,
        name: &str,
        place: &'static Location<'static>,
        seen: u64,
    ) {
        if !self.is_mute(id) {
            let mut hits = lock(&self.0.hits);
            hits.note(kind, name, seen, self.now());
            let has_failed = hits.count_own(kind, name, place, seen);
            drop(hits);
            if has_failed {
                self.fail(id, name, format!("it is false ({}:{})", place.file(), place.line()));
            }
        }
    }

    fn fail(&self, id: ProcessId, name: &str, problem: String) {
        let (name, at) = (name.to_owned(), self.now());
        lock(&self.0.hits).fail(Failed { name, problem, at, process: id.0 });
    }

    /// Takes the counts of the probes so far.
    pub(crate) fn take_hits(&self) -> Hits {
        std::mem::take(&mut lock(&self.0.hits))
    }

    /// Captures all connections of the run from now on, if none has been opened yet.
    pub fn capture(&self) {
        self.network().start_capture();
    }

    /// Takes what has been captured so far. `None` if the world does not capture.
    pub(crate) fn take_capture(&self) -> Option<Capture> {
        self.network().notes.take()
    }

    fn is_mute(&self, id: ProcessId) -> bool {
        self.is_over() || self.0.muted.load(Ordering::Relaxed) || !self.process(id).is_alive()
    }

    /// Returns the process `id`.
    pub fn process(&self, id: ProcessId) -> &Process {
        &self.0.processes[id.0]
    }

    /// Returns all processes, in the order in which they were named.
    pub fn processes(&self) -> impl Iterator<Item = ProcessId> + use<> {
        (0..self.0.processes.len()).map(ProcessId)
    }

    /// Returns the run's keyed randomness.
    pub fn entropy(&self) -> &Entropy {
        &self.0.entropy
    }

    /// Ends the run: destructors that run from now on spawn, send and record nothing. Drops all tasks, since
    /// a task that waits for ever and the world would keep each other alive.
    pub async fn end(&self) {
        self.0.over.store(true, Ordering::Relaxed);
        // Nobody reads the disks again: what tasks would still write when they are dropped is lost.
        self.processes().for_each(|id| {
            self.process(id).disk().crash(false);
            self.process(id).files().crash();
        });
        for process in &self.0.processes {
            self.0.handle.kill(process.node());
        }
        self.0.handle.kill(self.0.harness.id());
        // The listener may hold this world.
        self.0.has_listener.store(false, Ordering::Relaxed);
        let listener = lock(&self.0.point_listener).take();
        drop(listener);
        // Every task has been woken. madsim drops them before it advances its time.
        self.sleep_until(self.now() + 1_000_000).await;
    }

    fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Relaxed)
    }

    fn handle(&self) -> &Handle {
        &self.0.handle
    }

    fn network(&self) -> MutexGuard<'_, Network> {
        lock(&self.0.network)
    }

    /// Wakes `waker` at the true time `at`, by a timer without a task.
    fn wake_at(&self, at: u64, waker: &Waker) {
        let is_due = {
            let mut alarm = lock(&self.0.alarm);
            Pin::new(&mut *alarm).reset(self.0.origin + Duration::from_nanos(at));
            Pin::new(&mut *alarm).poll(&mut Context::from_waker(waker)).is_ready()
        };
        if is_due {
            waker.wake_by_ref();
        }
    }
}

/// Locks `mutex`. A run has only one thread, so a poisoned mutex means that the run has panicked already.
#[doc(hidden)]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
