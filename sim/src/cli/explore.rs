//! `explore`: searches random schedules for violations. The demonstration uses the same table of counts.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use resource::audit::VerdictKind as Verdict;
use sim::Schedule;
use sim::explore::{Found, Portfolio, RUNS_MAX, Tally, Violation, explain, shrink};
use sim::lab::{Arm, Options, System};
use sim::museum::{Museum, Mutant, run};

use super::stopwatch::Stopwatch;
use super::{Outcome, arm_name, print, probes, replay, wrap, wrap_lines};

/// What is searched, and how.
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
    /// The longest time, in seconds; `None` for as long as it takes.
    pub(crate) seconds: Option<u64>,
    /// The number of threads; `None` for one for each core.
    pub(crate) threads: Option<usize>,
    /// True if the search stops once it is stable.
    pub(crate) until_stable: bool,
    /// True if a probe that is unmet makes the search fail.
    pub(crate) must_meet: bool,
    /// The folder for the schedules of the violations.
    pub(crate) out: PathBuf,
}

/// Runs random schedules with fencing on. Returns false if there is a violation, or a probe that is unmet
/// although it must be met.
pub(crate) fn explore(plan: &Plan) -> Outcome {
    let Plan { system, mutant, portfolio, first, seeds, seconds, threads, until_stable, must_meet, out } =
        plan;
    let (first, seeds, threads) = (*first, *seeds, *threads);
    if seeds == 0 {
        return Err("--seeds is 0: give at least 1".into());
    }
    let began = Stopwatch::start();
    let whole = seconds.map(Duration::from_secs);
    let bar = bar(seeds);
    let end = first.saturating_add(seeds);
    // The arm that a search judges: without fencing, nothing is promised that it could find broken.
    let subject = subject(Arm::Fenced, *system, *mutant);
    let Found { tally, violations } =
        sim::explore::explore(&[subject], first..end, portfolio, cores(threads), |tally| {
            if let Some(whole) = whole {
                bar.set_length(estimate(tally.schedules, began.elapsed(), whole).min(seeds));
            }
            show(&bar, tally);
            let is_over = *until_stable && tally.is_stable();
            !is_over && whole.is_none_or(|whole| began.elapsed() < whole)
        })?;
    bar.finish_and_clear();
    print(&table(&tally, &[Arm::Fenced], began.elapsed().as_secs_f64()))?;
    let mut told = BTreeSet::new();
    for violation in &violations {
        // Those of a cause that come later are duplicates.
        if told.insert((violation.arm, &violation.cause)) {
            report(violation, &tally, out)?;
        }
    }
    print(&probes::list(&tally.probes))?;
    let is_unmet = *must_meet && probes::has_unmet(&tally.probes)?;
    Ok(violations.is_empty() && !is_unmet)
}

/// Returns the number of threads to use: by default one for each core.
pub(crate) fn cores(threads: Option<usize>) -> usize {
    threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Creates a progress bar for `length` schedules. It hides itself without a terminal.
pub(crate) fn bar(length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} schedules, {msg}") {
        bar.set_style(style);
    }
    bar
}

/// Shows the progress of the search.
pub(crate) fn show(bar: &ProgressBar, tally: &Tally) {
    // Not at every schedule: the terminal is slower than the simulation.
    if tally.schedules.is_multiple_of(64) {
        bar.set_position(tally.schedules);
        bar.set_message(format!("{} violations", tally.violations));
    }
}

/// Estimates the total number of schedules from the number so far, if a search takes as long as `whole`.
pub(crate) fn estimate(schedules: u64, elapsed: Duration, whole: Duration) -> u64 {
    let share = (elapsed.as_secs_f64() / whole.as_secs_f64().max(1e-9)).clamp(0.001, 1.0);
    ((schedules as f64 / share) as u64).max(schedules)
}

/// Explains why the table may show verdicts but no violations.
const EXCUSED: &str = "A verdict that its schedule explains is no violation: overlap, always; without \
     fencing, all that fencing prevents; with fencing, late_write and lost_update if a worker reads without \
     its token and so claims nothing; and the verdicts that follow if a fault erases a server's memory or \
     sets its clock.";

/// Formats the number of runs with each verdict, a column for each arm.
pub(crate) fn table(tally: &Tally, arms: &[Arm], seconds: f64) -> String {
    let counts = format!(
        "{} random schedules {} in {seconds:.1} s ({:.0} runs a second), {} faults, {} commands",
        tally.schedules,
        if arms.len() == 1 { "with fencing on" } else { "in both arms" },
        arms.len() as f64 * tally.schedules as f64 / seconds.max(1e-9),
        tally.faults,
        tally.commands
    );
    let row = |name: &str, cell: &dyn Fn(Arm) -> String| {
        let cells = arms.iter().map(|arm| format!("{:>14}", cell(*arm)));
        format!("{name:<18}{}\n", cells.collect::<String>())
    };
    let mut text = wrap(&counts, 0) + "\n";
    text += &row("verdict", &|arm| arm_name(arm).to_owned());
    for verdict in Verdict::ALL {
        text += &row(&verdict.to_string(), &|arm| tally.of(arm.name(), verdict).to_string());
    }
    text += &states(tally);
    let _ = writeln!(text, "\nwrites refused with 409: {}; violations: {}", tally.refused, tally.violations);
    text + &wrap(EXCUSED, 2)
}

/// Formats the number of states over time, and the seed of the first violation of each cause.
fn states(tally: &Tally) -> String {
    let growth = tally.growth.iter().map(|(schedules, states)| format!("{states} after {schedules}"));
    let growth: Vec<String> = growth.chain([format!("{} after all", tally.states)]).collect();
    let quiet = format!("nothing new in the last {} batches of 64 schedules", tally.quiet_batches);
    let mut text = format!("\n{}", wrap(&format!("states: {}; {quiet}", growth.join(", ")), 2));
    for ((_, cause), seed) in &tally.firsts {
        text += &wrap(&format!("first with seed {seed}: {cause}"), 2);
    }
    text
}

fn subject(arm: Arm, system: Option<System>, mutant: Option<Mutant>) -> Museum {
    let museum = system.into_iter().fold(Museum::new(arm), Museum::drawing);
    mutant.into_iter().fold(museum, Museum::with)
}

/// The folder, in that of the shrunk schedules, with the schedules as they were drawn.
const DRAWN: &str = "drawn";

/// Shrinks a violation and saves it as a schedule. Prints it with its explanation, its trace and the command
/// that replays it.
fn report(
    violation: &Violation<Options>,
    tally: &Tally,
    out: &Path,
) -> Result<(), Box<dyn std::error::Error>> {
    let arm = violation.arm.parse::<Arm>()?;
    let fence = if arm == Arm::Fenced { "on" } else { "off" };
    let (seed, cause) = (violation.drawn_from, &violation.cause);
    let name = format!("seed-{seed}-{fence}.toml");
    let drawn = save(&out.join(DRAWN), &name, &violation.schedule)?;
    let subject = Museum::new(arm);
    let mut shrunk = shrink(&subject, &violation.schedule, cause, RUNS_MAX);
    shrunk.schedule.about = format!("{}, then shrunk: {cause}", violation.schedule.about);
    let path = save(out, &name, &shrunk.schedule)?;
    let explanation = explain(&subject, &shrunk.schedule, cause);
    let explanation =
        explanation.map_or_else(String::new, |explanation| wrap_lines(&explanation.to_string()));
    let trace = match run(&shrunk.schedule, arm, seed) {
        Ok(run) => format!("{}\n{}", run.trace(), replay::summary(&run)),
        Err(error) => format!("{}\n{error}", error.trace().unwrap_or_default()),
    };
    let alike = tally.causes.get(&(violation.arm, cause.clone())).copied().unwrap_or(1);
    let found = format!(
        "violation: {cause}, with fencing {fence}, in {alike} of {} schedules, first with seed {seed}",
        tally.schedules
    );
    let (faults, left) = (violation.schedule.faults.len(), shrunk.schedule.faults.len());
    print(&format!(
        "\n{}shrunk from {faults} to {left} faults in {} runs\n\n{explanation}\n{}\n{trace}\nreplay it: \
         cargo run --release -- replay {}\nas it was drawn: {}\n",
        wrap(&found, 2),
        shrunk.runs,
        shrunk.schedule.to_toml(),
        path.display(),
        drawn.display()
    ))?;
    Ok(())
}

/// Saves the schedule in the folder, which is created if need be.
fn save(folder: &Path, name: &str, schedule: &Schedule<Options>) -> Result<PathBuf, String> {
    let failed =
        |error: std::io::Error| format!("{}: {error}; choose another folder with --out", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    let path = folder.join(name);
    std::fs::write(&path, schedule.to_toml()).map_err(failed)?;
    Ok(path)
}
