//! Processes: each has a madsim node, a clock, and a state: running, paused or dead.
//!
//! A pause (SIGSTOP, a garbage collection, a frozen host) stops the process at its next await point on the
//! world: no byte is read or written and no timer fires in it, while its clock runs on and the kernel buffers
//! arriving bytes. A crash drops all of the process's memory.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::task::{Poll, Waker};

use madsim::runtime::{Handle, NodeHandle};
use madsim::task::NodeId;

use super::activity::Activity;
use super::clock::Clock;
use super::dice::Dice;
use super::disk::Disk;
use super::files::FileSystem;
use super::signals::Listening;
use super::std_time::Within;
use super::{World, lock};
use crate::entropy::Entropy;

/// A process of a world, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessId(pub(crate) usize);

/// One process.
pub struct Process {
    name: Box<str>,
    id: NodeId,
    /// False after a crash, until the restart. Atomic, as are the two fields below, since every step of every
    /// stream reads them, which must be cheap.
    alive: AtomicBool,
    /// Counts restarts: objects of an earlier life may not act in this one.
    life: AtomicU32,
    /// The number of pauses in force; they may overlap.
    pauses: AtomicU32,
    activity: Arc<Activity>,
    disk: Disk,
    files: FileSystem,
    listening: Listening,
    dice: Dice,
    state: Mutex<State>,
}

struct State {
    node: NodeHandle,
    clock: Clock,
    /// Tasks that wait for the end of the pause.
    gated: Vec<Waker>,
    /// Sleeping tasks, to be woken when the clock's rate changes, in the order in which they fell asleep.
    /// There are few.
    sleepers: Vec<(u64, Waker)>,
    sleeper_next: u64,
}

impl Process {
    pub(super) fn new(handle: &Handle, entropy: &Entropy, name: &str) -> Self {
        let node = handle.create_node().name(name).build();
        // Up to a day. Instants of two processes can't be compared, and a test that compares them must fail.
        let origin = entropy.site(&["clock ", name].concat()).below(86_400_000_000_000);
        let state = State {
            clock: Clock::new(origin),
            gated: Vec::new(),
            sleepers: Vec::new(),
            sleeper_next: 0,
            node,
        };
        Self {
            name: name.into(),
            id: state.node.id(),
            alive: AtomicBool::new(true),
            life: AtomicU32::new(0),
            pauses: AtomicU32::new(0),
            activity: Arc::default(),
            disk: Disk::new(),
            files: FileSystem::default(),
            listening: Listening::default(),
            dice: Dice::default(),
            state: Mutex::new(state),
        }
    }

    /// Returns the process's name in the schedule.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if it has not crashed, or has been restarted since.
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }

    /// Returns true if it is paused.
    pub fn is_paused(&self) -> bool {
        self.pauses.load(Ordering::Relaxed) > 0
    }

    /// Returns true if it is alive and not paused.
    pub fn is_running(&self) -> bool {
        self.is_alive() && !self.is_paused()
    }

    /// Returns the disk of its machine, which survives its crashes.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Returns the file system of its machine, which survives its crashes.
    pub(super) fn files(&self) -> &FileSystem {
        &self.files
    }

    /// Returns the signals for which it listens.
    pub(super) fn listening(&self) -> &Listening {
        &self.listening
    }

    /// Returns true if it is alive and was restarted `life` times.
    pub(crate) fn lives(&self, life: u32) -> bool {
        self.is_alive() && self.life() == life
    }

    /// Returns the number of its restarts.
    pub(crate) fn life(&self) -> u32 {
        self.life.load(Ordering::Relaxed)
    }

    pub(super) fn node(&self) -> NodeId {
        self.id
    }

    /// Returns a copy of its clocks.
    pub fn clock(&self) -> Clock {
        lock(&self.state).clock.clone()
    }

    pub(super) fn monotonic(&self, now: u64) -> u64 {
        lock(&self.state).clock.monotonic(now)
    }

    /// Reads the wall clock at the true time `now`: nanoseconds since the Unix epoch.
    pub(super) fn wall(&self, now: u64) -> u64 {
        self.activity.read_wall();
        lock(&self.state).clock.wall(now)
    }

    /// Returns the counts of what the process does.
    pub(crate) fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Returns a copy of its clocks, or `None` while the state is locked.
    pub(super) fn try_clock(&self) -> Option<Clock> {
        match self.state.try_lock() {
            Ok(state) => Some(state.clock.clone()),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner().clock.clone()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Returns the randomness for its guests.
    pub(super) fn dice(&self) -> Dice {
        self.dice.clone()
    }

    /// Locks its state, as its own methods do.
    #[cfg(test)]
    pub(super) fn lock_state(&self) -> impl Sized + '_ {
        lock(&self.state)
    }

    /// Returns the true time at which its monotonic clock will read `reading`; `None` if it already does.
    pub(super) fn when(&self, now: u64, reading: u64) -> Option<u64> {
        let clock = &lock(&self.state).clock;
        (clock.monotonic(now) < reading).then(|| clock.when(reading))
    }

    /// Ready unless the process is paused. Otherwise wakes `waker`, if there is one, when the pause ends.
    pub(super) fn poll_running(&self, waker: Option<&Waker>) -> Poll<()> {
        self.activity.turn();
        if !self.is_paused() {
            return Poll::Ready(());
        }
        if let Some(waker) = waker {
            lock(&self.state).gated.push(waker.clone());
        }
        Poll::Pending
    }

    /// Registers a sleeping task, which is woken early if the clock's rate changes. Returns its number.
    pub(super) fn add_sleeper(&self, waker: Waker) -> u64 {
        let mut state = lock(&self.state);
        let number = state.sleeper_next;
        state.sleeper_next += 1;
        state.sleepers.push((number, waker));
        number
    }

    pub(super) fn remove_sleeper(&self, number: u64) {
        let removed = {
            let sleepers = &mut lock(&self.state).sleepers;
            sleepers.iter().position(|(sleeper, _)| *sleeper == number).map(|place| sleepers.remove(place))
        };
        // Dropped while no mutex is locked.
        drop(removed);
    }

    fn spawn(&self, id: ProcessId, task: impl Future<Output = ()> + Send + 'static) {
        let node = lock(&self.state).node.clone();
        // In a box, since madsim moves a task several times until it runs.
        drop(node.spawn(Within::new(id.0, Arc::clone(&self.activity), Box::pin(task))));
    }
}

impl World {
    /// Runs `task` in the process. Nothing happens if the process is dead.
    pub fn spawn(&self, id: ProcessId, task: impl Future<Output = ()> + Send + 'static) {
        if !self.is_over() && self.process(id).is_alive() {
            self.process(id).spawn(id, task);
        }
    }

    /// Pauses the process. Pauses nest: it runs again when each has ended.
    pub fn pause(&self, id: ProcessId) {
        let process = self.process(id);
        let before = process.pauses.fetch_add(1, Ordering::Relaxed);
        if before == 0 && process.is_alive() {
            self.handle().pause(process.node());
        }
    }

    /// Ends one pause of the process. Nothing happens if it is not paused.
    pub fn resume(&self, id: ProcessId) {
        let process = self.process(id);
        let pauses = process.pauses.load(Ordering::Relaxed);
        process.pauses.store(pauses.saturating_sub(1), Ordering::Relaxed);
        if pauses != 1 {
            return;
        }
        if process.is_alive() {
            self.handle().resume(process.node());
        }
        for waker in lock(&process.state).gated.drain(..) {
            waker.wake();
        }
    }

    /// Kills the process. Its memory is gone. Its connections are reset, or fall silent with `power_loss`,
    /// when the whole host is down. Data in the operating system's cache survives unless power is lost.
    pub fn crash(&self, id: ProcessId, power_loss: bool) {
        self.crash_machine(id, power_loss);
        {
            let process = self.process(id);
            let mut state = lock(&process.state);
            // Also of a process that is dead already: a pause of it would outlive its restart.
            process.pauses.store(0, Ordering::Relaxed);
            if !process.alive.swap(false, Ordering::Relaxed) {
                return;
            }
            state.sleepers.clear();
            for waker in state.gated.drain(..) {
                waker.wake();
            }
        }
        // madsim drops paused tasks at once, within the task of the caller.
        self.0.muted.store(true, Ordering::Relaxed);
        self.handle().kill(self.process(id).node());
        self.0.muted.store(false, Ordering::Relaxed);
        self.sever(id, power_loss);
    }

    /// Ends a process whose `main` has returned, if it runs on another runtime's interface: as such a runtime
    /// does, drops its other tasks and closes their connections.
    pub(crate) fn exit_guest(&self, id: ProcessId) {
        if !self.process(id).activity().stops_whole() {
            return;
        }
        let world = self.clone();
        // A task can't drop itself.
        self.spawn_harness(async move {
            let process = world.process(id);
            if process.is_alive() && !world.is_over() {
                world.handle().kill(process.node());
                // madsim drops the tasks, which close their connections, before it advances its time.
                world.sleep_until(world.now() + 1).await;
                world.crash_machine(id, false);
                process.alive.store(false, Ordering::Relaxed);
            }
        });
    }

    /// Ends what the machine keeps for the process, which is dead: open files and signals.
    fn crash_machine(&self, id: ProcessId, power_loss: bool) {
        let process = self.process(id);
        process.disk.crash(power_loss);
        process.files.crash();
        process.listening.clear();
        if power_loss {
            let epoch = self.entropy().epoch(self.now());
            let site = |loss| self.entropy().site_of(epoch, &format!("files {} {loss}", process.name()));
            process.files.lose_power(site);
        }
    }

    /// Restarts a dead process, with `main` as its first task. Its clocks have run on.
    pub fn restart(&self, id: ProcessId, main: impl Future<Output = ()> + Send + 'static) {
        {
            let process = self.process(id);
            let mut state = lock(&process.state);
            if process.alive.swap(true, Ordering::Relaxed) {
                return;
            }
            process.life.fetch_add(1, Ordering::Relaxed);
            self.handle().restart(process.node());
            if let Some(node) = self.handle().get_node(process.node()) {
                state.node = node;
            }
        }
        self.refuse_old_connections(id);
        self.spawn(id, main);
    }

    /// Sends the process a signal. Returns false if it does not listen for it, and would end.
    pub fn signal(&self, id: ProcessId, number: i32) -> bool {
        self.process(id).listening.signal(number)
    }

    /// Steps the wall clock of the process by `by` nanoseconds.
    pub fn step_clock(&self, id: ProcessId, by: i64) {
        lock(&self.process(id).state).clock.step(by);
    }

    /// Sets the rate of the process's clocks from now on, in local nanoseconds per billion true ones.
    pub fn set_clock_rate(&self, id: ProcessId, rate: u64) {
        let now = self.now();
        let mut state = lock(&self.process(id).state);
        state.clock.set_rate(now, rate);
        // Each sleeper sets its timer anew by the changed clock.
        for (_, waker) in &state.sleepers {
            waker.wake_by_ref();
        }
    }
}
