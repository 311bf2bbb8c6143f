//! `explore`: searches random schedules for violations. The demonstration uses the same table of counts.

mod canary;
mod follow;
mod watchdog;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use history::VerdictKind as Verdict;
use lab::museum::{Museum, Mutant, run};
use lab::{Arm, Options, System};
use sim::Schedule;
use sim::explore::fleet::{BLOCK, Capsule, Shard};
use sim::explore::{Found, Portfolio, Tally, Violation, explain, explore_watched};
use sim::sim::ScheduleError;

use self::follow::Following;
use super::picture::{Pictures, try_files};
use super::progress::Progress;
use super::stopwatch::Stopwatch;
use super::{Outcome, arm_name, interrupt, interrupted, print, probes, replay, wrap, wrap_lines};

/// The subject and the options of a search.
pub(crate) struct Plan {
    /// Schedules of this system only, if it is given.
    pub(crate) system: Option<System>,
    /// The mistake in all locks, or in the resource.
    pub(crate) mutant: Option<Mutant>,
    /// The strategies by which faults are drawn.
    pub(crate) portfolio: Portfolio,
    /// The first seed.
    pub(crate) first: u64,
    /// The largest number of schedules.
    pub(crate) seeds: u64,
    /// The longest time; `None` for as long as it takes.
    pub(crate) longest: Option<Duration>,
    /// The share of the seeds that is searched.
    pub(crate) shard: Shard,
    /// The number of threads; `None` for one for each core.
    pub(crate) threads: Option<usize>,
    /// True if the search stops once it is stable.
    pub(crate) until_stable: bool,
    /// True if a probe that is unmet makes the search fail.
    pub(crate) must_meet: bool,
    /// True if known mistakes are searched for on the way.
    pub(crate) has_canary: bool,
    /// The number of violations that ends the search.
    pub(crate) failures: u64,
    /// The longest real time of one schedule.
    pub(crate) hang: Duration,
    /// The folder for the violations and the summary. Without it violations are saved in [`OUT`], and there
    /// is no summary.
    pub(crate) out: Option<PathBuf>,
    /// The pictures of the first violation.
    pub(crate) pictures: Pictures,
}

/// The folder for violations, unless another is given.
const OUT: &str = "violations";

/// Runs random schedules with fencing on. Returns false if there is a violation, a known mistake that is not
/// found, or a probe that is unmet although it must be met.
pub(crate) fn explore(plan: &Plan) -> Outcome {
    let Plan { first, seeds, shard, must_meet, .. } = plan;
    plan.check()?;
    files::try_folder(&plan.folder())?;
    try_files(&plan.pictures.files(), None)?;
    interrupt::watch()?;
    let began = Stopwatch::start();
    let end = first.saturating_add(*seeds);
    let subject = plan.subject();
    let following = Following::new(plan, began)?;
    let searched = watchdog::over(&following, plan.hang, || {
        explore_watched(
            &[subject],
            shard.seeds(*first..end),
            &plan.portfolio,
            cores(plan.threads),
            &following,
        )
    });
    let Found { tally, violations } = following.end(searched)?;
    print(&table(&tally, &[Arm::Fenced], began.elapsed().as_secs_f64()))?;
    let mut told = BTreeSet::new();
    for violation in &violations {
        // Later ones of the same cause are duplicates.
        if told.insert((violation.arm, &violation.cause)) {
            report(violation, &following.best(violation), &tally, plan)?;
        }
    }
    if let Some(first) = violations.first().filter(|_| plan.pictures.is_wanted()) {
        draw(&following.best(first), first, plan)?;
    }
    print(&probes::list(&tally.probes))?;
    if interrupted() {
        print(&format!("interrupted after {} schedules\n", tally.schedules))?;
    }
    let is_unmet = *must_meet && probes::has_unmet(&tally.probes)?;
    let problems = following.problems();
    problems.iter().try_for_each(|problem| print(&wrap(&format!("problem: {problem}"), 2)))?;
    Ok(violations.is_empty() && !is_unmet && problems.is_empty())
}

impl Plan {
    /// Returns an error for a search that would check nothing.
    fn check(&self) -> Result<(), String> {
        let Self { first, seeds, shard, .. } = self;
        if *seeds == 0 || self.failures == 0 {
            return Err("--seeds and --failures must be at least 1".to_owned());
        }
        let end = first.saturating_add(*seeds);
        if end == *first {
            return Err(format!("--first {first} leaves no seed: give a smaller one"));
        }
        if shard.seeds(*first..end).next().is_none() {
            return Err(format!(
                "--shard {shard} has none of the seeds from {first} to {end}: give more --seeds, since each shard \
                 before it takes {BLOCK}"
            ));
        }
        let (Some(mutant), Some(system)) = (self.mutant, self.system) else { return Ok(()) };
        if !mutant.applies_to(system) {
            let systems: Vec<String> = mutant.systems().iter().map(ToString::to_string).collect();
            return Err(format!(
                "--mutant {mutant} does not apply to --system {system}: give {}, or leave --system out",
                systems.join(" or ")
            ));
        }
        Ok(())
    }

    /// Returns what is searched: the arm that a search judges, since without fencing nothing is promised that
    /// it could find broken.
    fn subject(&self) -> Museum {
        let museum = self.system.into_iter().fold(Museum::new(Arm::Fenced), Museum::drawing);
        self.mutant.into_iter().fold(museum, Museum::with)
    }

    /// Returns the folder for violations.
    fn folder(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| OUT.into())
    }
}

/// The most threads of a search: more than the processors of any machine it runs on.
const THREADS_MAX: u64 = 1024;

/// Parses a number of threads, from 1 to 1024.
pub(crate) fn threads() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=THREADS_MAX)
}

/// Returns the number of threads to use: by default one for each core.
pub(crate) fn cores(threads: Option<usize>) -> usize {
    threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Shows the progress of the search.
pub(crate) fn show(progress: &Progress, tally: &Tally) {
    // Not at every schedule: the terminal is slower than the simulation.
    if tally.schedules == 1 || tally.schedules.is_multiple_of(64) {
        progress.set(tally.schedules, &format!("{} violations", tally.violations));
    }
}

/// Shows the end of the search.
pub(crate) fn show_end(progress: &Progress, tally: &Tally) {
    progress.set(tally.schedules, &format!("{} violations", tally.violations));
    progress.finish();
}

/// Estimates the total number of schedules from the number so far, if a search takes as long as `whole`.
pub(crate) fn estimate(schedules: u64, elapsed: Duration, whole: Duration) -> u64 {
    let share = (elapsed.as_secs_f64() / whole.as_secs_f64().max(1e-9)).clamp(0.001, 1.0);
    ((schedules as f64 / share) as u64).max(schedules)
}

/// The verdicts that a schedule explains.
const EXPLAINED: &str = "Any schedule explains overlap, since no lease excludes it. Without fencing, a schedule \
     explains all that fencing prevents. With fencing, it explains late_write and lost_update if a worker \
     reads without its token and so claims nothing, and the verdicts that follow if a fault erases a \
     server's memory or sets its clock.";

/// Formats the violations first, then the number of runs with each explained verdict and the seed of the
/// first run with it, two columns for each arm.
pub(crate) fn table(tally: &Tally, arms: &[Arm], seconds: f64) -> String {
    let counts = format!(
        "{} random schedules {} in {seconds:.1} s ({:.0} schedules a second), {} runs, {} faults, \
         {} commands",
        tally.schedules,
        if arms.len() == 1 { "with fencing on" } else { "in both arms" },
        tally.schedules as f64 / seconds.max(1e-9),
        tally.runs,
        tally.faults,
        tally.commands
    );
    wrap(&counts, 0) + "\n" + &violated(tally) + &explained(tally, arms) + &states(tally)
}

/// Formats the causes of violations, each with its runs and the seed of the first one.
fn violated(tally: &Tally) -> String {
    let mut text = format!("violations: {}\n", tally.violations);
    for ((arm, cause), seed) in &tally.firsts {
        let runs = tally.causes.get(&(*arm, cause.clone())).copied().unwrap_or_default();
        text += &wrap(&format!("  {cause}: {runs} runs, first with seed {seed}"), 4);
    }
    text
}

/// Formats the number of runs with each verdict that their schedules explain.
fn explained(tally: &Tally, arms: &[Arm]) -> String {
    let row = |name: &str, cell: &dyn Fn(Arm) -> [String; 2]| {
        let cells = arms.iter().flat_map(|arm| cell(*arm)).map(|cell| format!("{cell:>14}"));
        format!("{name:<18}{}\n", cells.collect::<String>())
    };
    let title = "explained by the schedules' own faults, or by fencing that is off (runs):";
    let mut text = format!("\n{title}\n\n");
    text += &row("verdict", &|arm| [arm_name(arm).to_owned(), "first seed".to_owned()]);
    for &verdict in Verdict::ALL {
        if arms.iter().all(|arm| tally.explained(arm.name(), verdict) == 0) {
            continue;
        }
        let first = |arm: Arm| tally.seen_first.get(&(arm.name(), verdict)).map(u64::to_string);
        text += &row(&verdict.to_string(), &|arm| {
            let runs = tally.explained(arm.name(), verdict).to_string();
            [runs, first(arm).unwrap_or_else(|| "-".to_owned())]
        });
    }
    text + &format!("\nwrites refused with 409: {}\n", tally.refused) + &wrap(EXPLAINED, 2)
}

/// Formats the number of states over time.
fn states(tally: &Tally) -> String {
    let growth = tally.growth.iter().map(|(schedules, states)| format!("{states} after {schedules}"));
    let growth: Vec<String> = growth.chain([format!("{} after all", tally.states)]).collect();
    let quiet = format!("nothing new in the last {} batches of 64 schedules", tally.quiet_batches);
    format!("\n{}", wrap(&format!("states: {}; {quiet}", growth.join(", ")), 2))
}

/// Draws the best capsule of a violation.
fn draw(
    capsule: &Capsule,
    violation: &Violation<Options>,
    plan: &Plan,
) -> Result<(), Box<dyn std::error::Error>> {
    let arm = violation.arm.parse::<Arm>()?;
    let path = plan.folder().join(format!("{}.toml", capsule.name));
    let schedule = read(capsule, arm)?;
    let drawn = sim::explore::pictured(&Museum::new(arm), &schedule, arm_name(arm))?;
    plan.pictures.write(&[drawn], &path.display().to_string(), &capsule.schedule)
}

/// Returns the schedule of a capsule. Its files may be gone: the search need not have been the only one in
/// the folder.
fn read(capsule: &Capsule, arm: Arm) -> Result<Schedule<Options>, ScheduleError> {
    sim::sim::parse(&Museum::new(arm), &capsule.name, &capsule.schedule)
}

/// Prints the cause of a violation, and its best capsule with explanation, trace and the command that replays
/// it.
fn report(
    violation: &Violation<Options>,
    capsule: &Capsule,
    tally: &Tally,
    plan: &Plan,
) -> Result<(), Box<dyn std::error::Error>> {
    let arm = violation.arm.parse::<Arm>()?;
    let (seed, cause) = (violation.drawn_from, &violation.cause);
    let path = plan.folder().join(format!("{}.toml", capsule.name));
    let schedule = read(capsule, arm)?;
    // An explanation takes many runs.
    let explained = || explain(&Museum::new(arm), &schedule, cause);
    let explanation = if interrupted() { None } else { explained() };
    let explanation =
        explanation.map_or_else(String::new, |explanation| wrap_lines(&explanation.to_string()));
    let trace = match run(&schedule, arm, schedule.seed) {
        Ok(run) => format!("{}\n{}", run.trace(), replay::summary(&run)),
        Err(error) => format!("{}\n{error}", error.trace().unwrap_or_default()),
    };
    let alike = tally.causes.get(&(violation.arm, cause.clone())).copied().unwrap_or(1);
    let found = format!(
        "violation: {cause}, with {}, in {alike} of {} schedules, first with seed {seed}",
        arm_name(arm),
        tally.schedules
    );
    let is_kept = std::fs::read_to_string(&path).is_ok_and(|kept| kept == capsule.schedule);
    let replay = if is_kept {
        let (path, more) = (path.display(), path.with_extension("json"));
        format!(
            "replay it: cargo run --release -- replay {path}\nas it was drawn, and more: {}",
            more.display()
        )
    } else {
        "NOT KEPT: save the schedule above, and replay it".to_owned()
    };
    print(&format!(
        "\n{}shrunk from {} to {} faults, seed {}\n\n{explanation}\n{}\n{trace}\n{replay}\n",
        wrap(&found, 2),
        capsule.drawn.matches("[[fault]]").count(),
        capsule.faults,
        capsule.seed,
        capsule.schedule,
    ))?;
    Ok(())
}
