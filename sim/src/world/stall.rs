//! Busy loops: tasks that run again and again while no time passes.
//!
//! A turn of a task takes some nanoseconds of simulated time, so that a loop like
//! `loop { yield_now().await }` would reach the limit of its run only after many minutes of real time.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::{current, escape};

/// The number of turns within which time must pass. A world of 10,000 processes takes a tenth of them to
/// start.
const TURNS_MAX: u64 = 1_000_000;

/// The time that those turns take if nothing sleeps: madsim counts 50 to 100 ns for each.
const STALLED_NANOS: u64 = TURNS_MAX * 150;

/// The number of further turns in which the line of the loop is looked for.
const LOOKS_MAX: u64 = 1_000;

thread_local! {
    /// The number of turns since the true time `SINCE`.
    static TURNS: Cell<u64> = const { Cell::new(0) };
    static SINCE: Cell<u64> = const { Cell::new(0) };
    /// The line that woke a task in a stall.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Tasks that run without end while no time passes. It is the payload of a panic, which ends the run.
pub(crate) struct Stall {
    /// The process whose task ran last.
    pub(crate) process: Option<String>,
    /// File and line of the user's code that last woke a task.
    pub(crate) location: Option<String>,
    pub(crate) turns: u64,
}

/// Begins to count, in a new world.
pub(super) fn reset() {
    TURNS.set(0);
    SINCE.set(0);
    PLACE.set(None);
}

/// Polls the task of a process, and counts the turn.
///
/// Panics with a [`Stall`] if it finds one.
pub(super) fn poll(task: Pin<&mut impl Future<Output = ()>>, cx: &mut Context<'_>) -> Poll<()> {
    let turns = TURNS.get() + 1;
    TURNS.set(turns);
    if turns <= TURNS_MAX {
        return task.poll(cx);
    }
    if turns == TURNS_MAX + 1 {
        let now = current::now();
        if now.saturating_sub(SINCE.replace(now)) > STALLED_NANOS {
            TURNS.set(0);
            return task.poll(cx);
        }
    }
    let witness = Waker::from(Arc::new(Witness(cx.waker().clone())));
    let polled = task.poll(&mut Context::from_waker(&witness));
    let location = PLACE.take();
    if location.is_some() || turns > TURNS_MAX + LOOKS_MAX {
        let stall = Stall { process: current::process_name(), location, turns: TURNS_MAX };
        std::panic::resume_unwind(Box::new(stall));
    }
    polled
}

/// A waker that notes the user's line that wakes it.
struct Witness(Waker);

impl Wake for Witness {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // The later places of one turn are the same loop.
        if PLACE.with_borrow(Option::is_none) {
            PLACE.set(escape::user_place());
        }
        self.0.wake_by_ref();
    }
}
