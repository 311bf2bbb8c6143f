//! The comparison of the systems: it depends on the seed alone, and its page is complete.

use std::path::Path;

use history::VerdictKind as Verdict;
use lab::Arm;
use lab::compare::{Comparison, Count, cells, compare, table};

#[test]
fn the_table_depends_on_the_first_seed_alone() {
    let one = compare(11, 2, 1, || true).unwrap();
    let two = compare(11, 2, 2, || true).unwrap();
    assert_eq!(one, two);
    assert_eq!(table::markdown(&one), table::markdown(&two));
    assert_ne!(one, compare(13, 2, 2, || true).unwrap());
}

#[test]
fn fencing_leaves_no_stale_write_in_any_cell() {
    let comparison = compare(0, 6, 2, || true).unwrap();
    assert_eq!(comparison.keys().copied().collect::<Vec<_>>(), cells().collect::<Vec<_>>());
    for ((system, class), cell) in &comparison {
        assert_eq!(cell.schedules, 6, "{class} on {system}");
        assert_eq!(cell.of(Count::Verdict(Arm::Fenced, Verdict::StaleWrite)), 0, "{class} on {system}");
        assert_eq!(cell.violations, 0, "{class} on {system}");
        assert!(cell.grants > 0, "{class} on {system}");
    }
    let unfenced = |cell: &lab::compare::Cell| cell.of(Count::Verdict(Arm::Unfenced, Verdict::StaleWrite));
    assert!(
        comparison.values().map(unfenced).sum::<u64>() > 0,
        "without fencing some cell has a stale write"
    );
}

#[test]
fn the_page_shows_every_cell_and_explains_every_column() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("docs/comparison.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rows) = page
        .split_once(&table::markdown(&Comparison::new()))
        .expect("the page has the headings of the table");
    let (rows, legend) = rows.split_once("\n\n").unwrap();
    let shown: Vec<String> = rows.lines().map(|row| row.split(" |").take(2).collect()).collect();
    let cells: Vec<String> = cells().map(|(system, class)| format!("| {system} {class}")).collect();
    assert_eq!(shown, cells);
    let legend = legend.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(legend.starts_with(table::COUNTS), "{legend}");
    for (column, meaning) in table::LEGEND {
        assert!(legend.contains(&format!("- {column}: {meaning}")), "{column} is not explained: {legend}");
    }
}
