//! The page of the long runs, from their reports in `real/results/chaos/`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use history::VerdictKind;
use serde::Deserialize;

use super::report::{Count, Report};
use crate::report::Table;
use crate::tokens::Tokens;

/// Why the page can't be made.
#[derive(Debug, thiserror::Error)]
pub enum ChaosPageError {
    /// A file can't be read.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A file is no report of a long run.
    #[error("{}: no report of `real chaos`: {source}", .path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// The error.
        source: serde_json::Error,
    },
}

/// The parts of a [`Report`] that are on the page.
#[derive(Debug, Deserialize)]
struct Stored {
    command: String,
    configuration: StoredConfiguration,
    faults: BTreeMap<String, u64>,
    verdicts: BTreeMap<VerdictKind, Count>,
    grants: u64,
    #[serde(default)]
    tasks_done: u64,
    writes_accepted: u64,
    writes_refused: u64,
    claims_refused: u64,
    longest_unserved_ms: u64,
    lasted_ms: u64,
    #[serde(default)]
    not_judged: Vec<StoredNotJudged>,
}

#[derive(Debug, Deserialize)]
struct StoredNotJudged {
    kind: VerdictKind,
    why: String,
}

#[derive(Debug, Deserialize)]
struct StoredConfiguration {
    system: String,
    fence: String,
    #[serde(default = "mutex")]
    primitive: String,
    #[serde(default)]
    tokens: Tokens,
    workers: u64,
}

fn mutex() -> String {
    "mutex".to_owned()
}

impl Stored {
    fn count(&self, kind: VerdictKind) -> Count {
        self.verdicts.get(&kind).copied().unwrap_or_default()
    }

    fn violations(&self) -> u64 {
        Report::violations_of(&self.verdicts)
    }

    fn explained(&self) -> u64 {
        self.verdicts.values().map(|count| count.explained).sum()
    }

    fn is_mutex(&self) -> bool {
        self.configuration.primitive == "mutex"
    }

    /// Returns the system, and the source of its tokens if it is not the default.
    fn system(&self) -> String {
        let StoredConfiguration { system, tokens, .. } = &self.configuration;
        format!("{system}{}", tokens.note())
    }

    fn unserved(&self) -> String {
        if self.grants == 0 {
            // Jobs are claimed, not requested.
            return "–".to_owned();
        }
        format!("{:.1} s", self.longest_unserved_ms as f64 / 1e3)
    }
}

/// Makes the page from the reports in `folder`; `None` if there is no folder.
///
/// # Errors
///
/// [`ChaosPageError`].
pub fn page(folder: &Path) -> Result<Option<String>, ChaosPageError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ChaosPageError::File { path, source }
    };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries.map_err(failed(folder))?,
    };
    let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(failed(folder))?;
    paths.sort();
    let mut runs = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "json")) {
        let text = fs::read_to_string(path).map_err(failed(path))?;
        let stored = serde_json::from_str::<Stored>(&text);
        runs.push(stored.map_err(|source| ChaosPageError::Report { path: path.clone(), source })?);
    }
    Ok(Some(render(&runs)))
}

fn render(runs: &[Stored]) -> String {
    let mut text = HEAD.to_owned();
    let (mutexes, others): (Vec<_>, Vec<_>) = runs.iter().partition(|run| run.is_mutex());
    let fenced = || runs.iter().filter(|run| run.configuration.fence == "on");
    let (count, violations) = (fenced().count(), fenced().map(Stored::violations).sum::<u64>());
    let hours = fenced().map(|run| run.lasted_ms as f64 / 3.6e6).sum::<f64>();
    // Writing to a String can't fail.
    let _ = writeln!(
        text,
        "\n{count} {} with fencing, {hours:.1} hours in all: {violations} {}.",
        if count == 1 { "run" } else { "runs" },
        if violations == 1 { "violation" } else { "violations" }
    );
    let _ = writeln!(text, "\n## A lock\n\n{}\n{}", mutex_table(&mutexes).markdown(), after_mutex(&mutexes));
    let _ =
        writeln!(text, "## The other primitives, with fencing\n\n{}", primitive_table(&others).markdown());
    let _ = writeln!(text, "## What was not judged\n\n{}", not_judged_table(runs).markdown());
    let commands: Vec<_> = runs.iter().map(|run| run.command.as_str()).collect();
    let _ = writeln!(
        text,
        "<details><summary>Commands</summary>\n\n```\n{}\n```\n\n</details>",
        commands.join("\n")
    );
    text
}

fn mutex_table(runs: &[&Stored]) -> Table {
    let mut table = Table::new(
        "",
        &[
            "system",
            "fencing",
            "faults",
            "grants",
            "overlap",
            "stale writes",
            "late writes",
            "lost updates",
            "refused writes",
            "refused claims",
            "token regressed",
            "longest unserved",
        ],
    );
    for run in runs {
        let of = |kind| run.count(kind).all.to_string();
        table.row([
            run.system(),
            run.configuration.fence.clone(),
            run.faults.values().sum::<u64>().to_string(),
            run.grants.to_string(),
            of(VerdictKind::Overlap),
            of(VerdictKind::StaleWrite),
            of(VerdictKind::LateWrite),
            of(VerdictKind::LostUpdate),
            run.writes_refused.to_string(),
            run.claims_refused.to_string(),
            of(VerdictKind::TokenRegressed),
            run.unserved(),
        ]);
    }
    table
}

/// Says which writes were accepted, and where tokens regressed.
fn after_mutex(runs: &[&Stored]) -> String {
    let fenced = runs.iter().filter(|run| run.configuration.fence == "on");
    let wrong = [VerdictKind::StaleWrite, VerdictKind::LateWrite, VerdictKind::LostUpdate];
    let wrong: u64 = fenced.flat_map(|run| wrong.map(|kind| run.count(kind).all)).sum();
    let regressed = || runs.iter().map(|run| (run, run.count(VerdictKind::TokenRegressed)));
    let (all, explained) =
        regressed().fold((0, 0), |(all, explained), (_, of)| (all + of.all, explained + of.explained));
    let systems: BTreeSet<_> = regressed()
        .filter(|(_, count)| count.all > 0)
        .map(|(run, _)| run.configuration.system.as_str())
        .collect();
    let tokens = if systems.is_empty() {
        "No token regressed.".to_owned()
    } else {
        format!(
            "Tokens regressed {all} times, on {} only; {explained} of them after a fault that set the counter \
             back (the data was lost, or a lagging replica was promoted) and not between two such faults. The \
             resource then refuses grants until the counter has caught up.",
            systems.into_iter().collect::<Vec<_>>().join(" and ")
        )
    };
    format!("With fencing, the resource accepted {wrong} writes that it should have refused. {tokens}\n")
}

fn primitive_table(runs: &[&Stored]) -> Table {
    let mut table = Table::new(
        "",
        &[
            "primitive",
            "system",
            "workers",
            "faults",
            "grants",
            "tasks done",
            "writes",
            "refused writes",
            "refused claims",
            "overlap",
            "explained",
            "violations",
            "longest unserved",
        ],
    );
    let mut runs = runs.to_vec();
    runs.sort_by(|a, b| a.configuration.primitive.cmp(&b.configuration.primitive));
    for run in runs.into_iter().filter(|run| run.configuration.fence == "on") {
        table.row([
            format!("`{}`", run.configuration.primitive),
            run.system(),
            run.configuration.workers.to_string(),
            run.faults.values().sum::<u64>().to_string(),
            run.grants.to_string(),
            run.tasks_done.to_string(),
            run.writes_accepted.to_string(),
            run.writes_refused.to_string(),
            run.claims_refused.to_string(),
            run.count(VerdictKind::Overlap).all.to_string(),
            run.explained().to_string(),
            run.violations().to_string(),
            run.unserved(),
        ]);
    }
    table
}

/// Lists the verdicts that runs could not be judged for, and why.
fn not_judged_table(runs: &[Stored]) -> Table {
    let mut table = Table::new("", &["verdict", "why", "runs"]);
    let mut counts = BTreeMap::new();
    for StoredNotJudged { kind, why } in runs.iter().flat_map(|run| &run.not_judged) {
        *counts.entry((kind, why)).or_insert(0_u64) += 1;
    }
    for ((kind, why), count) in counts {
        table.row([format!("`{kind}`"), why.clone(), count.to_string()]);
    }
    table
}

const HEAD: &str = "# The long runs

`real chaos` runs workers as processes on live servers and strikes a fault every few seconds
([how](live.md#the-long-run)). `cargo run --release -p fencepost-real -- report` makes this page from the reports in
`real/results/chaos/`, and `report --check` compares the two. Runs were made several at a time: they measure no speed, so
that the load of the machine is not judged. The last column is the longest time for which a worker asked and was not
served; jobs are claimed, not requested, and have none.

An overlap is no violation: any lease allows it when its holder pauses for longer than the lease. Neither is a verdict
that a fault explains: a Redis that has lost its data, or a replica that lagged, gives old tokens again, and has lost
jobs of its queue.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn report(changes: &str) -> String {
        format!(
            r#"{{"command": "real chaos", "configuration": {{"system": "etcd", "fence": "on", "workers": 4}},
            "faults": {{"kill-worker": 3}}, "verdicts": {{{changes}}}, "grants": 7, "writes_accepted": 6,
            "writes_refused": 1, "claims_refused": 0, "longest_unserved_ms": 1500, "lasted_ms": 600000}}"#
        )
    }

    #[test]
    fn a_page_counts_the_violations_of_the_fenced_runs() {
        let page = |changes| render(&[serde_json::from_str(&report(changes)).unwrap()]);
        let clean = page(r#""overlap": {"all": 2, "explained": 0}"#);
        assert!(clean.contains("1 run with fencing, 0.2 hours in all: 0 violations."), "{clean}");
        assert!(clean.contains("| etcd | on | 3 | 7 | 2 |"), "{clean}");
        let broken = page(r#""stale_write": {"all": 3, "explained": 2}"#);
        assert!(broken.contains("1 violation."), "{broken}");
        assert!(broken.contains("accepted 3 writes that it should have refused. No token"), "{broken}");
        let regressed = page(r#""token_regressed": {"all": 5, "explained": 4}"#);
        assert!(regressed.contains("regressed 5 times, on etcd only; 4 of them after"), "{regressed}");
    }

    #[test]
    fn a_page_names_the_tokens_that_are_not_the_default() {
        let page = |text: &str| render(&[serde_json::from_str(text).unwrap()]);
        let plain = report("").replace("etcd", "redis");
        assert!(page(&plain).contains("| redis | on | 3 |"), "{}", page(&plain));
        let shared = plain.replace(r#""workers": 4"#, r#""workers": 4, "tokens": "shared""#);
        let expected = page(&plain).replace("| redis | on |", "| redis, tokens shared | on |");
        assert_eq!(page(&shared), expected);
    }

    #[test]
    fn a_file_that_is_no_report_is_named() {
        let folder = std::env::temp_dir().join(format!("chaos-page-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("redis-on.json"), "{}").unwrap();
        let error = page(&folder).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert!(error.contains("redis-on.json: no report of `real chaos`"), "{error}");
    }
}
