//! A line of the table on the terminal.

use super::results::{Row, median};

/// Returns the head of the table.
pub(super) fn head() -> String {
    let mistake = format!("{:<23}{:<10}{:<9}", "mistake", "system", "strategy");
    format!("{mistake}{:>7}{:>10}{:>8}{:>10}{:>7}\n", "found", "schedules", "runs", "seconds", "faults")
}

/// Returns the line of a row: medians, and the processor time of a hunt. What the hunts met beside the
/// mistake and the twins that are accused follow on lines of their own.
pub(super) fn line(row: &Row) -> String {
    let found = format!("{}/{}", row.found(), row.hunts());
    let faults = row.faults.map_or_else(|| "-".to_owned(), |faults| faults.to_string());
    let (schedules, runs) = (median(&row.schedules), median(&row.runs));
    let key = format!("{:<23}{:<10}{:<9}", row.key.mutant, row.key.system, row.key.strategy);
    let mut text =
        format!("{key}{found:>7}{schedules:>10}{runs:>8}{:>10.2}{faults:>7}\n", row.seconds_each());
    if !row.others.is_empty() {
        let others = row.others.iter().map(|(broken, times)| format!("{broken} {times}"));
        text += &format!("  met beside it: {}\n", others.collect::<Vec<_>>().join(", "));
    }
    for accused in &row.accused {
        text += &format!("  NOT acquitted: {accused}\n");
    }
    text
}
