//! The comparison of the systems: it depends on the seed alone, and the README shows the last one.

use std::path::Path;

use history::VerdictKind as Verdict;
use sim::compare::{Count, cells, compare, table};
use sim::lab::Arm;

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
    let unfenced = |cell: &sim::compare::Cell| cell.of(Count::Verdict(Arm::Unfenced, Verdict::StaleWrite));
    assert!(
        comparison.values().map(unfenced).sum::<u64>() > 0,
        "without fencing some cell has a stale write"
    );
}

#[test]
fn the_readme_shows_the_table_of_the_comparison_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (readme, page) = (root.join("README.md"), root.join("docs/comparison.md"));
    let (readme, page) = (std::fs::read_to_string(readme).unwrap(), std::fs::read_to_string(page).unwrap());
    let rows = |text: &str| -> Vec<String> {
        let is_row = |line: &&str| line.starts_with("| ") && line.matches('|').count() == 14;
        text.lines().filter(is_row).map(str::to_owned).collect()
    };
    let (_, shown) = readme.split_once("<!-- comparison -->").unwrap();
    let (shown, _) = shown.split_once("<!-- /comparison -->").unwrap();
    assert_eq!(rows(shown), rows(&page));
    assert_eq!(rows(&page).len(), cells().count() + 1, "a row for each cell, and one for the headings");
}
