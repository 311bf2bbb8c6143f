//! The page of the long runs, from their reports in `real/results/chaos/`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use history::VerdictKind;

use super::locks::PERSISTENCE;
use super::servers_of;
use super::stored::{ChaosPageError, Stored, StoredNotJudged, read};
use crate::lab::{Machine, OneMachine};
use crate::report::Table;
use crate::systems::System;

/// The folder, in that of the reports, of the runs of one plan without and with an operator.
const OPERATOR: &str = "operator";

/// Makes the page from the reports in `folder`, which must be of the machine of the results in `machines`;
/// `None` if there is no folder.
///
/// # Errors
///
/// [`ChaosPageError`].
pub(crate) fn page(folder: &Path, machines: &mut OneMachine) -> Result<Option<String>, ChaosPageError> {
    let Some(runs) = read(folder, machines)? else { return Ok(None) };
    let operated = read(&folder.join(OPERATOR), machines)?.unwrap_or_default();
    Ok(Some(render(&runs, &operated)))
}

fn render(runs: &[Stored], operated: &[Stored]) -> String {
    let mut text = head();
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
    if !operated.is_empty() {
        let _ = writeln!(text, "{ABOUT_OPERATOR}\n{}", operator_table(operated).markdown());
    }
    let _ = writeln!(text, "## What was not judged\n\n{}", not_judged_table(runs).markdown());
    let runs = || runs.iter().chain(operated);
    let commands: Vec<_> = runs().map(|run| run.command.as_str()).collect();
    let _ = writeln!(
        text,
        "<details><summary>Commands and machine</summary>\n\n```\n{}\n```\n\n{}</details>",
        commands.join("\n"),
        place(runs()),
    );
    text
}

/// Names the machine of the runs, their loads, and the software of each.
fn place<'a>(runs: impl Iterator<Item = &'a Stored> + Clone) -> String {
    let mut text = String::new();
    if let Some(run) = runs.clone().next() {
        let loads = || runs.clone().map(|run| run.machine.load_average);
        let (least, most) = (loads().fold(f64::INFINITY, f64::min), loads().fold(0.0, f64::max));
        let Machine { cores, processor, kernel, memory_mib, build, .. } = &run.machine;
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "{cores} cores ({processor}), {memory_mib} MiB, Linux {kernel}, load averages from {least} to {most} \
             at the start, {build} build.\n"
        );
    }
    for software in runs.map(|run| run.software.to_string()).collect::<BTreeSet<_>>() {
        let _ = writeln!(text, "{software}.\n");
    }
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
    let systems: BTreeSet<_> =
        regressed().filter(|(_, count)| count.all > 0).map(|(run, _)| run.system_name()).collect();
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

/// Compares the resource's answers after a Redis had lost its data, without and with an operator.
fn operator_table(runs: &[Stored]) -> Table {
    let mut table =
        Table::new("", &["operator", "faults", "writes accepted since", "writes and claims refused since"]);
    for run in runs {
        let since = run.since_data_lost.unwrap_or_default();
        table.row([
            if run.configuration.raise { "raises the counter" } else { "none" }.to_owned(),
            run.faults.values().sum::<u64>().to_string(),
            since.accepted.to_string(),
            since.refused.to_string(),
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

fn head() -> String {
    format!(
        "# The long runs

`real chaos` runs workers as processes on live servers and strikes a fault every few seconds
([how](live.md#the-long-run)). `cargo run --release -p fencepost-real -- report` makes this page from the reports in
`real/results/chaos/`, and `report --check` compares the two. All are of the machine of
[the experiments](experiments.md). Several ran at a time, begun together once it was idle (`tools/long-runs`), and kept all
its cores busy: they measure no speed. The last column is the longest time in which some worker waited and none was
served; one run alone waits less. Jobs are claimed, not requested, and have none.

The servers are one Redis {persistence}, and a replica of it,
to which it sends its writes without waiting; {redlock} such Redis without replicas for Redlock; etcd with {etcd} members and
ZooKeeper with {zookeeper}, each of which syncs its log of writes to the disk before it answers. So a Redis loses data only by
the faults that take it away: a restart without its data, and the promotion of a replica that lags. PostgreSQL, where it
keeps the jobs or the ticks in place of the resource, syncs each commit too, and no loss of it is excused.

An overlap is no violation: any lease allows it when its holder pauses for longer than the lease. Neither is a verdict
that a fault explains: a Redis that has lost its data, or a replica that lagged, gives old tokens again, and has lost
jobs of its queue.
",
        persistence = PERSISTENCE.words(),
        redlock = servers_of(System::Redlock),
        etcd = servers_of(System::Etcd),
        zookeeper = servers_of(System::Zookeeper),
    )
}

const ABOUT_OPERATOR: &str = "## An operator raises lost counters

A Redis that has lost its data counts tokens from 1 again, and the resource refuses them. With `--raise` an operator
follows each such Redis, by `real raise`, and the run ends once every worker has written again; otherwise it is not as
expected. Both runs have the same plan. The last two columns count from the last time that the Redis ran again without
its data; with the operator, from the time at which its counter was raised.
";

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MACHINE: &str = r#"{"cores": 2, "processor": "P", "kernel": "6.1", "memory_mib": 4096,
        "load_average": 0.5, "build": "release"}"#;
    const SOFTWARE: &str = r#"{"commit": "abc", "servers": {"etcd": "3.4.23"}, "crates": {}}"#;

    fn report(changes: &str) -> String {
        format!(
            r#"{{"command": "real chaos", "machine": {MACHINE}, "software": {SOFTWARE},
            "configuration": {{"system": "etcd", "fence": "on", "primitive": "mutex", "workers": 4,
            "raise": false}}, "faults": {{"kill-worker": 3}}, "verdicts": {{{changes}}}, "grants": 7,
            "tasks_done": 7, "writes_accepted": 6, "writes_refused": 1, "claims_refused": 0,
            "longest_unserved_ms": 1500, "lasted_ms": 600000, "not_judged": []}}"#
        )
    }

    #[test]
    fn a_page_counts_the_violations_of_the_fenced_runs() {
        let page = |changes| render(&[serde_json::from_str(&report(changes)).unwrap()], &[]);
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
        let page = |text: &str| render(&[serde_json::from_str(text).unwrap()], &[]);
        let plain = report("").replace("etcd", "redis");
        assert!(page(&plain).contains("| redis | on | 3 |"), "{}", page(&plain));
        let shared = plain.replace(r#""workers": 4"#, r#""workers": 4, "tokens": "shared""#);
        let expected = page(&plain).replace("| redis | on |", "| redis, tokens shared | on |");
        assert_eq!(page(&shared), expected);
    }

    #[test]
    fn a_page_names_the_postgres_that_keeps_the_record() {
        let run = |system: &str, primitive: &str| {
            let on = format!(r#"{system} "record": "postgres","#);
            let text = report("").replace(r#""system": "etcd","#, &on).replace("mutex", primitive);
            serde_json::from_str::<Stored>(&text.replace(r#""grants""#, r#""commits_lost": 1, "grants""#))
                .unwrap()
        };
        let cron = run(r#""system": "etcd","#, "cron:200ms");
        let page = render(&[run("", "jobs"), cron], &[]);
        assert!(page.contains("| `jobs` | postgres | 4 | 3 |"), "{page}");
        assert!(page.contains("| `cron:200ms` | etcd, record postgres | 4 | 3 |"), "{page}");
        assert!(page.contains(": 2 violations."), "{page}");
    }

    #[test]
    fn a_page_compares_the_answers_without_and_with_an_operator() {
        let run = |raise: bool, since: &str| {
            let text = report("").replace(r#""raise": false"#, &format!(r#""raise": {raise}"#));
            let text = text.replace(r#""grants""#, &format!(r#""since_data_lost": {since}, "grants""#));
            serde_json::from_str(&text).unwrap()
        };
        let without = run(false, r#"{"accepted": 0, "refused": 8}"#);
        let with = run(true, r#"{"accepted": 4, "refused": 0}"#);
        let page = render(&[serde_json::from_str(&report("")).unwrap()], &[without, with]);
        assert!(page.contains("| none | 3 | 0 | 8 |\n| raises the counter | 3 | 4 | 0 |"), "{page}");
        assert!(page.contains("1 run with fencing"), "{page}");
    }

    /// Returns the error of a page of these files.
    fn error_of(files: &[(&str, &str)]) -> String {
        let name = format!("chaos-page-{}-{}", std::process::id(), files[0].0);
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join(OPERATOR)).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
        let error = page(&folder, &mut OneMachine::default()).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        error
    }

    #[test]
    fn a_file_that_is_no_report_is_named() {
        let error = error_of(&[("redis-on.json", "{}")]);
        assert!(error.contains("redis-on.json: no report of `real chaos`"), "{error}");
    }

    #[test]
    fn runs_of_two_machines_a_busy_one_or_a_debug_build_are_refused() {
        let run = report("");
        let other = run.replace(r#""kernel": "6.1""#, r#""kernel": "6.2""#);
        let error = error_of(&[("a.json", &run), ("b.json", &other)]);
        let words = "b.json: measured on another machine than ";
        assert!(error.contains(words) && error.contains("Linux 6.2"), "{error}");
        let error = error_of(&[("a.json", &run), ("operator/b.json", &other)]);
        assert!(error.contains(&format!("operator/{words}")), "{error}");
        let error = error_of(&[("debug.json", &run.replace("release", "debug"))]);
        assert!(error.contains("debug.json: measured by a debug build"), "{error}");
        let busy = run.replace(r#""load_average": 0.5"#, r#""load_average": 1.5"#);
        let error = error_of(&[("busy.json", &busy)]);
        assert!(error.contains("busy.json: measured at a load average of 1.5"), "{error}");
        let page = render(&[serde_json::from_str(&run).unwrap()], &[]);
        assert!(page.contains("Linux 6.1, load averages from 0.5 to 0.5 at"), "{page}");
        assert!(page.contains("etcd 3.4.23; commit abc.\n"), "{page}");
        let nowhere = run.replace(&format!(r#""machine": {MACHINE}, "software": {SOFTWARE},"#), "");
        let error = error_of(&[("nowhere.json", &nowhere)]);
        assert!(
            error.contains("nowhere.json: no report of `real chaos`: missing field `machine`"),
            "{error}"
        );
    }
}
