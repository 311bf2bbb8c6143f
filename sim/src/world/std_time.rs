//! `std::time` inside a process: it reads the process's own clocks, with their faults.
//!
//! The standard library, and every library that reads a clock through it, calls libc's `clock_gettime`.
//! madsim defines its own, which returns the world's true time to all callers. The definition here comes
//! before it in the program and reads the clocks of the process whose task runs. Elsewhere in a simulation it
//! returns the same as madsim's, and outside of a simulation the same as libc's. The linker must take the
//! first of two definitions of one name (`--allow-multiple-definition`, which `tools/init` writes), so each
//! run checks that it did.
//!
//! Source: madsim, `src/sim/time/system_time.rs`, for the interposition.
#![allow(unsafe_code, reason = "a function that replaces one of libc has the types of libc's")]

use std::ffi::{c_int, c_void};
use std::future::Future;
use std::mem;
use std::panic;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use libc::{clockid_t, timespec};
use madsim::time::TimeHandle;

use super::activity::Activity;
use super::current::{self, Entered};
use super::{World, escape, stall};

/// One of the two clocks that programs read.
#[derive(Clone, Copy)]
enum Reading {
    Monotonic,
    Wall,
}

pin_project_lite::pin_project! {
    /// A task of a process. While it is polled or dropped, `std::time` reads the clocks of the process.
    pub(super) struct Within<F> {
        process: usize,
        activity: Arc<Activity>,
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
    pub(super) fn new(process: usize, activity: Arc<Activity>, task: F) -> Self {
        Self { process, activity, task: Some(task) }
    }
}

impl<F: Future<Output = ()>> Future for Within<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let _entered = Entered::new(*this.process);
        if this.activity.stops_whole() {
            std::task::ready!(current::poll_running(cx.waker()));
        }
        this.activity.turn();
        let polled = this.task.as_pin_mut().map_or(Poll::Ready(()), |task| stall::poll(task, cx));
        if escape::has_escaped() {
            // Ends the run, as a panic does, but is not printed as one.
            panic::resume_unwind(Box::new("a process left the simulation"));
        }
        polled
    }
}

/// Returns true if `std::time` reads the clocks of the processes of `world`. It does not if the program was
/// linked without the flag.
pub(crate) fn is_of_process(world: &World) -> bool {
    let Some(process) = world.0.processes.first() else { return true };
    let _entered = Entered::new(0);
    #[allow(clippy::disallowed_methods, reason = "finds out which clock it reads")]
    let wall = SystemTime::now().duration_since(UNIX_EPOCH);
    wall.is_ok_and(|wall| wall == Duration::from_nanos(process.wall(world.now())))
}

/// Reads a clock of the process that runs on this thread, if one does.
///
/// Waits for no mutex: allocators read a clock, too, and may be called while the process's state is locked.
/// They then read the simulation's clock.
fn of_process(reading: Reading) -> Option<Duration> {
    let (world, process) = current::process()?;
    let process = world.0.processes.get(process)?;
    let clock = process.try_clock()?;
    let now = world.now();
    let nanos = match reading {
        Reading::Monotonic => clock.monotonic(now),
        Reading::Wall => {
            process.activity().read_wall();
            clock.wall(now)
        }
    };
    Some(Duration::from_nanos(nanos))
}

/// Reads madsim's clock, if this thread runs a simulation.
fn of_simulation(reading: Reading) -> Option<Duration> {
    let time = TimeHandle::try_current()?;
    match reading {
        Reading::Monotonic => Some(time.elapsed()),
        Reading::Wall => time.now_time().duration_since(UNIX_EPOCH).ok(),
    }
}

/// Replaces libc's function of that name.
///
/// # Safety
///
/// As for libc's: `answer` must be valid for writes.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: clockid_t, answer: *mut timespec) -> c_int {
    let reading = match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => Some(Reading::Wall),
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_BOOTTIME => Some(Reading::Monotonic),
        // Other clocks, such as the processor time of the program, are not simulated.
        _ => None,
    };
    let simulated = reading.and_then(|reading| of_process(reading).or_else(|| of_simulation(reading)));
    let Some(simulated) = simulated else {
        // SAFETY: the arguments are the caller's own.
        return unsafe { of_machine(clock, answer) };
    };
    let seconds = libc::time_t::try_from(simulated.as_secs()).unwrap_or(libc::time_t::MAX);
    // SAFETY: the caller's pointer is valid for writes.
    unsafe { answer.write(timespec { tv_sec: seconds, tv_nsec: simulated.subsec_nanos().into() }) };
    0
}

type ClockGettime = unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int;

/// Calls libc's own function.
///
/// # Safety
///
/// As for libc's.
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::entropy::Entropy;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "tests what they read")]
    fn a_clock_is_read_while_the_state_of_its_process_is_locked() {
        let runtime = madsim::runtime::Runtime::with_seed_and_config(1, madsim::Config::default());
        runtime.block_on(async {
            let latency = (Duration::from_millis(1), Duration::from_millis(1));
            let world = World::new(Entropy::new(1), &["a"], latency);
            let _entered = Entered::new(0);
            let own = SystemTime::now();
            let _state = world.0.processes[0].lock_state();
            // As an allocator does. With a blocking read, the test would not end.
            let _ = (Instant::now(), SystemTime::now());
            assert_ne!(own, UNIX_EPOCH);
        });
    }
}
