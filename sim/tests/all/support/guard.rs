//! The determinism guard: what two runs of one seed recorded, compared event by event.

use sim::Report;
use sim::lab::{Arm, draw, run};

/// Everything that a run records, as text: where it differs is where the runs part.
fn record(report: &Report) -> String {
    let mut text = Vec::new();
    for event in &report.events {
        event.write_json(&mut text).unwrap();
    }
    String::from_utf8(text).unwrap() + &format!("hash {:016x}, {} commands", report.hash, report.commands)
}

/// Both arms of the schedule that `seed` gives.
pub fn trace(seed: u64) -> String {
    let schedule = draw(seed);
    [Arm::Unfenced, Arm::Fenced].map(|arm| record(&run(&schedule, arm, seed).unwrap())).join("\n")
}

/// Fails at the first event that differs.
pub fn assert_same(seed: u64, one: &str, other: &str) {
    if one == other {
        return;
    }
    let (mut left, mut right) = (one.lines(), other.lines());
    // A trace that merely ends earlier differs where it ends.
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
