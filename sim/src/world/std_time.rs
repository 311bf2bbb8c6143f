//! `std::time` inside a process: it reads the process's own clocks, with their faults.
//!
//! The standard library, and every library that reads a clock through it, asks libc's `clock_gettime`.
//! madsim has one of its own, which shows the world's true time to all. The one here comes before it in the
//! program and answers for the process whose task runs; elsewhere in a simulation it answers as madsim's,
//! and outside of one as libc's. Two definitions of one name need a linker that is told to take the first
//! (`--allow-multiple-definition`, which `sim init` writes), so each run checks that it is in force.
//!
//! Source: madsim, `src/sim/time/system_time.rs`, for the interposition.
#![allow(unsafe_code, reason = "a function that libc's callers find in place of libc's has its types")]

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{OnceLock, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use libc::{clockid_t, timespec};
use madsim::time::TimeHandle;

use super::{Inner, World};

thread_local! {
    /// The world on this thread. Weak: it ends with its run.
    static WORLD: RefCell<Weak<Inner>> = const { RefCell::new(Weak::new()) };
    /// The number of the process whose task is polled or dropped.
    static PROCESS: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The two clocks that programs read.
#[derive(Clone, Copy)]
enum Reading {
    Monotonic,
    Wall,
}

pin_project_lite::pin_project! {
    /// A task of a process. While it is polled or dropped, `std::time` reads the clocks of the process.
    pub(super) struct Within<F> {
        process: usize,
        #[pin]
        task: Option<F>,
    }

    impl<F> PinnedDrop for Within<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let _entered = Entered::new(*this.process);
            this.task.set(None);
        }
    }
}

impl<F> Within<F> {
    pub(super) fn new(process: usize, task: F) -> Self {
        Self { process, task: Some(task) }
    }
}

impl<F: Future<Output = ()>> Future for Within<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let _entered = Entered::new(*this.process);
        this.task.as_pin_mut().map_or(Poll::Ready(()), |task| task.poll(cx))
    }
}

/// Restores the process that ran before when it is dropped.
struct Entered(Option<usize>);

impl Entered {
    fn new(process: usize) -> Self {
        Self(PROCESS.replace(Some(process)))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        PROCESS.set(self.0);
    }
}

/// Takes `world` as the one on this thread.
pub(super) fn enter(world: &World) {
    WORLD.set(std::sync::Arc::downgrade(&world.0));
}

/// Returns whether `std::time` reads the clocks of the processes of `world`: the program may be linked
/// without what that needs.
pub(crate) fn is_of_process(world: &World) -> bool {
    let Some(process) = world.0.processes.first() else { return true };
    let _entered = Entered::new(0);
    #[allow(clippy::disallowed_methods, reason = "asks whose clock it reads")]
    let wall = SystemTime::now().duration_since(UNIX_EPOCH);
    wall.is_ok_and(|wall| wall == Duration::from_nanos(process.wall(world.now())))
}

/// The clock of the process that runs on this thread.
fn of_process(reading: Reading) -> Option<Duration> {
    let process = PROCESS.try_with(Cell::get).ok()??;
    let world = WORLD.try_with(|world| world.try_borrow().ok()?.upgrade()).ok()??;
    let process = world.processes.get(process)?;
    let now = World(world.clone()).now();
    let nanos = match reading {
        Reading::Monotonic => process.monotonic(now),
        Reading::Wall => process.wall(now),
    };
    Some(Duration::from_nanos(nanos))
}

/// madsim's clock, if this thread runs a simulation.
fn of_simulation(reading: Reading) -> Option<Duration> {
    let time = TimeHandle::try_current()?;
    match reading {
        Reading::Monotonic => Some(time.elapsed()),
        Reading::Wall => time.now_time().duration_since(UNIX_EPOCH).ok(),
    }
}

/// Answers in place of libc's function of that name.
///
/// # Safety
///
/// As that one: `answer` points to where the answer is written.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: clockid_t, answer: *mut timespec) -> c_int {
    let reading = match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => Some(Reading::Wall),
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_BOOTTIME => Some(Reading::Monotonic),
        // The processor time that the program has had, say: nobody simulates it.
        _ => None,
    };
    let simulated = reading.and_then(|reading| of_process(reading).or_else(|| of_simulation(reading)));
    let Some(simulated) = simulated else {
        // SAFETY: the arguments are the caller's own.
        return unsafe { of_machine(clock, answer) };
    };
    let seconds = libc::time_t::try_from(simulated.as_secs()).unwrap_or(libc::time_t::MAX);
    // SAFETY: the caller's pointer is where the answer is written.
    unsafe { answer.write(timespec { tv_sec: seconds, tv_nsec: simulated.subsec_nanos().into() }) };
    0
}

type ClockGettime = unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int;

/// libc's own function.
///
/// # Safety
///
/// As that one.
#[cfg(target_os = "linux")]
unsafe fn of_machine(clock: clockid_t, answer: *mut timespec) -> c_int {
    static LIBC: OnceLock<Option<ClockGettime>> = OnceLock::new();
    let found = LIBC.get_or_init(|| {
        // SAFETY: the name is a C string.
        let found: *mut c_void = unsafe { libc::dlsym(libc::RTLD_NEXT, c"clock_gettime".as_ptr()) };
        // SAFETY: a function of that name has this type.
        (!found.is_null()).then(|| unsafe { mem::transmute::<*mut c_void, ClockGettime>(found) })
    });
    match found {
        // SAFETY: the arguments are the caller's own.
        Some(function) => unsafe { function(clock, answer) },
        None => -1,
    }
}
