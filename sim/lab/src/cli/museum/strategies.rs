//! The tables of `docs/strategies.md`: the shares of the strategies, what a schedule of each costs, and how
//! soon each finds the mistakes for which it was measured.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use lab::exhaustive::page::thousands;
use sim::Strategy;
use sim::explore::Portfolio;

use super::results::{DEFAULT, Results, Row, median};
use crate::cli::wrap;

/// An exhibit, by its mistake and system.
type Exhibit<'a> = (&'a str, &'a str);

/// Returns the table of the shares.
pub(super) fn shares() -> String {
    let shares = Portfolio::default().shares();
    let all: usize = shares.iter().map(|(_, turns)| turns).sum();
    let mut text = "| strategy | share by default | what it draws |\n|---|---|---|\n".to_owned();
    for (strategy, turns) in shares {
        // Writing to a String can't fail.
        let _ = writeln!(text, "| `{strategy}` | {turns} of {all} | {} |", draws(strategy));
    }
    text
}

fn draws(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Uniform => "each fault by itself: kind, place, time and length are all equally likely",
        Strategy::Aimed => {
            "faults at points that the run without faults passes, often at the exposed moments of a protocol"
        }
        Strategy::Swarm => "a few kinds of faults only, so that those few come often together",
        Strategy::Ordered => "a few pauses and delays that put processes and links in another order (PCT)",
        Strategy::Feedback => {
            "the beginning of a schedule that reached something new, then new faults and random values"
        }
    }
}

/// Returns the names of the strategies that were measured: all in turns first.
fn measured(results: &Results) -> Vec<&str> {
    let mut names: Vec<&str> = results.rows.iter().map(|row| row.key.strategy.as_str()).collect();
    names.sort_by_key(|name| {
        let strategy = Strategy::ALL.iter().position(|strategy| name.starts_with(&strategy.to_string()));
        (strategy.map_or(0, |place| place + 1), *name)
    });
    names.dedup();
    names
}

/// Returns the rows by exhibit and strategy, of the exhibits for which a strategy alone was measured, in the
/// order of the results.
fn compared(results: &Results) -> Vec<(Exhibit<'_>, BTreeMap<&str, &Row>)> {
    let mut all: Vec<(Exhibit<'_>, BTreeMap<&str, &Row>)> = Vec::new();
    for row in &results.rows {
        let exhibit = (row.key.mutant.as_str(), row.key.system.as_str());
        match all.last_mut().filter(|(last, _)| *last == exhibit) {
            Some((_, rows)) => {
                rows.insert(&row.key.strategy, row);
            }
            None => all.push((exhibit, BTreeMap::from([(row.key.strategy.as_str(), row)]))),
        }
    }
    all.retain(|(_, rows)| rows.len() > 1);
    all
}

/// Returns the table of what a schedule costs.
pub(super) fn cost(results: &Results) -> String {
    let strategies = measured(results);
    let compared = compared(results);
    let has_all = |rows: &&BTreeMap<&str, &Row>| strategies.iter().all(|name| rows.contains_key(*name));
    let common: Vec<_> = compared.iter().map(|(_, rows)| rows).filter(has_all).collect();
    let mut text = format!(
        "| strategy | runs of a schedule | processor time of a schedule |\n|---|---|---|\n{}",
        if common.is_empty() { "| none was measured | | |\n" } else { "" },
    );
    for name in strategies.iter().filter(|_| !common.is_empty()) {
        let rows = || common.iter().filter_map(|rows| rows.get(*name));
        let schedules: u64 = rows().flat_map(|row| &row.schedules).sum();
        let runs: u64 = rows().flat_map(|row| &row.runs).sum();
        let seconds: f64 = rows().map(|row| row.processor_seconds).sum();
        let each = schedules.max(1) as f64;
        // Writing to a String can't fail.
        let (runs, millis) = (runs as f64 / each, seconds * 1000.0 / each);
        let _ = writeln!(text, "| {} | {runs:.2} | {millis:.1} ms |", title(name));
    }
    text
}

fn title(strategy: &str) -> String {
    if strategy == DEFAULT { "all in turns".to_owned() } else { format!("`{strategy}`") }
}

/// Returns the tables of how soon each strategy finds a mistake.
pub(super) fn figures(results: &Results) -> String {
    let runs = |row: &Row| {
        let (runs, schedules) = (thousands(median(&row.runs)), thousands(median(&row.schedules)));
        format!("{runs} runs, {schedules} schedules, {} of {}", row.found(), row.hunts())
    };
    let seconds = |row: &Row| format!("{:.1} s", row.seconds_each());
    format!(
        "Median runs and schedules of a hunt, and how many hunts found the mistake:\n\n{}\n\
         Processor time of a hunt, on average:\n\n{}\n{}",
        table(results, &runs),
        table(results, &seconds),
        caps(results)
    )
}

/// Says how many schedules a hunt ran at most.
fn caps(results: &Results) -> String {
    let of = |is_default: bool| {
        let rows = results.rows.iter().filter(|row| (row.key.strategy == DEFAULT) == is_default);
        let caps: BTreeSet<u64> = rows.map(|row| row.cap).collect();
        caps.into_iter().map(thousands).collect::<Vec<_>>().join(" or ")
    };
    let (all, alone) = (of(true), of(false));
    if all.is_empty() || alone.is_empty() {
        return String::new();
    }
    wrap(&format!("A hunt by all in turns ran at most {all} schedules, one by a strategy alone {alone}."), 0)
}

fn table(results: &Results, cell: &dyn Fn(&Row) -> String) -> String {
    let strategies = measured(results);
    let titles: Vec<String> = strategies.iter().map(|name| title(name)).collect();
    let mut text = format!("| mistake | {} |\n|---|{}\n", titles.join(" | "), "---|".repeat(titles.len()));
    for ((mutant, system), rows) in compared(results) {
        let cells: Vec<String> = strategies
            .iter()
            .map(|name| rows.get(name).map_or_else(|| "not measured".to_owned(), |row| cell(row)))
            .collect();
        // Writing to a String can't fail.
        let _ = writeln!(text, "| `{mutant}` on {system} | {} |", cells.join(" | "));
    }
    text
}

/// Says on which mistakes each strategy alone needs fewer runs than all in turns.
pub(super) fn comparison(results: &Results) -> String {
    let compared = compared(results);
    let mut text = String::new();
    for name in measured(results).into_iter().filter(|name| *name != DEFAULT) {
        let both = compared.iter().filter_map(|((mutant, system), rows)| {
            let (alone, all) = (rows.get(name)?, rows.get(DEFAULT)?);
            Some((format!("`{mutant}` on {system}"), median(&alone.runs), median(&all.runs)))
        });
        let (fewer, others): (Vec<_>, Vec<_>) = both.partition(|(_, alone, all)| alone < all);
        let all = fewer.len() + others.len();
        let list = fewer
            .iter()
            .map(|(exhibit, alone, all)| format!("{exhibit} ({} to {})", thousands(*alone), thousands(*all)));
        let list: Vec<String> = list.collect();
        let which = if list.is_empty() { String::new() } else { format!(": {}", list.join(", ")) };
        let count = fewer.len();
        let line =
            format!("- `{name}` alone needs fewer runs than all in turns for {count} of {all}{which}.");
        text += &wrap(&line, 2);
    }
    if text.is_empty() { "No strategy alone was measured.\n".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use lab::System;
    use lab::museum::Mutant;

    use super::super::results::{Key, Origin};
    use super::*;

    fn put(results: &mut Results, strategy: &str, runs: [u64; 3]) {
        let origin = Origin { shares: String::new(), program: String::new() };
        let mut row = Row::new(Key::new(Mutant::TwoStep, System::REDIS, strategy), origin, 9_000);
        row.runs = runs.to_vec();
        row.schedules = runs.map(|runs| runs / 2).to_vec();
        row.came.insert("unheld".to_owned(), 2);
        row.processor_seconds = 6.0;
        results.put(row);
    }

    fn results() -> Results {
        let mut results = Results::default();
        put(&mut results, DEFAULT, [2_000, 4_000, 6_000]);
        put(&mut results, "aimed", [1_000, 1_200, 8_000]);
        put(&mut results, "swarm", [9_000, 9_000, 9_000]);
        results
    }

    #[test]
    fn a_strategy_is_ahead_where_its_median_is_lower() {
        let text = comparison(&results());
        let words: Vec<&str> = text.split_whitespace().collect();
        let aimed = "- `aimed` alone needs fewer runs than all in turns for 1 of 1: `two-step` on redis (1,200 to \
                     4,000).";
        assert!(words.join(" ").starts_with(aimed), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(text.contains("`swarm` alone needs fewer runs than all in turns for 0 of 1.\n"), "{text}");
    }

    #[test]
    fn figures_are_medians_and_say_how_many_hunts_there_were() {
        let text = figures(&results());
        assert!(text.contains("| mistake | all in turns | `aimed` | `swarm` |"), "{text}");
        let row = "| `two-step` on redis | 4,000 runs, 2,000 schedules, 2 of 3 | ";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("| `two-step` on redis | 2.0 s | 2.0 s | 2.0 s |"), "{text}");
    }

    #[test]
    fn a_schedule_costs_what_all_rows_of_a_strategy_took() {
        let text = cost(&results());
        assert!(text.contains("| all in turns | 2.00 | 1.0 ms |"), "{text}");
    }
}
