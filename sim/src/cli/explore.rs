//! `explore`: searches random schedules for violations. The demonstration uses the same table of counts.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use resource::audit::VerdictKind as Verdict;
use sim::Schedule;
use sim::explore::{Found, RUNS_MAX, Tally, Violation, explain, shrink};
use sim::lab::{Arm, Options, System};
use sim::museum::{Museum, Mutant, run};

use super::stopwatch::Stopwatch;
use super::{Outcome, arm_name, print, replay, wrap};

/// Runs `seeds` schedules from the seed `first` on, of `system` only if it is given, and with the mistake of
/// `mutant` if it is given. Returns false if there is a violation.
pub(crate) fn explore(
    system: Option<System>,
    mutant: Option<Mutant>,
    first: u64,
    seeds: u64,
    threads: Option<usize>,
    out: &Path,
) -> Outcome {
    if seeds == 0 {
        return Err("--seeds is 0: give at least 1".into());
    }
    let began = Stopwatch::start();
    let bar = bar(seeds);
    let end = first.saturating_add(seeds);
    let arms = [Arm::Unfenced, Arm::Fenced].map(|arm| subject(arm, system, mutant));
    let Found { tally, violations } = sim::explore::explore(&arms, first..end, cores(threads), |tally| {
        show(&bar, tally);
        true
    })?;
    bar.finish_and_clear();
    print(&table(&tally, began.elapsed().as_secs_f64()))?;
    for violation in &violations {
        report(violation, out)?;
    }
    Ok(violations.is_empty())
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

/// Explains why the table may show verdicts but no violations.
const EXCUSED: &str = "A verdict that its schedule explains is no violation: overlap, always; without \
     fencing, all that fencing prevents; with fencing, late_write and lost_update if a worker reads without \
     its token and so claims nothing; and the verdicts that follow if a fault erases a server's memory or \
     sets its clock.";

/// Formats the number of runs with each verdict, with fencing off and on.
pub(crate) fn table(tally: &Tally, seconds: f64) -> String {
    let counts = format!(
        "{} random schedules in both arms in {seconds:.1} s ({:.0} runs a second), {} faults, {} commands",
        tally.schedules,
        2.0 * tally.schedules as f64 / seconds.max(1e-9),
        tally.faults,
        tally.commands
    );
    let mut text = wrap(&counts, 0) + "\n";
    let _ = writeln!(text, "{:<18}{:>14}{:>14}", "verdict", arm_name(Arm::Unfenced), arm_name(Arm::Fenced));
    for verdict in Verdict::ALL {
        let count = |arm: Arm| tally.of(arm.name(), verdict);
        let _ = writeln!(
            text,
            "{:<18}{:>14}{:>14}",
            verdict.to_string(),
            count(Arm::Unfenced),
            count(Arm::Fenced)
        );
    }
    let _ = writeln!(text, "\nwrites refused with 409: {}; violations: {}", tally.refused, tally.violations);
    text + &wrap(EXCUSED, 2)
}

fn subject(arm: Arm, system: Option<System>, mutant: Option<Mutant>) -> Museum {
    let museum = system.into_iter().fold(Museum::new(arm), Museum::drawing);
    mutant.into_iter().fold(museum, Museum::with)
}

/// The folder, in that of the shrunk schedules, with the schedules as they were drawn.
const DRAWN: &str = "drawn";

/// Shrinks a violation and saves it as a schedule. Prints it with its explanation, its trace and the command
/// that replays it.
fn report(violation: &Violation<Options>, out: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let arm = violation.arm.parse::<Arm>()?;
    let fence = if arm == Arm::Fenced { "on" } else { "off" };
    let (seed, cause) = (violation.schedule.seed, &violation.cause);
    let name = format!("seed-{seed}-{fence}.toml");
    let drawn = save(&out.join(DRAWN), &name, &violation.schedule)?;
    let subject = Museum::new(arm);
    let mut shrunk = shrink(&subject, &violation.schedule, cause, RUNS_MAX);
    shrunk.schedule.about = format!("{}, then shrunk: {cause}", violation.schedule.about);
    let path = save(out, &name, &shrunk.schedule)?;
    let explanation = explain(&subject, &shrunk.schedule, cause);
    let explanation = explanation.map_or_else(String::new, |explanation| explanation.to_string());
    let run = run(&shrunk.schedule, arm, seed)?;
    print(&format!(
        "\nviolation: {cause}, with fencing {fence}, seed {seed}; shrunk from {} to {} faults in {} runs\n\n\
         {explanation}\n{}\n{}\n{}\nreplay it: cargo run --release -- replay {}\nas it was drawn: {}\n",
        violation.schedule.faults.len(),
        shrunk.schedule.faults.len(),
        shrunk.runs,
        shrunk.schedule.to_toml(),
        run.trace(),
        replay::summary(&run),
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
