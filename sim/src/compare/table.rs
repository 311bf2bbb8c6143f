//! A comparison as text for a terminal of 80 columns, and as Markdown.

use std::fmt::Write;

use super::{Cell, Comparison};
use resource::audit::VerdictKind as Verdict;

use crate::lab::{Arm, FaultClass};

/// A column: its heading, for a terminal on two lines, and what it counts.
struct Column {
    name: &'static str,
    lines: [&'static str; 2],
    count: fn(&Cell) -> u64,
}

/// What is told of each cell. Verdicts that nobody has, such as `unfair`, are in [`Cell::violations`].
const COLUMNS: [Column; 7] = [
    Column { name: "overlap", lines: ["", "overlap"], count: |cell| cell.of(Arm::Fenced, Verdict::Overlap) },
    Column {
        name: "stale writes, fencing off",
        lines: ["stale", "off"],
        count: |cell| cell.of(Arm::Unfenced, Verdict::StaleWrite),
    },
    Column { name: "fencing on", lines: ["", "on"], count: |cell| cell.of(Arm::Fenced, Verdict::StaleWrite) },
    Column { name: "refused", lines: ["", "refused"], count: |cell| cell.refused },
    Column {
        name: "token regressed",
        lines: ["token", "regr."],
        count: |cell| cell.of(Arm::Fenced, Verdict::TokenRegressed),
    },
    Column { name: "stuck", lines: ["", "stuck"], count: |cell| cell.of(Arm::Fenced, Verdict::Stuck) },
    Column { name: "unexplained", lines: ["unex-", "plained"], count: |cell| cell.violations },
];

/// What the columns count, for the reader of either form.
pub const LEGEND: &str = "Runs with the verdict, of as many schedules in each row. overlap: two holders at once, which no lock that releases \
     itself can exclude. stale writes: the resource took a write of an older grant, with fencing off and on. refused: writes \
     that fencing turned away. token regressed: a later grant got no larger token, where the schedule let a server lose what \
     it had acknowledged. stuck: somebody was not served after all faults had healed. unexplained: a verdict that nothing \
     in the schedule explains.";

/// The table for a terminal.
pub fn text(comparison: &Comparison) -> String {
    let mut text = String::new();
    for line in 0..2 {
        let headings: String = COLUMNS.iter().map(|column| format!("{:>8}", column.lines[line])).collect();
        let _ = writeln!(text, "{:<24}{headings}", "");
    }
    let mut last = None;
    for ((system, class), cell) in comparison {
        let name = if last == Some(system) { String::new() } else { system.to_string() };
        let counts: String = COLUMNS.iter().map(|column| format!("{:>8}", (column.count)(cell))).collect();
        let _ = writeln!(text, "{name:<10}{class:<14}{counts}", class = short(*class));
        last = Some(system);
    }
    text
}

/// The class in 13 columns.
fn short(class: FaultClass) -> &'static str {
    match class {
        FaultClass::OneWay => "one-way part.",
        class => class.name(),
    }
}

/// The table as Markdown.
pub fn markdown(comparison: &Comparison) -> String {
    let headings: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
    let rule = "---:|".repeat(COLUMNS.len());
    let mut text = format!("| system | faults | {} |\n|---|---|{rule}\n", headings.join(" | "));
    for ((system, class), cell) in comparison {
        let counts: Vec<_> = COLUMNS.iter().map(|column| (column.count)(cell).to_string()).collect();
        let _ = writeln!(text, "| {system} | {class} | {} |", counts.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::System;

    #[test]
    fn both_forms_have_a_row_for_each_cell_and_the_terminal_s_fits() {
        let cells = crate::compare::cells().map(|cell| (cell, Cell { refused: 1234, ..Cell::default() }));
        let comparison: Comparison = cells.collect();
        let (text, markdown) = (text(&comparison), markdown(&comparison));
        assert_eq!(text.lines().count(), comparison.len() + 2);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(markdown.lines().count(), comparison.len() + 2);
        assert!(markdown.lines().all(|line| line.contains("1234") || !line.contains("pause")), "{markdown}");
        assert_eq!(text.matches(System::Etcd.name()).count(), 1, "each system is named once:\n{text}");
    }
}
