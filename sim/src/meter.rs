//! Where the time of runs goes. A benchmark sets a clock; from then on each part of a run is charged for the
//! time between its beginning and its end, without that of the parts within it.
//!
//! Without a clock, a part costs a look at a flag. The simulation itself never reads this clock.

use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The draw of the schedule.
    Draw,
    /// Building the world and its processes, starting the run's thread, and dropping them.
    SetUp,
    /// The tasks of clients and of the code under test, with the messages that they send and receive.
    Client,
    /// The tasks of servers, with the messages that they send and receive.
    Server,
    /// Scripts that run in a server.
    Script,
    /// The rest of the simulated world: the order of tasks, timers, faults.
    World,
    /// The audit of the history, and its comparison with earlier ones.
    Audit,
}

/// A clock that benchmarks set: units of time since an origin of its own, such as nanoseconds.
pub type Clock = fn() -> u64;

static CLOCK: OnceLock<Clock> = OnceLock::new();
static SPENT: [AtomicU64; Part::ALL.len()] = [const { AtomicU64::new(0) }; Part::ALL.len()];

thread_local! {
    /// The part that is charged on this thread, and since when.
    static CHARGED: Cell<Option<(Part, u64)>> = const { Cell::new(None) };
}

/// Charges all runs of this program from now on, on all threads, by `clock`. A second clock is ignored.
pub fn charge_by(clock: Clock) {
    let _ = CLOCK.set(clock);
}

/// Returns what each part was charged so far, in units of the clock.
pub fn spent() -> [(Part, u64); Part::ALL.len()] {
    Part::ALL.map(|part| (part, SPENT[part as usize].load(Ordering::Relaxed)))
}

impl Part {
    /// All parts, in the order of a run.
    pub const ALL: [Self; 7] =
        [Self::Draw, Self::SetUp, Self::Client, Self::Server, Self::Script, Self::World, Self::Audit];
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Draw => "draw",
            Self::SetUp => "set-up and tear-down",
            Self::Client => "client",
            Self::Server => "server",
            Self::Script => "script",
            Self::World => "world",
            Self::Audit => "audit",
        })
    }
}

/// Charges a part until it is dropped, then again the part in which it began.
#[must_use = "the part ends when this is dropped"]
pub(crate) struct Charge(Option<Ending>);

/// How a charged part ends.
struct Ending {
    clock: Clock,
    outer: Option<Part>,
}

/// Begins a part on this thread.
#[inline]
pub(crate) fn charge(part: Part) -> Charge {
    begin(Some(part))
}

/// Begins a time for which this thread waits for another, which is charged.
#[inline]
pub(crate) fn wait() -> Charge {
    begin(None)
}

#[inline]
fn begin(next: Option<Part>) -> Charge {
    match CLOCK.get() {
        None => Charge(None),
        Some(clock) => Charge(Some(Ending { clock: *clock, outer: switch(*clock, next) })),
    }
}

impl Drop for Charge {
    #[inline]
    fn drop(&mut self) {
        if let Some(Ending { clock, outer }) = self.0.take() {
            switch(clock, outer);
        }
    }
}

/// Charges the present part of this thread up to now, and begins `next`. Returns the present part.
#[cold]
fn switch(clock: Clock, next: Option<Part>) -> Option<Part> {
    let now = clock();
    let before = CHARGED.replace(next.map(|part| (part, now)));
    before.map(|(part, since)| {
        SPENT[part as usize].fetch_add(now.saturating_sub(since), Ordering::Relaxed);
        part
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Advances by one with each reading.
    fn ticks() -> u64 {
        thread_local! {
            static TICKS: Cell<u64> = const { Cell::new(0) };
        }
        TICKS.replace(TICKS.get() + 1)
    }

    #[test]
    fn an_inner_part_is_not_charged_to_the_outer_one() {
        // Before there is a clock, nothing is charged.
        drop(charge(Part::Audit));
        assert!(spent().iter().all(|(_, units)| *units == 0));
        charge_by(ticks);
        // 0 to 1 and 4 to 5.
        let outer = charge(Part::Server);
        // 1 to 2 and 3 to 4.
        let inner = charge(Part::Script);
        // 2 to 3.
        drop(charge(Part::Audit));
        drop(inner);
        drop(outer);
        // Neither between two parts, 5 to 6, nor while a part waits, 7 to 8.
        let outer = charge(Part::Draw);
        drop(wait());
        drop(outer);
        let of = |part: Part| spent()[part as usize].1;
        let charged = [Part::Server, Part::Script, Part::Audit, Part::Draw].map(of);
        assert_eq!(charged, [2, 2, 1, 2]);
    }
}
