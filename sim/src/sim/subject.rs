//! The subject of a search: it draws its options from a seed and builds a world from them.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use history::VerdictKind;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::builder::Sim;
use super::cast::Points;
use super::core;
use super::error::RunError;
use super::point;
use super::report::Report;
use super::schedule::{Schedule, ScheduleError};
use super::steps::Step;
use super::strategy::{Material, Strategy};
use crate::entropy::{Entropy, Site};
use crate::faults::{Action, Fault, Faults, Role, Scene};
use crate::field_path::Invalid;
use crate::span::Span;
use crate::world::look_ups::LOOKS_UP;

/// A system that can be run under failure schedules. A closure from `&mut Sim` is one, without options.
///
/// # Example
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use sim::{Draw, Invalid, Process, Sim, Subject};
///
/// struct Workers;
///
/// /// The part of a schedule file that is this subject's own.
/// #[derive(Clone, PartialEq, Serialize, Deserialize)]
/// struct Options {
///     workers: u64,
/// }
///
/// impl Subject for Workers {
///     type Options = Options;
///
///     fn draw(&self, from: &mut Draw) -> Options {
///         Options { workers: 2 + from.below("workers", 3) }
///     }
///
///     fn build(&self, options: &Options, sim: &mut Sim) -> Result<(), Invalid> {
///         for number in 0..options.workers {
///             let name = format!("worker-{number}");
///             sim.process(&name, |process: Process| async move { process.point("working") });
///         }
///         Ok(())
///     }
/// }
///
/// sim::check("workers", Workers).schedules(10).run();
/// ```
pub trait Subject: Sync {
    /// The settings of a run beyond the faults, as a schedule file holds them.
    type Options: Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync;

    /// Returns the name of this arm. The arms of an experiment are subjects that take the same schedules and
    /// run or judge them differently.
    fn arm(&self) -> &'static str {
        ONLY_ARM
    }

    /// Returns the names of all arms, for which a schedule file may have expectations.
    fn arms(&self) -> &'static [&'static str] {
        &[ONLY_ARM]
    }

    /// Draws the options of one run.
    fn draw(&self, from: &mut Draw) -> Self::Options;

    /// Adds the processes, servers, rules and checks of these options to `sim`. The schedule sets seed,
    /// network, limit and faults afterwards; the values set here are their defaults.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the option that can't be used.
    fn build(&self, options: &Self::Options, sim: &mut Sim) -> Result<(), Invalid>;

    /// Returns simpler options, for shrinking, those that leave out most first. Each must be smaller in the
    /// same sense, so that none leads back to `options`. Options from which no world can be built are
    /// skipped. Default: none.
    fn smaller(&self, options: &Self::Options) -> Vec<Self::Options> {
        let _ = options;
        Vec::new()
    }

    /// Returns the task of the process, if processes of its role have different tasks: two failures have one
    /// cause only if the processes in them have the same tasks. Default: none.
    fn task(&self, options: &Self::Options, process: &str) -> Option<String> {
        let _ = (options, process);
        None
    }

    /// Draws a schedule: the options, and faults of the processes, servers and links of the world by the
    /// strategy of `from`. All of these faults heal by themselves. One schedule in four of a world with a
    /// [quorum](Sim::quorum) has a [core phase](super::CorePhase).
    ///
    /// # Errors
    ///
    /// [`Invalid`] if no world can be built from the drawn options.
    fn schedule(&self, from: &mut Draw) -> Result<Schedule<Self::Options>, Invalid>
    where
        Self: Sized,
    {
        let options = self.draw(from);
        let mut sim = Sim::new(from.seed());
        self.build(&options, &mut sim)?;
        let mut schedule = Schedule::of(&sim, options);
        schedule.about = from.about();
        let known = from.faults.clone().unwrap_or_else(|| self.faults());
        sim.cast.points = Arc::clone(&from.points);
        let faults = from.faults(&known, sim.scene(), &|| steps(self, &schedule));
        // A limit to certain kinds holds for all faults, and the core phase has faults of other kinds.
        if from.faults.is_none() && !sim.quorums.is_empty() {
            let (clients, latest) = (sim.scene().with_role(Role::Client), sim.scene().scale().times(4));
            schedule.core = core::draw(&mut from.site("core"), &sim.quorums, &clients, latest);
        }
        for fault in faults {
            if schedule.core.as_ref().is_some_and(|core| !core.allows(&fault)) {
                continue;
            }
            sim.fault(fault);
            // Leaves out a fault that can't be added, such as a second promotion. This changes no other
            // fault.
            if sim.check_faults().is_err() {
                sim.faults.pop();
            }
        }
        schedule.faults.clone_from(&sim.faults);
        Ok(schedule)
    }

    /// Checks a schedule against the world that was built from it. Default: the parts common to all subjects,
    /// and the faults.
    ///
    /// # Errors
    ///
    /// [`Invalid`] for the first rule that it breaks.
    fn check(&self, schedule: &Schedule<Self::Options>, sim: &Sim) -> Result<(), Invalid> {
        schedule.check_shared(self.arms())?;
        sim.check_faults()
    }

    /// Returns the verdicts that the schedule explains; no search reports them. Default: those that its
    /// faults excuse, and `overlap`, which every lock that expires allows under a long pause. A check can
    /// still forbid overlaps ([`no`](super::no)).
    fn excused(&self, schedule: &Schedule<Self::Options>) -> BTreeSet<VerdictKind> {
        let mut sim = Sim::new(schedule.seed);
        // Ignored: options from which no world can be built give no verdict either.
        let _ = self.build(&schedule.options, &mut sim);
        let faults = schedule.faults.iter().flat_map(|fault| fault.what.excuses(&sim.cast));
        let outside = schedule.core.iter().flat_map(|core| core.crashes());
        let outside = outside.flat_map(|crash| crash.excuses(&sim.cast));
        faults.chain(outside).chain([VerdictKind::Overlap]).collect()
    }

    /// Returns the time at which a run of the schedule ends at the latest, once its faults are drawn.
    /// Default: the schedule's limit.
    fn limit(&self, schedule: &Schedule<Self::Options>) -> Span {
        schedule.limit
    }

    /// Returns the kinds of faults that a schedule file may name. Default: those of the simulator.
    fn faults(&self) -> Faults {
        Faults::default()
    }
}

/// The arm of a subject with only one.
const ONLY_ARM: &str = "run";

/// Returns the points, in order, that a run of the schedule passes before its core phase; none if it can't be
/// run. Faults can be aimed at them.
pub fn steps<S: Subject>(subject: &S, schedule: &Schedule<S::Options>) -> Vec<Step> {
    let Ok(mut sim) = build(subject, schedule) else { return Vec::new() };
    sim.record_steps();
    let mut steps = sim.run().map(|report| report.steps).unwrap_or_default();
    // No fault strikes in the core phase.
    let end = schedule.core.as_ref().map_or(u64::MAX, |core| core.at.as_nanos());
    steps.retain(|step| step.at < end);
    steps
}

/// The options of a subject that has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoOptions {}

impl<F: Fn(&mut Sim) + Sync> Subject for F {
    type Options = NoOptions;

    fn draw(&self, _: &mut Draw) -> NoOptions {
        NoOptions {}
    }

    fn build(&self, _: &NoOptions, sim: &mut Sim) -> Result<(), Invalid> {
        self(sim);
        Ok(())
    }
}

/// A source of options from a seed, each from its own stream: adding or removing one changes no other.
#[derive(Clone, Debug)]
pub struct Draw {
    seed: u64,
    entropy: Entropy,
    /// The points at which faults may be aimed.
    points: Arc<Points>,
    /// The kinds of faults to draw; `None` for all kinds of the subject.
    faults: Option<Faults>,
    strategy: Strategy,
}

impl Draw {
    /// Returns a source of draws from `seed`.
    pub fn new(seed: u64) -> Self {
        Self::surveyed(seed, &Arc::default())
    }

    /// Returns a source of draws from `seed`, with points at which faults may be aimed.
    pub(crate) fn surveyed(seed: u64, points: &Arc<Points>) -> Self {
        let strategy = Strategy::Uniform;
        Self { seed, entropy: Entropy::new(seed), points: Arc::clone(points), faults: None, strategy }
    }

    /// Draws the faults by this strategy. Default: [`Strategy::Uniform`].
    #[must_use]
    pub fn by(self, strategy: Strategy) -> Self {
        Self { strategy, ..self }
    }

    /// Returns the `about` of a drawn schedule.
    pub fn about(&self) -> String {
        match self.strategy {
            Strategy::Uniform => format!("drawn from seed {}", self.seed),
            strategy => format!("drawn from seed {}, {strategy}", self.seed),
        }
    }

    /// Draws faults of the kinds in `known` by the strategy. The caller drops those that don't suit the
    /// schedule. `steps` runs the schedule without faults.
    pub fn faults(&self, known: &Faults, scene: &dyn Scene, steps: &dyn Fn() -> Vec<Step>) -> Vec<Fault> {
        self.strategy.faults(&Material { known, scene, site: &|name| self.site(name), steps })
    }

    /// Limits the faults to these kinds.
    pub(crate) fn with_faults(self, faults: Option<&Faults>) -> Self {
        Self { faults: faults.cloned(), ..self }
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the stream called `name`, from its beginning.
    pub fn site(&self, name: &str) -> Site {
        self.entropy.site(&format!("draw: {name}"))
    }

    /// Draws a number from 0 to `limit` - 1.
    pub fn below(&mut self, name: &str, limit: u64) -> u64 {
        self.site(name).below(limit)
    }

    /// Draws a duration between `min` and `max`, in whole milliseconds, both ends included.
    pub fn duration(&mut self, name: &str, min: Duration, max: Duration) -> Duration {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(self.site(name).range_nanos(millis(min), millis(max)))
    }

    /// Draws true with the probability `p`.
    pub fn chance(&mut self, name: &str, p: f64) -> bool {
        self.site(name).chance(p)
    }

    /// Draws one of `choices`; returns `None` if there are none.
    pub fn one_of<'a, T>(&mut self, name: &str, choices: &'a [T]) -> Option<&'a T> {
        choices.get(self.below(name, choices.len() as u64) as usize)
    }
}

/// Returns the points that each process passes in the world of seed 0 without faults, so that random faults
/// are aimed at points that occur.
///
/// # Errors
///
/// [`RunError`] if that world can't be built or run.
pub fn survey<S: Subject>(subject: &S) -> Result<Arc<Points>, RunError> {
    survey_run(subject).map(|report| points_of(&report))
}

/// Runs the world of seed 0 without faults.
pub(crate) fn survey_run<S: Subject>(subject: &S) -> Result<Report, RunError> {
    let mut from = Draw::new(0);
    let options = subject.draw(&mut from);
    let mut sim = Sim::new(0);
    subject.build(&options, &mut sim)?;
    sim.run()
}

/// Returns the points that each process passed in a run.
pub(crate) fn points_of(report: &Report) -> Arc<Points> {
    let mut points = Points::new();
    let mut pass = |process: &str, point: &str| {
        let passed = points.entry(process.to_owned()).or_default();
        if !passed.iter().any(|known| known == point) {
            passed.push(point.to_owned());
        }
    };
    for event in &report.events {
        if let Some(point) = point::of(&event.kind) {
            pass(event.process.as_str(), point);
        }
    }
    for (process, host) in &report.look_ups {
        pass(process, &[LOOKS_UP, host].concat());
    }
    Arc::new(points)
}

/// Builds the world of a schedule.
///
/// # Errors
///
/// [`Invalid`] with the place in the schedule that can't be used.
pub fn build<S: Subject>(subject: &S, schedule: &Schedule<S::Options>) -> Result<Sim, Invalid> {
    let mut sim = Sim::new(schedule.seed);
    subject.build(&schedule.options, &mut sim)?;
    schedule.apply(&mut sim);
    subject.check(schedule, &sim)?;
    sim.check_core()?;
    sim.is_checked = true;
    Ok(sim)
}

/// Runs a schedule of the subject.
///
/// # Errors
///
/// [`RunError`] if it can't be built, or if code in it panics.
pub fn run<S: Subject>(subject: &S, schedule: &Schedule<S::Options>) -> Result<Report, RunError> {
    build(subject, schedule)?.run()
}

/// Reads a schedule file of the subject from its text, and checks it. Errors call it `file`.
///
/// # Errors
///
/// [`ScheduleError::Invalid`] with the line, if the text is no TOML, has an unknown field or name, or
/// [`Subject::check`] refuses it.
pub fn parse<S: Subject>(subject: &S, file: &str, text: &str) -> Result<Schedule<S::Options>, ScheduleError> {
    let schedule = Schedule::read(file, text, &subject.faults())?;
    match build(subject, &schedule) {
        Ok(_) => Ok(schedule),
        Err(error) => Err(ScheduleError::of(file, text, &error)),
    }
}

/// Reads a schedule file of the subject.
///
/// # Errors
///
/// [`ScheduleError::Read`] if the file can't be read, else as [`parse`].
pub fn load<S: Subject>(subject: &S, path: &Path) -> Result<Schedule<S::Options>, ScheduleError> {
    let file = path.display().to_string();
    match read(path) {
        Ok(text) => parse(subject, &file, &text),
        Err(source) => Err(ScheduleError::Read { file, source }),
    }
}

/// The size limit of a schedule file, in bytes. Real ones, written by people or saved by searches, have a few
/// thousand.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

fn read(path: &Path) -> io::Result<String> {
    let bytes = std::fs::metadata(path)?.len();
    if bytes > FILE_BYTES_MAX {
        let problem = format!("the file has {bytes} bytes, and a schedule at most {FILE_BYTES_MAX}");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    std::fs::read_to_string(path)
}
