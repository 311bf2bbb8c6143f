//! Formats a comparison as text for a terminal of 80 columns, and as Markdown.

use std::fmt::Write;

use history::VerdictKind as Verdict;

use super::{Comparison, Count};
use crate::Arm;

/// A column: its heading in Markdown, its heading on a terminal in two lines, and its count.
struct Column {
    name: &'static str,
    lines: [&'static str; 2],
    count: Count,
}

/// The columns of the table. A verdict without a column, such as `unfair`, counts in [`Cell::violations`].
const COLUMNS: [Column; 11] = [
    Column::new("overlap", ["over-", "lap"], Count::Verdict(Arm::Fenced, Verdict::Overlap)),
    Column::new(
        "stale writes, fencing off",
        ["stale", "off"],
        Count::Verdict(Arm::Unfenced, Verdict::StaleWrite),
    ),
    Column::new("fencing on", ["", "on"], Count::Verdict(Arm::Fenced, Verdict::StaleWrite)),
    Column::new("refused", ["re-", "fused"], Count::Refused),
    Column::new("token regressed", ["token", "regr."], Count::Verdict(Arm::Fenced, Verdict::TokenRegressed)),
    Column::new("two valid", ["two", "valid"], Count::Verdict(Arm::Fenced, Verdict::TwoValid)),
    Column::new("unheld", ["un-", "held"], Count::Verdict(Arm::Fenced, Verdict::Unheld)),
    Column::new("leaked", ["leak-", "ed"], Count::Verdict(Arm::Fenced, Verdict::Leaked)),
    Column::new("idle", ["", "idle"], Count::Verdict(Arm::Fenced, Verdict::Idle)),
    Column::new("stuck", ["", "stuck"], Count::Verdict(Arm::Fenced, Verdict::Stuck)),
    Column::new("unexplained", ["unex-", "pl."], Count::Unexplained),
];

impl Column {
    const fn new(name: &'static str, lines: [&'static str; 2], count: Count) -> Self {
        Self { name, lines, count }
    }
}

/// Returns the columns: their headings, and what their numbers count.
pub fn columns() -> impl Iterator<Item = (&'static str, Count)> {
    COLUMNS.iter().map(|column| (column.name, column.count))
}

/// The things that the numbers of the table count.
pub const COUNTS: &str = "The columns count runs; `refused` counts writes. `stale writes, fencing off` is about \
     the runs with fencing off, `unexplained` about all runs, every other column about the runs with fencing on.";

/// The meaning of each column.
pub const LEGEND: [(&str, &str); 10] = [
    ("overlap", "two holders at once, which no lock with expiring leases can exclude."),
    ("stale writes", "the resource accepted a write of an older grant."),
    ("refused", "the resource refused a write because of its token."),
    (
        "token regressed",
        "a later grant got no larger token; the schedule let a server lose acknowledged data.",
    ),
    ("two valid", "two leases on one key were valid at once by their holders' own clocks."),
    ("unheld", "a lease was valid by its holder's clock while no server held its key."),
    ("leaked", "an acquisition had ended and left its key behind."),
    ("idle", "the lock was free, and a waiter missed it."),
    ("stuck", "a waiter was not served after all faults had healed."),
    ("unexplained", "nothing in the schedule explains the verdict."),
];

/// Formats the table for a terminal.
pub fn text(comparison: &Comparison) -> String {
    let mut text = String::new();
    for line in 0..2 {
        let headings: String = COLUMNS.iter().map(|column| format!("{:>6}", column.lines[line])).collect();
        let _ = writeln!(text, "{:<14}{headings}", "");
    }
    let mut last = None;
    for ((system, class), cell) in comparison {
        let class = short(class.name);
        if last.replace(system) != Some(system) {
            let _ = writeln!(text, "{system}");
        }
        let counts: String = COLUMNS.iter().map(|column| format!("{:>6}", cell.of(column.count))).collect();
        let _ = writeln!(text, "{class}{counts}");
    }
    text
}

/// Formats the name of a class in 14 columns, indented below its system.
fn short(class: &str) -> String {
    let class = if class.len() > 13 { format!("{class:.12}.") } else { class.to_owned() };
    format!(" {class:<13}")
}

/// Formats the table as Markdown.
pub fn markdown(comparison: &Comparison) -> String {
    let headings: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
    let rule = "---:|".repeat(COLUMNS.len());
    let mut text = format!("| system | faults | {} |\n|---|---|{rule}\n", headings.join(" | "));
    for ((system, class), cell) in comparison {
        let counts: Vec<_> = COLUMNS.iter().map(|column| cell.of(column.count).to_string()).collect();
        let _ = writeln!(text, "| {system} | {class} | {} |", counts.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::System;
    use crate::compare::Cell;

    #[test]
    fn both_forms_have_a_row_for_each_cell() {
        let cells = crate::compare::cells().map(|cell| (cell, Cell { refused: 1234, ..Cell::default() }));
        let comparison: Comparison = cells.collect();
        let systems: BTreeSet<_> = comparison.keys().map(|(system, _)| system).collect();
        let (text, markdown) = (text(&comparison), markdown(&comparison));
        assert_eq!(text.lines().count(), comparison.len() + systems.len() + 2);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(markdown.lines().count(), comparison.len() + 2);
        assert!(markdown.lines().all(|line| line.contains("1234") || !line.contains("pause")), "{markdown}");
        assert_eq!(text.matches(System::ETCD.name()).count(), 1, "each system is named once:\n{text}");
    }
}
