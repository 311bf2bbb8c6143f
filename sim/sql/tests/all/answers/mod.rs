//! Answers to short scripts, one for each mistake that the engine once made. They are written by hand: what
//! PostgreSQL answers is not recorded for them.

mod queries;
mod tables;
mod transactions;
mod waits;

use crate::driver::{Driver, differences};

/// Runs a script, and compares its answers, but for details, hints, and the names of columns.
fn check(script: &str) {
    let script: Vec<_> = script.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let script = script.join("\n");
    let answered = Driver::default().run(&script);
    let is_column = |cell: &str| {
        cell.rsplit_once(':')
            .is_some_and(|(_, oid)| !oid.is_empty() && oid.bytes().all(|b| b.is_ascii_digit()))
    };
    let is_header =
        |line: &str| line.strip_prefix("| ").is_some_and(|cells| cells.split(" | ").all(is_column));
    let kept: Vec<_> = answered.lines().filter(|line| !line.starts_with("  ") && !is_header(line)).collect();
    let kept = kept.join("\n");
    let differences = differences(&script, &kept);
    assert!(differences.is_empty(), "- is expected, + is answered\n{differences}");
}
