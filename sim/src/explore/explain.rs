//! Explains a schedule that fails: the range of each fault that still breaks, the influence of the seed, and
//! one sentence that says what happened.

use std::fmt;

use super::cause::Cause;
use super::sentence::{fault_in_words, sentence};
use super::trial::Trials;
use super::vary::{self, Dial, Part, STEP};
use crate::faults::Length;
use crate::sim::{self, CorePhase, Report, RunError, Schedule, Subject};
use crate::span::Span;

/// The number of seeds that are tried, from 0 on.
pub const SEEDS: u32 = 100;

/// The largest number of runs of an explanation.
const RUNS_MAX: u32 = 1000;

/// The least extension of a run's limit if a length grows, or if the seed changes.
const GRACE: Span = Span::from_secs(10);

/// The longest length that is tried; eight times the length in the schedule is tried, too.
const LONGEST: u64 = Span::from_secs(60).as_nanos();

/// The explanation of a schedule that fails. Prints as some lines.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The cause that is explained.
    pub cause: Cause,
    /// The course of the failure, in one sentence.
    pub sentence: String,
    /// The faults, in the order of the schedule.
    pub faults: Vec<Explained>,
    /// The core phase, if there is one: which processes outside it the failure needs.
    pub core: Option<String>,
    /// The number of the [`SEEDS`] seeds with which the schedule fails with the same cause.
    pub seeds: u32,
    /// The number of runs that the explanation took.
    pub runs: u32,
}

/// A fault, and the lengths with which it still breaks.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The fault, in words.
    pub fault: String,
    /// The range of each of its lengths.
    pub ranges: Vec<Range>,
}

/// The lengths, around that of the schedule, with which the same cause comes about. All else is as in the
/// schedule: see [`varied`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The length that varies.
    pub part: Part,
    /// The shortest; `None` if the shortest possible one still breaks.
    pub from: Option<Length>,
    /// The longest; `None` if the longest one tried still breaks: a minute, or eight times that of the
    /// schedule.
    pub to: Option<Length>,
}

/// Explains why the schedule fails with `cause`. Returns `None` if its run does not show the cause.
///
/// # Example
///
/// ```
/// # mod overlap { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/overlap.rs")); }
/// # use overlap::turns_by_clock;
/// # use sim::explore::{Portfolio, RUNS_MAX, explore, shrink};
/// use sim::explore::explain;
///
/// # let go_on = |tally: &sim::explore::Tally| tally.violations == 0;
/// # let found = explore(&[turns_by_clock], 0..1_000, &Portfolio::default(), 1, go_on)?;
/// # let violation = &found.violations[0];
/// # let shrunk = shrink(&turns_by_clock, &violation.schedule, &violation.cause, RUNS_MAX);
/// let explanation = explain(&turns_by_clock, &shrunk.schedule, &violation.cause).expect("it fails");
/// assert!(explanation.sentence.contains("overlap"));
/// println!("{explanation}");
/// # Ok::<(), sim::RunError>(())
/// ```
pub fn explain<S: Subject>(
    subject: &S,
    schedule: &Schedule<S::Options>,
    cause: &Cause,
) -> Option<Explanation> {
    let (mut trials, run) = Trials::begin(subject, cause, schedule, RUNS_MAX)?;
    let with_messages = recorded(subject, schedule);
    let sentence = sentence(schedule, cause, trials.verdict(schedule, &run), &with_messages);
    let faults = (0..schedule.faults.len()).map(|number| explained(&mut trials, schedule, number)).collect();
    let core = schedule.core.as_ref().map(|core| explained_core(&mut trials, schedule, core));
    let seeds = seeds(&mut trials, schedule);
    Some(Explanation { cause: cause.clone(), sentence, faults, core, seeds, runs: trials.runs })
}

/// Runs the schedule and records its messages: they show whether a waiter kept asking.
fn recorded<S: Subject>(subject: &S, schedule: &Schedule<S::Options>) -> Result<Report, RunError> {
    let mut sim = sim::build(subject, schedule)?;
    sim.record_messages();
    sim.run()
}

/// Returns the schedule with another length in the fault with this number. Its limit grows by twice the
/// growth of the length and ten seconds, so that later events have time to happen. Returns `None` if the
/// fault can't have that length.
pub fn varied<S: Subject>(
    subject: &S,
    schedule: &Schedule<S::Options>,
    number: usize,
    part: &Part,
    length: Length,
) -> Option<Schedule<S::Options>> {
    let fault = schedule.faults.get(number)?;
    let dial = vary::dials(fault).into_iter().find(|dial| dial.part == *part)?;
    let mut varied = schedule.clone();
    varied.faults[number] = vary::turned(&subject.faults(), fault, &dial, length.nanos())?;
    let grown = length.nanos().saturating_sub(dial.length.nanos());
    if grown > 0 {
        varied.limit = varied.limit.plus(Span::from_nanos(grown).times(2)).plus(GRACE);
    }
    Some(varied)
}

fn explained<S: Subject>(
    trials: &mut Trials<'_, S>,
    schedule: &Schedule<S::Options>,
    number: usize,
) -> Explained {
    let fault = &schedule.faults[number];
    let dials = vary::dials(fault).into_iter();
    let ranges = dials.map(|dial| {
        let part = dial.part.clone();
        let mut breaks = |nanos: u64| {
            let length = dial.length.with_nanos(nanos);
            let varied = varied(trials.subject, schedule, number, &part, length);
            varied.is_some_and(|varied| trials.shows(&varied))
        };
        let (from, to) = (shortest(&dial, &mut breaks), longest(&dial, &mut breaks));
        let length = |nanos: u64| dial.length.with_nanos(nanos);
        Range { part, from: from.map(length), to: to.map(length) }
    });
    Explained { fault: fault_in_words(fault), ranges: ranges.collect() }
}

/// Says when the core phase begins, which processes stay broken, and which of them the failure needs.
fn explained_core<S: Subject>(
    trials: &mut Trials<'_, S>,
    schedule: &Schedule<S::Options>,
    core: &CorePhase,
) -> String {
    let mut breaks_with = |core: Option<CorePhase>| trials.shows(&Schedule { core, ..schedule.clone() });
    let mut parts = vec![format!("core from {} on", core.at)];
    for (names, broken) in [(&core.crashed, "crashed"), (&core.cut, "cut off")] {
        for name in names {
            let is_needed = !breaks_with(Some(core.with(name)));
            let needed = if is_needed { "needed" } else { "not needed" };
            parts.push(format!("{name} {broken} for good ({needed})"));
        }
    }
    if breaks_with(None) {
        parts.push("not needed".to_owned());
    }
    parts.join("; ")
}

fn shortest(dial: &Dial, breaks: &mut impl FnMut(u64) -> bool) -> Option<u64> {
    let (least, length) = (dial.least(), dial.length.nanos());
    if length <= least || breaks(least) {
        return None;
    }
    // A shrunk schedule has the shortest length already.
    let next = (length - 1) / STEP * STEP;
    if next <= least || !breaks(next) {
        return Some(length);
    }
    Some(vary::bisect(least, next, breaks))
}

fn longest(dial: &Dial, breaks: &mut impl FnMut(u64) -> bool) -> Option<u64> {
    let mut works = dial.length.nanos();
    let top = LONGEST.max(works.saturating_mul(8));
    while works < top {
        let next = works.saturating_mul(2).max(STEP).min(top);
        if !breaks(next) {
            return Some(vary::bisect(next, works, breaks));
        }
        works = next;
    }
    None
}

fn seeds<S: Subject>(trials: &mut Trials<'_, S>, schedule: &Schedule<S::Options>) -> u32 {
    let limit = schedule.limit.plus(GRACE);
    let breaks = |seed: &u32| {
        let seed = u64::from(*seed);
        trials.shows(&Schedule { seed, limit, ..schedule.clone() })
    };
    u32::try_from((0..SEEDS).filter(breaks).count()).unwrap_or(SEEDS)
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "cause: {}", self.cause)?;
        writeln!(f, "{}", self.sentence)?;
        for fault in &self.faults {
            writeln!(f, "{fault}")?;
        }
        if let Some(core) = &self.core {
            writeln!(f, "{core}")?;
        }
        writeln!(f, "seed: {} of {SEEDS}", self.seeds)
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<String> = self.ranges.iter().map(ToString::to_string).collect();
        write!(f, "{}: {}", self.fault, ranges.join("; "))
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.part)?;
        match (self.from, self.to) {
            (None, None) => f.write_str("any"),
            (Some(from), None) => write!(f, "any from {from} on"),
            (None, Some(to)) if to.nanos() == 0 => f.write_str("at once only"),
            (None, Some(to)) => write!(f, "any up to {to}"),
            (Some(from), Some(to)) if from == to => write!(f, "{from} only"),
            (Some(from), Some(to)) => write!(f, "any from {from} to {to}"),
        }
    }
}
