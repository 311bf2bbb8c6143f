//! The determinism guard compares the records of two runs of one seed, event by event.

use lab::{Arm, draw, run};
use sim::Report;

/// Returns everything that a run records, as text; a line for each event.
pub fn record(report: &Report) -> String {
    let mut text = Vec::new();
    for event in &report.events {
        event.write_json(&mut text).unwrap();
    }
    String::from_utf8(text).unwrap() + &format!("hash {:016x}, {} commands", report.hash, report.commands)
}

/// Runs both arms of the schedule drawn from `seed`; returns their records.
pub fn trace(seed: u64) -> String {
    let schedule = draw(seed);
    [Arm::Unfenced, Arm::Fenced].map(|arm| record(&run(&schedule, arm, seed).unwrap())).join("\n")
}

/// Panics with the first event that differs, if the records differ.
pub fn assert_same(seed: u64, one: &str, other: &str) {
    if one == other {
        return;
    }
    let (mut left, mut right) = (one.lines(), other.lines());
    // A shorter record differs where it ends.
    let parted = (0..).find_map(|number| match (left.next(), right.next()) {
        (one, other) if one != other => Some((number, one.unwrap_or("(over)"), other.unwrap_or("(over)"))),
        (None, _) => Some((number, "(line ends)", "(line ends)")),
        _ => None,
    });
    let (number, one, other) = parted.unwrap_or_default();
    panic!(
        "seed {seed} gave two traces; the first difference is event {number}:\n{one}\n{other}\n{}",
        super::replay::replay_line("all determinism", seed)
    );
}
