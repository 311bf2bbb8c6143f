//! `compare`: runs every lock system under every class of faults.

use std::path::Path;

use files::Parents;
use lab::compare::{Comparison, cells, compare as run_all, table};

use super::explore::cores;
use super::progress::Progress;
use super::stopwatch::Stopwatch;
use super::{Outcome, interrupt, interrupted, print, wrap, written};

/// Runs `schedules` schedules of each system under each class of faults, prints the table and writes it to
/// `out`, if that is given. Returns false if a verdict has no explanation in its schedule.
pub(crate) fn compare(first: u64, schedules: u64, threads: Option<usize>, out: Option<&Path>) -> Outcome {
    if schedules == 0 {
        return Err("--schedules is 0: give at least 1".into());
    }
    if let Some(out) = out {
        files::try_outputs(&[out], &[], Parents::Exist)?;
    }
    interrupt::watch()?;
    let began = Stopwatch::start();
    let all = cells().count() as u64 * schedules;
    let progress = Progress::new(all, "schedules");
    let comparison = run_all(first, schedules, cores(threads), || {
        progress.inc();
        !interrupted()
    })?;
    progress.finish();
    let note = note(&comparison, all);
    let runs = 2 * comparison.values().map(|cell| cell.schedules).sum::<u64>();
    let (table, legend) = (table::text(&comparison), legend("  "));
    let seconds = began.elapsed().as_secs_f64();
    let printed = print(&format!("{table}\n{legend}\n{runs} runs in {seconds:.1} s\n{note}"));
    if let Some(out) = out {
        files::write(out, page(&comparison, first, schedules) + &note)?;
        written(out);
    }
    printed?;
    Ok(comparison.values().all(|cell| cell.violations == 0))
}

/// Says that the comparison was interrupted, if some of `all` schedules were not run.
fn note(comparison: &Comparison, all: u64) -> String {
    let done: u64 = comparison.values().map(|cell| cell.schedules).sum();
    if !interrupted() || done == all {
        return String::new();
    }
    let text = format!(
        "Interrupted after {done} of {all} schedules: the last rows have fewer than the others, or are missing."
    );
    wrap(&text, 0)
}

/// Formats the page with the table.
fn page(comparison: &Comparison, first: u64, schedules: u64) -> String {
    let about = format!(
        "Each row has {schedules} random schedules of one lock system, with one fault of the class. Each \
         schedule ran twice: with fencing off, and with fencing on."
    );
    format!(
        "# The lock systems, compared\n\n\
         ```\n\
         cargo run --release -- compare --schedules {schedules} --first {first} --out docs/comparison.md\n\
         ```\n\n\
         {}\n{}\n{}",
        wrap(&about, 0),
        table::markdown(comparison),
        legend("- ")
    )
}

/// Formats the meaning of the columns: a line for each, which begins with `mark`.
fn legend(mark: &str) -> String {
    let lines = table::LEGEND.map(|(column, meaning)| wrap(&format!("{mark}{column}: {meaning}"), 2));
    format!("{}\n{}", wrap(table::COUNTS, 0), lines.concat())
}
