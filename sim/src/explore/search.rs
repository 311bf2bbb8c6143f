//! The search itself: draws schedules, runs them on all threads, counts, and keeps the violations.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use super::batch;
use super::cause::Cause;
use super::feedback::Feedback;
use super::portfolio::Portfolio;
use super::repeat;
use super::tally::Tally;
use super::violation::{Judged, Violation};
use crate::sim::{self, RunError, Schedule, Subject};

/// The most violations of one cause that a search keeps: those with the lowest seeds.
pub const KEPT_MAX: usize = 4;

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Found<O> {
    /// Counts over all schedules.
    pub tally: Tally,
    /// The violations, in the order of their seeds; of each cause at most [`KEPT_MAX`].
    pub violations: Vec<Violation<O>>,
}

/// The observer of a search: it learns the findings, and decides if the search continues.
///
/// All methods but [`goes_on`](Watch::goes_on) are called on the thread of the schedule, while the other
/// threads continue to search.
pub trait Watch<O>: Sync {
    /// Notes that the schedule, drawn from the seed, is about to be run.
    fn begins(&self, seed: u64, schedule: &Schedule<O>) {
        let _ = (seed, schedule);
    }

    /// Notes the end of the runs of the schedule that began last on this thread.
    fn ended(&self) {}

    /// Notes a violation, even if enough of its cause are kept.
    fn violation(&self, violation: &Violation<O>) {
        let _ = violation;
    }

    /// Returns false to end the search. Called after each schedule, in the order of the seeds, with the
    /// counts so far, while the other threads wait to add theirs.
    fn goes_on(&self, tally: &Tally) -> bool;
}

/// A schedule, its runs in all arms, their number with the repeated one, the number of runs that drew it, and
/// what its last run has reached.
type Judgement<O, T> = (Schedule<O>, Vec<Judged<O>>, (u64, u64), Option<T>);

/// The violations kept so far, by arm and cause.
type Kept<O> = BTreeMap<(&'static str, Cause), Vec<Violation<O>>>;

/// Draws schedules from `seeds` and runs them, as [`explore_watched`] does. Calls `go_on` with the tally
/// after each schedule, and stops when it returns false.
///
/// # Errors
///
/// As [`explore_watched`].
///
/// # Example
///
/// ```
/// # mod overlap { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/overlap.rs")); }
/// # use overlap::turns_by_clock;
/// use sim::explore::{Portfolio, explore};
///
/// // `turns_by_clock` is a function from `&mut Sim`, whose world breaks if `a` is paused in its section.
/// let portfolio = Portfolio::default();
/// let found = explore(&[turns_by_clock], 0..1_000, &portfolio, 1, |tally| tally.violations == 0)?;
/// println!("found after {} schedules: {}", found.tally.schedules, found.violations[0].cause);
/// # Ok::<(), sim::RunError>(())
/// ```
pub fn explore<S: Subject>(
    arms: &[S],
    seeds: Range<u64>,
    portfolio: &Portfolio,
    threads: usize,
    go_on: impl Fn(&Tally) -> bool + Sync,
) -> Result<Found<S::Options>, RunError> {
    explore_watched(arms, seeds, portfolio, threads, &GoOn(go_on))
}

/// A watch that only calls a closure, which decides if the search continues.
struct GoOn<F>(F);

impl<O, F: Fn(&Tally) -> bool + Sync> Watch<O> for GoOn<F> {
    fn goes_on(&self, tally: &Tally) -> bool {
        self.0(tally)
    }
}

/// Draws schedules from `seeds` by the strategies of `portfolio` and runs each in all `arms` (subjects that
/// draw the same schedules), on `threads` threads. Counts them in the order of `seeds`, notifies `watch` of
/// each schedule and violation, and stops when [`Watch::goes_on`] returns false.
///
/// A panic of the code under test is a violation. One schedule in 19 is run a second time in the last arm.
///
/// # Errors
///
/// [`RunError`] if a world can't be built or run, or if a second run differs; the search then ends.
pub fn explore_watched<S: Subject>(
    arms: &[S],
    seeds: impl Iterator<Item = u64> + Send,
    portfolio: &Portfolio,
    threads: usize,
    watch: &impl Watch<S::Options>,
) -> Result<Found<S::Options>, RunError> {
    let (mut tally, mut kept) = (Tally::default(), Kept::new());
    let Some((first, last)) = arms.first().zip(arms.last()) else {
        return Ok(Found { tally, violations: Vec::new() });
    };
    let mut feedback = Feedback::new(sim::survey(first)?, portfolio, None);
    let mut learning = feedback.learning();
    for seeds in batch::of(seeds) {
        let mut left = seeds.len();
        let work = |seed| {
            let (schedule, learning_runs) = feedback.draw(first, seed)?;
            watch.begins(seed, &schedule);
            let runs = arms.iter().map(|arm| Judged::run(arm, &schedule, seed));
            let runs = runs.collect::<Result<Vec<_>, RunError>>()?;
            let report = runs.last().and_then(|run| run.report.as_ref());
            let repeated = report.map(|report| repeat::watch(last, &schedule, seed, report));
            let is_repeated = repeated.transpose()?.unwrap_or_default();
            watch.ended();
            let violations = runs.iter().filter_map(|run| run.violation.as_ref());
            violations.for_each(|violation| watch.violation(violation));
            let traits = report.map(|report| feedback.describe(report));
            let counts = (runs.len() as u64 + u64::from(is_repeated), learning_runs);
            Ok::<_, RunError>((schedule, runs, counts, traits))
        };
        let merge = |(schedule, runs, counts, traits): Judgement<_, _>| {
            tally.schedules += 1;
            tally.runs += counts.0;
            tally.learning_runs += counts.1;
            let report = runs.last().and_then(|run| run.report.as_ref());
            if let Some((report, traits)) = report.zip(traits) {
                tally.has_news |= learning.learn(&schedule, report, &traits);
            }
            for (number, run) in runs.into_iter().enumerate() {
                tally.add(&run, number + 1 == arms.len());
                if let Some(violation) = run.violation {
                    keep(&mut kept, violation);
                }
            }
            left -= 1;
            if left == 0 {
                tally.end_batch(learning.states());
            }
            if watch.goes_on(&tally) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let flow = batch::run(threads, seeds, work, merge)?;
        tally.states = learning.states();
        if flow.is_break() {
            break;
        }
        feedback.take(&mut learning);
    }
    let mut violations: Vec<Violation<S::Options>> = kept.into_values().flatten().collect();
    violations.sort_by_key(|violation| violation.drawn_from);
    Ok(Found { tally, violations })
}

/// Keeps a violation unless enough of its cause with lower seeds are kept. So the result does not depend on
/// the order of the threads.
fn keep<O>(kept: &mut Kept<O>, violation: Violation<O>) {
    let alike = kept.entry((violation.arm, violation.cause.clone())).or_default();
    alike.push(violation);
    alike.sort_by_key(|violation| violation.drawn_from);
    alike.truncate(KEPT_MAX);
}
