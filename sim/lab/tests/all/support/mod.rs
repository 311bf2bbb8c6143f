//! Shared by the tests: the corpus, drawn schedules, the seeds from the environment, and scripts.

mod corpus;
pub mod drawn;
pub mod guard;
mod replay;
pub mod scripts;
mod seeds;

pub use corpus::{Case, case, corpus};
use history::VerdictKind;
use lab::{LabScene, Options, Point};
pub use replay::replay_line;
pub use seeds::seeds;
use sim::Schedule;
use sim::faults::{Cut, Fault, Link, Pause, Trigger};

/// The factor by which [`search`] extends a number of seeds.
pub const SEARCH_FACTOR: u64 = 10;

/// Returns the seeds of a search that ends with its first finding: from `SEED` on, [`SEARCH_FACTOR`] times
/// `count` at most. `count` are enough on average; luck depends on the first seed.
pub fn search(count: u64) -> impl Iterator<Item = u64> {
    let first = seeds::number("SEED").unwrap_or(0);
    (0..SEARCH_FACTOR * count).map(move |number| first.wrapping_add(number))
}

/// The part of their schedules that the longest searches run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Breadth {
    /// Without `BREADTH`: plain `cargo test`, which ends within minutes.
    Short,
    /// `BREADTH=usual`, with which `tools/test` checks every change.
    Usual,
    /// `BREADTH=whole`, as nightly.
    Whole,
}

/// Returns how much the longest searches cover, from the environment.
pub fn breadth() -> Breadth {
    match std::env::var("BREADTH").as_deref() {
        Err(_) => Breadth::Short,
        Ok("usual") => Breadth::Usual,
        Ok("whole") => Breadth::Whole,
        Ok(other) => panic!("BREADTH={other} is unknown: give usual or whole, or leave it out"),
    }
}

/// Returns the number of schedules for a search that does not end with its first finding: `usual`, or a
/// quarter of it in plain `cargo test`.
pub fn share(usual: u64) -> u64 {
    if breadth() == Breadth::Short { usual.div_ceil(4) } else { usual }
}

/// Returns the schedule without anything that excuses an overlap. Every worker renews, so it stops when its
/// lease is over. Faults are removed if they pause a process, change the rate of a clock, or excuse two valid
/// leases: a lock server forgets, or drops a lock early. Under the others no lock may have two holders at
/// once.
pub fn without_excuses(mut schedule: Schedule<Options>) -> Schedule<Options> {
    for worker in &mut schedule.options.workers {
        worker.renew = true;
    }
    let options = schedule.clone();
    schedule.faults.retain(|Fault { what, .. }| {
        let excuses = what.excuses(&LabScene(&options));
        let stops_or_slows = what.downcast_ref::<Pause>().is_some() || what.clock_rate().is_some();
        !stops_or_slows && !excuses.contains(&VerdictKind::TwoValid)
    });
    schedule
}

/// Returns the schedule without excuses, with the first worker cut off from all lock servers for two TTLs as
/// soon as it works under the lock. Its renewals fail, so it must stop in time.
pub fn cut_off_while_working(schedule: Schedule<Options>) -> Schedule<Options> {
    let mut schedule = without_excuses(schedule);
    let worker = schedule.options.workers[0].name.clone();
    for server in schedule.options.servers() {
        let link = Link::new(&worker, &server);
        let cut = Cut { link, both: true, lasts: Some(schedule.options.ttl.times(2)) };
        schedule.faults.push(Fault::new(Trigger::after(&worker, Point::Entered), cut));
    }
    schedule
}
