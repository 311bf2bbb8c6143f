//! `explore`: random schedules in search of a violation, and the tally that the demonstration shows too.

use std::fmt::Write;
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use resource::audit::VerdictKind as Verdict;
use sim::explore::{Found, Tally, Violation};
use sim::lab::{Arm, Lab, Options, System, run};

use super::stopwatch::Stopwatch;
use super::{Outcome, arm_name, print, probes, replay, wrap};

/// Runs `seeds` schedules from `first` on, of `system` alone if one is given. Not as expected if one breaks a
/// promise, or with `must_meet` if a probe is unmet.
pub(crate) fn explore(
    system: Option<System>,
    first: u64,
    seeds: u64,
    threads: Option<usize>,
    must_meet: bool,
    out: &Path,
) -> Outcome {
    if seeds == 0 {
        return Err("a search through no schedules finds nothing: give --seeds at least 1".into());
    }
    let began = Stopwatch::start();
    let bar = bar(seeds);
    let end = first.saturating_add(seeds);
    let arms = Lab::arms().map(|lab| match system {
        Some(system) => lab.drawing(system),
        None => lab,
    });
    let Found { tally, violations } = sim::explore::explore(&arms, first..end, cores(threads), |tally| {
        show(&bar, tally);
        true
    })?;
    bar.finish_and_clear();
    print(&table(&tally, began.elapsed().as_secs_f64()))?;
    for violation in &violations {
        report(violation, out)?;
    }
    print(&probes::list(&tally.probes))?;
    let is_unmet = must_meet && probes::has_unmet(&tally.probes)?;
    Ok(violations.is_empty() && !is_unmet)
}

/// How many threads to use.
pub(crate) fn cores(threads: Option<usize>) -> usize {
    threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// A progress bar over so many schedules; it hides itself where there is no terminal.
pub(crate) fn bar(length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} schedules, {msg}") {
        bar.set_style(style);
    }
    bar
}

/// Shows how far the search is.
pub(crate) fn show(bar: &ProgressBar, tally: &Tally) {
    // Not at every schedule: the terminal is slower than the simulation.
    if tally.schedules.is_multiple_of(64) {
        bar.set_position(tally.schedules);
        bar.set_message(format!("{} violations", tally.violations));
    }
}

/// Why the table may show verdicts above a count of no violations.
const EXCUSED: &str = "A verdict that its schedule explains is no violation: overlap always; without fencing, all that fencing \
     prevents; with it, late_write and lost_update where a worker reads without its token, which claims nothing; and what \
     follows where a fault takes a server's memory or sets its clock.";

/// How many runs had each verdict, with fencing off and on.
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

/// Saves a violation as a schedule, and prints its trace and the command that replays it.
fn report(violation: &Violation<Options>, out: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let failed =
        |error: std::io::Error| format!("{}: {error}; choose another folder with --out", out.display());
    std::fs::create_dir_all(out).map_err(failed)?;
    let arm = violation.arm.parse::<Arm>()?;
    let fence = if arm == Arm::Fenced { "on" } else { "off" };
    let seed = violation.schedule.seed;
    let path = out.join(format!("seed-{}-{fence}.toml", seed));
    std::fs::write(&path, violation.schedule.to_toml()).map_err(failed)?;
    let kinds: Vec<String> = violation.broken.iter().map(ToString::to_string).collect();
    let run = run(&violation.schedule, arm, seed)?;
    print(&format!(
        "\nviolation: {} with fencing {fence}, seed {}\n\n{}\n{}\n{}\nreplay it: cargo run --release -- replay {}\n",
        kinds.join(", "),
        seed,
        violation.schedule.to_toml(),
        run.trace(),
        replay::summary(&run),
        path.display()
    ))?;
    Ok(())
}
