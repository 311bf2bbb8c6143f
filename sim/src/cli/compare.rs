//! `compare`: runs every lock system under every class of faults.

use std::path::Path;

use files::Parents;
use sim::compare::{Comparison, cells, compare as run_all, table};

use super::explore::{bar, cores};
use super::stopwatch::Stopwatch;
use super::{Outcome, print, wrap, written};

/// Runs `schedules` schedules of each system under each class of faults, prints the table and writes it to
/// `out`, if that is given. Returns false if a verdict has no explanation in its schedule.
pub(crate) fn compare(first: u64, schedules: u64, threads: Option<usize>, out: Option<&Path>) -> Outcome {
    if schedules == 0 {
        return Err("--schedules is 0: give at least 1".into());
    }
    if let Some(out) = out {
        files::try_outputs(&[out], &[], Parents::Exist)?;
    }
    let began = Stopwatch::start();
    let bar = bar(cells().count() as u64 * schedules);
    let comparison = run_all(first, schedules, cores(threads), || bar.inc(1))?;
    bar.finish_and_clear();
    let runs = 2 * comparison.values().map(|cell| cell.schedules).sum::<u64>();
    print(&table::text(&comparison))?;
    print(&format!("\n{}\n", wrap(table::LEGEND, 0)))?;
    let seconds = began.elapsed().as_secs_f64();
    print(&format!("{runs} runs in {seconds:.1} s\n"))?;
    if let Some(out) = out {
        files::write(out, page(&comparison, first, schedules))?;
        written(out);
    }
    Ok(comparison.values().all(|cell| cell.violations == 0))
}

/// Formats the page with the table.
fn page(comparison: &Comparison, first: u64, schedules: u64) -> String {
    format!(
        "# The comparison\n\n\
         `cargo run --release -- compare --schedules {schedules} --first {first}`: {schedules} random\n\
         schedules in each row, with one fault of the class, each run with fencing off and on.\n\n{}\n{}\n",
        table::markdown(comparison),
        wrap(table::LEGEND, 0)
    )
}
