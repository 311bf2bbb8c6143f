//! The world and the process whose code runs on this thread.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

use madsim::time::TimeHandle;

use super::{Inner, World};

thread_local! {
    /// The world on this thread. Weak, as the world ends with its run.
    static WORLD: RefCell<Weak<Inner>> = const { RefCell::new(Weak::new()) };
    /// The number of the process whose task is polled or dropped.
    static PROCESS: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The process that ran before. Dropping this restores it.
pub(super) struct Entered(Option<usize>);

impl Entered {
    pub(super) fn new(process: usize) -> Self {
        Self(PROCESS.replace(Some(process)))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        PROCESS.set(self.0);
    }
}

/// Sets the world on this thread.
pub(super) fn enter(world: &World) {
    WORLD.set(Arc::downgrade(&world.0));
}

/// Returns true if a task of a process is polled or dropped on this thread.
pub(crate) fn is_in_process() -> bool {
    PROCESS.try_with(Cell::get).ok().flatten().is_some()
}

/// Returns true if the process on this thread runs on another runtime's interface.
pub(super) fn is_guest() -> bool {
    let Some((world, process)) = process() else { return false };
    world.0.processes.get(process).is_some_and(|process| process.activity().stops_whole())
}

/// Returns the true time in the world on this thread.
pub(super) fn now() -> u64 {
    let world = WORLD.with_borrow(Weak::upgrade);
    world.map_or(0, |world| World(world).now())
}

/// Returns true if this thread runs a simulation.
pub(super) fn is_simulated() -> bool {
    TimeHandle::try_current().is_some()
}

/// Returns the name of the process whose task is polled or dropped on this thread.
pub(super) fn process_name() -> Option<String> {
    let (world, process) = process()?;
    Some(world.0.processes.get(process)?.name().to_owned())
}

/// Returns the number by which an operating system would know the process on this thread: another one after
/// each restart, and the same in each run.
#[cfg(target_os = "linux")]
pub(super) fn pid() -> libc::pid_t {
    /// The first number of a process; 1 is that of the system's own.
    const FIRST: u32 = 2;
    /// The distance between two lives of a process.
    const LIFE: u32 = 1_000;
    let number = process().map(|(world, process)| {
        let life = world.0.processes.get(process).map_or(0, |process| process.life());
        FIRST + process as u32 + LIFE * life
    });
    number.unwrap_or(FIRST).cast_signed()
}

/// Returns the process whose task is polled or dropped on this thread, by number, and its world. Waits for no
/// lock, since allocators and signals ask.
pub(crate) fn process() -> Option<(World, usize)> {
    let process = PROCESS.try_with(Cell::get).ok()??;
    let world = WORLD.try_with(|world| world.try_borrow().ok()?.upgrade()).ok()??;
    Some((World(world), process))
}

/// Ready unless the process on this thread is paused. Otherwise wakes `waker` when the pause ends.
pub(super) fn poll_running(waker: &Waker) -> Poll<()> {
    let Some((world, process)) = process() else { return Poll::Ready(()) };
    world.0.processes.get(process).map_or(Poll::Ready(()), |process| process.poll_running(Some(waker)))
}
