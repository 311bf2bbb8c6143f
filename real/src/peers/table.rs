//! The tables.

use std::fmt::Write as _;

use super::arms::{note, title};
use super::results::{Results, Row};
use super::slice::Scenario;
use super::targets::{REDIS, Target, is_p50_tie, is_rate_tie};

impl Results {
    /// Returns the tables in Markdown.
    pub fn tables(&self) -> String {
        let mut text = String::new();
        // Writing to a String can't fail.
        let _ = writeln!(text, "| target | measured | holds |\n|---|---|---|");
        for Target { demand, measured, holds, is_tie } in self.targets() {
            let holds = match holds {
                Some(_) if is_tie => "tie",
                Some(true) => "yes",
                Some(false) => "**no**",
                None => "not measured",
            };
            let _ = writeln!(text, "| {demand} | {measured} | {holds} |");
        }
        for rows in self.rows.chunk_by(|a, b| (a.scenario, a.contenders) == (b.scenario, b.contenders)) {
            let _ = write!(text, "\n{}", table(rows));
        }
        for (name, why) in &self.missing {
            let _ = writeln!(text, "\nNot measured: {name}: {why}");
        }
        text
    }
}

/// Returns the table of one arm. Ratios are relative to our lock on Redis.
fn table(rows: &[Row]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let ours = rows.iter().find(|row| row.peer == REDIS).unwrap_or(first);
    let mut text = format!("## {}\n\n", title(first.scenario, first.contenders));
    // Writing to a String can't fail.
    if let Some(note) = note(first.scenario) {
        let _ = write!(text, "{note}\n\n");
    }
    let is_timed = first.scenario.is_timed();
    let [acquire, release, locks] = match first.scenario {
        Scenario::Claim | Scenario::Drain => ["claim", "finish", "jobs"],
        _ => ["acquire", "release", "locks"],
    };
    if is_timed {
        let _ = writeln!(
            text,
            "| | {acquire} p50 | p99 | {release} p50 | p99 | {locks} a second | {acquire} p50, ratio | \
             {locks}, ratio |\n|---|---:|---:|---:|---:|---:|---:|---:|"
        );
    } else {
        let _ = writeln!(text, "| | {locks} a second | ratio |\n|---|---:|---:|");
    }
    for row in rows {
        let rate = format!("{:.*} | ", if row.per_second < 1000.0 { 1 } else { 0 }, row.per_second);
        let ratio = row.per_second / ours.per_second;
        let tie = |is_tie| if is_tie && row.peer != ours.peer { " (tie)" } else { "" };
        let rate_tie = tie(is_rate_tie(row, ours));
        let p50_tie = tie(is_p50_tie((row, ours)));
        let _ = match is_timed {
            true => writeln!(
                text,
                "| {} | {} | {} | {} | {} | {rate}{:.2}{p50_tie} | {ratio:.2}{rate_tie} |",
                row.peer,
                time(row.acquire_p50_ns),
                time(row.acquire_p99_ns),
                time(row.release_p50_ns),
                time(row.release_p99_ns),
                row.acquire_p50_ns as f64 / ours.acquire_p50_ns.max(1) as f64,
            ),
            false => writeln!(text, "| {} | {rate}{ratio:.2}{rate_tie} |", row.peer),
        };
    }
    text
}

fn time(nanos: u64) -> String {
    match nanos {
        0..1_000_000 => format!("{:.0} µs", nanos as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", nanos as f64 / 1e6),
        _ => format!("{:.2} s", nanos as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::super::targets::tests::{results, row};
    use super::*;

    #[test]
    fn the_tables_list_each_peer_and_the_missing_ones() {
        let mut results = results(19.0);
        results.missing.push(("rslock".into(), "no compiler".to_owned()));
        let text = results.tables();
        assert!(
            text.contains("| redis-py | 130 µs | 260 µs | 130 µs | 260 µs | 1.0 | 1.14 | 1.00 (tie) |"),
            "{text}"
        );
        assert!(text.contains("| redis-benchmark -P 64 | 160000 | 1.07 |"), "{text}");
        assert!(text.contains("Not measured: rslock: no compiler"), "{text}");
        assert!(text.contains("150000 against 160000: 0.94 | **no** |"), "{text}");
        // The target is the ratio to the same client library; the other ratio is only shown.
        assert!(
            text.contains("| 114 µs against 100 µs: 1.14 (1.43 of a bare socket's 80 µs) | yes |"),
            "{text}"
        );
    }

    #[test]
    fn a_table_of_jobs_has_its_own_words_and_a_note() {
        let mut results = results(19.0);
        results.rows.push(row(Scenario::Claim, 1, REDIS, 40, 5000.0));
        results.rows.push(row(Scenario::Drain, 1, REDIS, 0, 9000.0));
        let text = results.tables();
        let note = note(Scenario::Claim).unwrap();
        let head =
            "| | claim p50 | p99 | finish p50 | p99 | jobs a second | claim p50, ratio | jobs, ratio |";
        assert!(text.contains(&format!("\n\n{note}\n\n{head}\n|---|")), "{text}");
        assert!(text.contains("\n\n| | jobs a second | ratio |\n|---|---:|---:|\n"), "{text}");
    }
}
