//! `sim::check`: a search inside a user's `cargo test`.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use files::{Parents, try_outputs};

use super::batch;
use super::cause::{Cause, Causes};
use super::exercise::{Allowed, Exercised};
use super::explain::explain;
use super::feedback::Feedback;
use super::kept::{Kept, check_name, to_replay, where_kept};
use super::page;
use super::portfolio::Portfolio;
use super::repeat::{self, difference};
use super::shrink::{RUNS_MAX, shrink};
use crate::faults::Faults;
use crate::sim::{self, Report, Schedule, Strategy, Subject, seed};

/// The number of schedules, unless the test or the environment sets another.
const SCHEDULES: u64 = 1_000;

/// The largest number of trace lines that a failure prints.
const LINES_MAX: usize = 400;

/// The environment variables for a number of seeds. The first one that is set applies.
const SEEDS: [&str; 2] = ["DLOCK_SIM_SEEDS", "SEEDS"];

/// The environment variable for the page of a failing schedule.
const PAGE: &str = "DLOCK_SIM_HTML";

/// Searches for a failure schedule that breaks `subject`, from a test of the same name.
///
/// ```
/// use sim::{Process, Sim};
///
/// // In a function with `#[test]`:
/// sim::check("transfers_are_fenced", |sim: &mut Sim| {
///     sim.process("a", |process: Process| async move { process.point("the code under test") });
/// })
/// .schedules(20)
/// .run();
/// ```
///
/// `SEED=7 cargo test` runs only the schedule of that seed; `SEEDS=10000` runs that many seeds, from `SEED`
/// (or 0) on. `DLOCK_SIM_SEED` and `DLOCK_SIM_SEEDS` take precedence. A failing schedule is shrunk, explained
/// and kept in `sim-regressions/NAME.toml` beside the crate's manifest; later searches replay it first. If it
/// can't be kept, the failure says why, and shows the schedule in any case. Further schedules of the search
/// are kept in `NAME-2.toml` and so on, so no search may have such a name. With the feature `pages`,
/// `DLOCK_SIM_HTML=FILE` draws its run as a page. A search that finds no failure and has checked nothing
/// fails, too: see [`Search::find`].
pub fn check<S: Subject>(name: &str, subject: S) -> Search<S> {
    Search {
        name: name.to_owned(),
        subject,
        schedules: SCHEDULES,
        determinism: false,
        faults: None,
        portfolio: Portfolio::default(),
        folder: PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default())
            .join("sim-regressions"),
        page: std::env::var_os(PAGE).map(PathBuf::from),
        allowed: Allowed::default(),
    }
}

/// A search that [`check`] has set up.
#[must_use = "a search finds nothing until it is run"]
pub struct Search<S> {
    pub(super) name: String,
    subject: S,
    schedules: u64,
    determinism: bool,
    faults: Option<Faults>,
    portfolio: Portfolio,
    folder: PathBuf,
    page: Option<PathBuf>,
    pub(super) allowed: Allowed,
}

/// A schedule that broke the subject, shrunk. Prints the problems, their explanation, the schedule, its trace
/// and the command that replays it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The name of the search.
    pub name: String,
    /// The problems: verdicts that nothing excuses, checks that do not hold, a panic, a difference between
    /// two runs.
    pub problems: Vec<String>,
    /// The course of the failure, and the lengths of its faults with which the schedule still breaks: see
    /// [`Explanation`](super::Explanation). Empty for a second run that differs.
    pub explanation: String,
    /// The shrunk schedule, as TOML.
    pub schedule: String,
    /// The trace of its run, one line per event.
    pub trace: String,
    /// The command that replays it, and the file that keeps it, or the reason why it could not be kept.
    pub replay: String,
}

/// The problems with one schedule.
struct Breakage {
    problems: Vec<String>,
    /// The cause of the first violation, if there is one.
    cause: Option<Cause>,
    trace: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:", self.name)?;
        for problem in &self.problems {
            writeln!(f, "  {problem}")?;
        }
        if !self.explanation.is_empty() {
            write!(f, "\n{}", self.explanation)?;
        }
        let lines: Vec<&str> = self.trace.lines().collect();
        writeln!(f, "\n{}\n{}", self.schedule, lines[..lines.len().min(LINES_MAX)].join("\n"))?;
        if lines.len() > LINES_MAX {
            writeln!(f, "… {} lines more", lines.len() - LINES_MAX)?;
        }
        write!(f, "\n{}", self.replay)
    }
}

impl<S: Subject> Search<S> {
    /// Sets the number of schedules, unless the environment sets another. Default 1000.
    pub fn schedules(mut self, schedules: u64) -> Self {
        self.schedules = schedules;
        self
    }

    /// Runs each schedule twice, and fails with the first event that differs.
    pub fn check_determinism(mut self) -> Self {
        self.determinism = true;
        self
    }

    /// Draws only faults of these kinds, such as `Faults::default().only(&["pause", "step"])`.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = Some(faults);
        self
    }

    /// Draws the faults of all schedules by this strategy. Default: all strategies in turns.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.portfolio = Portfolio::only(strategy);
        self
    }

    /// Sets the folder in which failing schedules are kept. Default: `sim-regressions` beside the manifest.
    pub fn keep_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Draws the run of a failing schedule as a page of HTML, in this file. Default: the file that the
    /// environment variable `DLOCK_SIM_HTML` names, if it is set.
    #[cfg(feature = "pages")]
    pub fn html(mut self, file: impl Into<PathBuf>) -> Self {
        self.page = Some(file.into());
        self
    }

    /// Replays the kept schedules, then draws and runs others. If none fails, prints what the runs have
    /// exercised (`cargo test` shows it with `--nocapture`).
    ///
    /// # Panics
    ///
    /// If a schedule fails: a verdict that nothing in it excuses, a check that does not hold, a panic of
    /// the code under test, or a second run that differs. The message shows the schedule, its trace and the
    /// command that replays it. Also if the search has [checked nothing](Search::find), or if its name, the
    /// environment or a kept file can't be used.
    pub fn run(self) {
        match self.checked() {
            Ok((None, exercised)) => println!("{}: {exercised}", self.name),
            Ok((Some(failure), _)) => panic!("{failure}"),
            Err(problem) => panic!("{problem}"),
        }
    }

    /// Searches as [`Search::run`] does, and returns the first schedule that fails.
    ///
    /// # Errors
    ///
    /// The problem with the name, with the environment, with a kept file or its folder, or with the world
    /// that the subject builds. If no schedule fails, also the reasons why the search has checked nothing: no
    /// process entered a section or passed a point, a server refused a command as unknown, or a section or a
    /// [key](crate::Sim::key) matches no lock.
    ///
    /// # Example
    ///
    /// ```
    /// use sim::{Process, Sim};
    ///
    /// let broken = |sim: &mut Sim| {
    ///     sim.process("a", |process: Process| async move { process.always("never true", false) });
    /// };
    /// # let folder = std::env::temp_dir().join(format!("sim-doc-{}", std::process::id()));
    /// let failure = sim::check("broken", broken).schedules(1).keep_in(&folder).find()?;
    /// assert!(failure.is_some_and(|failure| failure.problems[0].starts_with("never true")));
    /// # std::fs::remove_dir_all(folder).ok();
    /// # Ok::<(), String>(())
    /// ```
    pub fn find(&self) -> Result<Option<Failure>, String> {
        self.checked().map(|(failure, _)| failure)
    }

    pub(super) fn search(&self, exercised: &mut Exercised) -> Result<Option<Failure>, String> {
        check_name(&self.name)?;
        let seed = seed::of_environment()?;
        let seeds = self.seeds(seed)?;
        let kept = to_replay(&self.folder, &self.name)?;
        if let Some(page) = &self.page {
            let inputs: Vec<&Path> = kept.iter().map(PathBuf::as_path).collect();
            try_outputs(&[page], &inputs, Parents::Exist)
                .map_err(|error| format!("{}: {error}", self.name))?;
        }
        if seed.is_none()
            && let Some(failure) = self.replay_kept(&kept)?
        {
            return Ok(Some(failure));
        }
        let survey = sim::survey_run(&self.subject)
            .map_err(|error| format!("{}: its world can't be run even without faults: {error}", self.name))?;
        exercised.add(&survey);
        let mut feedback = Feedback::new(sim::points_of(&survey), &self.portfolio, self.faults.as_ref());
        let mut learning = feedback.learning();
        let first = seeds.start;
        for seeds in batch::of(seeds) {
            for seed in seeds {
                let (schedule, _) = feedback.draw(&self.subject, seed).map_err(|error| {
                    format!("{}: seed {seed} draws a schedule that can't be run: {error}", self.name)
                })?;
                let learn = |report: &Report| {
                    exercised.add(report);
                    learning.learn(&schedule, report, &feedback.describe(report));
                };
                if let Some(broken) = self.runs_broken(&schedule, learn)? {
                    return Ok(Some(self.told(schedule, broken, first, seed)));
                }
            }
            feedback.take(&mut learning);
        }
        Ok(None)
    }

    /// Returns the seeds to run, from `seed` or 0 on. An error if there is none.
    fn seeds(&self, seed: Option<u64>) -> Result<Range<u64>, String> {
        let count = seed::number(&SEEDS)?.unwrap_or(if seed.is_some() { 1 } else { self.schedules });
        let first = seed.unwrap_or(0);
        let end = first.saturating_add(count);
        if count == 0 {
            let [_, seeds] = SEEDS;
            let problem = format!("a search of 0 schedules checks nothing: set {seeds} to 1 or more");
            return Err(format!("{}: {problem}", self.name));
        }
        if end == first {
            return Err(format!("{}: SEED={first} leaves no seed: give a smaller one", self.name));
        }
        Ok(first..end)
    }

    /// Keeps and shrinks the schedule that broke the subject. It was drawn from `seed`, in a search from
    /// `first` on.
    fn told(&self, schedule: Schedule<S::Options>, broken: Breakage, first: u64, seed: u64) -> Failure {
        // A schedule that continues an earlier one can be drawn only by the search that led to it.
        let count = seed - first + 1;
        let (seeds, why) = if schedule.rekey.is_empty() {
            (format!("SEED={seed}"), "")
        } else {
            (format!("SEED={first} SEEDS={count}"), ", since it continues earlier schedules")
        };
        let text = schedule.to_toml();
        // Printed and kept before it is shrunk, in case the search is stopped meanwhile.
        eprintln!("{}: {} with {seeds}:\n\n{text}", self.name, broken.problems.join("; "));
        let drawn = Kept::new(&self.folder, &self.name, &text);
        let (failure, runs) = self.shrunk(schedule, broken);
        let kept = where_kept(drawn, &failure.schedule);
        let page = self.draw(&failure.schedule);
        let replay = format!(
            "shrunk in {runs} runs; as it was drawn: {seeds} cargo test {}{why}\n{kept}\n{page}",
            self.name
        );
        Failure { replay, ..failure }
    }

    /// Replays these kept schedules; returns the first that fails.
    fn replay_kept(&self, kept: &[PathBuf]) -> Result<Option<Failure>, String> {
        for path in kept {
            let schedule = sim::load(&self.subject, path).map_err(|error| error.to_string())?;
            if let Some(broken) = self.breaks(&schedule)? {
                let failure = self.failure(&schedule, broken);
                let page = self.draw(&failure.schedule);
                let replay =
                    format!("it is kept in {}; delete the file to forget it\n{page}", path.display());
                return Ok(Some(Failure { replay, ..failure }));
            }
        }
        Ok(None)
    }

    /// Draws the page of the schedule with this text, if a page is asked for. Returns a line with its file,
    /// or with the reason why there is none.
    fn draw(&self, text: &str) -> String {
        let Some(file) = &self.page else { return page::NOT_ASKED_FOR.to_owned() };
        match page::page(&self.subject, &self.name, text).map(|html| files::write(file, html)) {
            Ok(Ok(())) => format!("drawn in {}\n", file.display()),
            Ok(Err(error)) => format!("no page: {error}\n"),
            Err(problem) => format!("no page: {problem}\n"),
        }
    }

    /// Shrinks the schedule that broke the subject, if it has a cause. Returns the number of runs, too.
    fn shrunk(&self, schedule: Schedule<S::Options>, broken: Breakage) -> (Failure, u32) {
        let Some(cause) = broken.cause.clone() else { return (self.failure(&schedule, broken), 0) };
        let mut shrunk = shrink(&self.subject, &schedule, &cause, RUNS_MAX);
        shrunk.schedule.about = cause.name_in(&format!("{}, then shrunk.", schedule.about));
        // A subject that remembers earlier runs may not break this time, or not even run.
        let again = self.breaks(&shrunk.schedule).ok().flatten().unwrap_or(broken);
        let broken = Breakage { cause: Some(cause), ..again };
        (self.failure(&shrunk.schedule, broken), shrunk.runs)
    }

    /// Explains the schedule that broke the subject.
    fn failure(&self, schedule: &Schedule<S::Options>, broken: Breakage) -> Failure {
        let explanation = broken.cause.and_then(|cause| explain(&self.subject, schedule, &cause));
        Failure {
            name: self.name.clone(),
            problems: broken.problems,
            explanation: explanation.map_or_else(String::new, |explanation| explanation.to_string()),
            schedule: schedule.to_toml(),
            trace: broken.trace,
            replay: String::new(),
        }
    }

    /// Runs the schedule, and returns its problems, if there are any.
    fn breaks(&self, schedule: &Schedule<S::Options>) -> Result<Option<Breakage>, String> {
        self.runs_broken(schedule, |_| {})
    }

    /// Runs the schedule, passes the report of its run to `learn`, and returns the problems, if there are
    /// any.
    fn runs_broken(
        &self,
        schedule: &Schedule<S::Options>,
        learn: impl FnOnce(&Report),
    ) -> Result<Option<Breakage>, String> {
        let run = sim::run(&self.subject, schedule);
        let cause = Causes::of(&self.subject, schedule, &run).violation_of(&schedule.about);
        let report = match run {
            Ok(report) => report,
            Err(error) => {
                return match error.trace() {
                    Some(trace) => {
                        let (problems, trace) = (vec![error.to_string()], trace.to_owned());
                        Ok(Some(Breakage { problems, cause, trace }))
                    }
                    None => Err(format!("{}: {error}\n\n{}", self.name, schedule.to_toml())),
                };
            }
        };
        learn(&report);
        let mut problems = self.problems(schedule, &report);
        if self.determinism {
            let again = sim::run(&self.subject, schedule).map_err(|error| error.to_string())?;
            let difference = difference(&report, &again);
            let cause = || repeat::cause(&self.subject, schedule);
            problems.extend(difference.map(|difference| format!("{difference}\n  {}", cause())));
        }
        let trace = if problems.is_empty() { String::new() } else { report.trace() };
        Ok((!problems.is_empty()).then_some(Breakage { problems, cause, trace }))
    }

    fn problems(&self, schedule: &Schedule<S::Options>, report: &Report) -> Vec<String> {
        let excused = self.subject.excused(schedule);
        let verdicts = report.verdicts.iter().filter(|verdict| !excused.contains(&verdict.kind));
        let verdicts =
            verdicts.map(|verdict| format!("{} at {}: {}", verdict.kind, verdict.at, verdict.detail));
        verdicts.chain(report.findings.iter().map(ToString::to_string)).collect()
    }
}
