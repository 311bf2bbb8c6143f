//! The lab's objectives, each with the answer that the results give.
//!
//! Source: the lab text, section 5.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use history::Span;
use serde_json::Value;

use super::contention::GAVE_UP;
use crate::report::Table;

/// Returns the section of the page: the table, made from the files in the folder `results`.
pub(super) fn section(results: &Path) -> String {
    let results = Results { folder: results };
    let mut table = Table::new("", &["objective", "target", "answer", "evidence"]);
    let none = || "no results yet".to_owned();
    for (objective, target, answer, evidence) in [
        (
            "p99 of an acquire, Redis, nobody contends",
            "under 3 ms",
            results.uncontended(),
            "[peers](peers.md)",
        ),
        (
            "p99 of an acquire, a hot key, 200 contenders",
            "report it, and what limits it",
            results.hot_key(),
            "[experiment 4](#4-acquisition-latency-against-contention)",
        ),
        (
            "two writers accepted at the same time",
            "none, with fencing",
            results.violations(),
            "[the long runs](chaos.md)",
        ),
        (
            "a stale write after a pause longer than the TTL",
            "refused by the resource",
            results.stale_writes(),
            "[experiment 1](#1-pause-longer-than-the-ttl)",
        ),
        (
            "sections a second on a hot key",
            "at most 1 / (work + acquire + release)",
            results.throughput(),
            "[experiment 4](#4-acquisition-latency-against-contention)",
        ),
        (
            "fairness",
            "report it",
            results.fairness(),
            "[experiment 5](#5-fairness-order-of-arrival-order-of-grant)",
        ),
        (
            "safe release",
            "never another's lock",
            results.releases(),
            "[experiment 3](#3-get-and-del-against-the-script)",
        ),
    ] {
        table.row([
            objective.to_owned(),
            target.to_owned(),
            answer.unwrap_or_else(none),
            evidence.to_owned(),
        ]);
    }
    format!("\n## The objectives of the lab\n\n{}", table.markdown())
}

/// Returns how many attempts of a point of experiment 4 gave up, and of how many.
fn gave_up(point: &Value) -> Option<(u64, u64)> {
    point["abandoned"].as_u64().zip(point["attempts"].as_u64())
}

/// Returns whether the load was more than the lock could serve, as experiment 4 has it.
fn is_full((abandoned, attempts): (u64, u64)) -> bool {
    abandoned as f64 > GAVE_UP * attempts as f64
}

struct Results<'a> {
    folder: &'a Path,
}

impl Results<'_> {
    fn read(&self, file: &str) -> Option<Value> {
        serde_json::from_str(&fs::read_to_string(self.folder.join(file)).ok()?).ok()
    }

    fn findings(&self, number: u32, of: &str) -> Option<Vec<Value>> {
        let mut record = self.read(&format!("experiment-{number}.json"))?;
        serde_json::from_value(record["findings"][of].take()).ok()
    }

    fn uncontended(&self) -> Option<String> {
        let rows = self.read("peers.json")?;
        let is_ours = |row: &&Value| row["scenario"] == "uncontended" && row["peer"] == "dlock, Redis";
        let row = rows["rows"].as_array()?.iter().find(is_ours)?;
        let p99 = row["acquire_p99_ns"].as_f64()? / 1e6;
        let holds = if p99 < 3.0 { "it holds" } else { "it does not hold" };
        Some(format!("{p99:.2} ms: {holds}, on one machine; the round trip of a zone comes on top"))
    }

    /// The points of experiment 4 with the first duration of work.
    fn points(&self) -> Option<Vec<Value>> {
        let mut points = self.findings(4, "points")?;
        let work = points.first()?["work"].clone();
        points.retain(|point| point["work"] == work);
        Some(points)
    }

    fn hot_key(&self) -> Option<String> {
        let points = self.points()?;
        let of = |point: &Value| {
            let system = point["system"].as_str()?;
            let p99 = point["p99_ms"].as_f64()?;
            let (abandoned, attempts) = gave_up(point)?;
            Some(if is_full((abandoned, attempts)) {
                format!("{system} none: {abandoned} of {attempts} attempts gave up")
            } else {
                let between = &point["p99_between_ms"];
                let between = between[0].as_f64().zip(between[1].as_f64());
                let between =
                    between.map_or_else(String::new, |(low, high)| format!(" ({low:.0} to {high:.0})"));
                format!("{system} {p99:.0} ms{between}")
            })
        };
        let points: Vec<_> = points.iter().filter(|point| point["contenders"] == 200).collect();
        let offered = points.first()?["offered_per_second"].as_f64()?;
        let work = points.first()?["work"].as_str()?;
        let answers: Vec<_> = points.iter().filter_map(|point| of(point)).collect();
        let changes = self.changes(work)?;
        Some(format!(
            "{} (with the interval of 95 %), with {offered:.0} attempts a second and work of {work}; sections \
             exclude each other, so the limit is 1 / (work + change to the next holder), and a change takes {changes}",
            answers.join(", ")
        ))
    }

    /// Says what is left of the time between two grants beside the work, where more is offered than fits.
    fn changes(&self, work: &str) -> Option<String> {
        let points = self.points()?;
        let work_s = work.parse::<Span>().ok()?.0.as_secs_f64();
        let mut most = BTreeMap::new();
        let is_full = |point: &&Value| point["work"] == work && gave_up(point).is_some_and(is_full);
        for point in points.iter().filter(is_full) {
            let (system, served) = (point["system"].as_str()?, point["served_per_second"].as_f64()?);
            let highest = most.entry(system.to_owned()).or_insert(served);
            *highest = served.max(*highest);
        }
        let changes: Vec<_> = most
            .into_iter()
            .map(|(system, served)| format!("{:.1} ms on {system}", (1.0 / served - work_s).max(0.0) * 1e3))
            .collect();
        (!changes.is_empty()).then(|| changes.join(", "))
    }

    fn violations(&self) -> Option<String> {
        let mut reports = Vec::new();
        for entry in fs::read_dir(self.folder.join("chaos")).ok()? {
            let path = entry.ok()?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let report: Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
            if report["configuration"]["fence"] == "on" {
                reports.push(report);
            }
        }
        let count = |kind: &str| -> u64 {
            reports.iter().filter_map(|report| report["verdicts"][kind]["all"].as_u64()).sum()
        };
        let writes = count("stale_write") + count("late_write") + count("lost_update");
        let accepted: u64 = reports.iter().filter_map(|report| report["writes_accepted"].as_u64()).sum();
        let hours = reports.iter().filter_map(|report| report["lasted_ms"].as_f64()).sum::<f64>() / 3.6e6;
        Some(format!(
            "{writes} in {} runs, {hours:.1} hours of faults in all, in which {accepted} writes were accepted",
            reports.len()
        ))
    }

    fn stale_writes(&self) -> Option<String> {
        let arms = self.findings(1, "arms")?;
        let (all, of) = (
            |fence: &str| arms.iter().filter(|arm| arm["fence"] == fence).count(),
            |fence: &str, field: &str| {
                let is_by_a = |writes: &Value| {
                    writes.as_array().is_some_and(|writes| {
                        writes.iter().any(|write| write.as_str().is_some_and(|write| write.starts_with("a:")))
                    })
                };
                arms.iter().filter(|arm| arm["fence"] == fence && is_by_a(&arm[field])).count()
            },
        );
        Some(format!(
            "refused in {} of {} runs with fencing, accepted in {} of {} without",
            of("on", "refused"),
            all("on"),
            of("off", "accepted"),
            all("off")
        ))
    }

    fn throughput(&self) -> Option<String> {
        let points = self.points()?;
        let most = points.iter().filter_map(|point| point["contenders"].as_u64()).max()?;
        let of = |point: &Value| {
            Some(format!("{} {:.1}", point["system"].as_str()?, point["served_per_second"].as_f64()?))
        };
        let fullest = points.iter().filter(|point| point["contenders"] == most);
        let answers: Vec<_> = fullest.filter_map(of).collect();
        let work = points.first()?["work"].as_str()?;
        Some(format!(
            "{} with work of {work} and {most} contenders: 1 / work less the changes to the next holder, of \
             the second row",
            answers.join(", ")
        ))
    }

    fn fairness(&self) -> Option<String> {
        let arms = self.findings(5, "arms")?;
        let of = |arm: &Value| {
            let system = match (arm["system"].as_str()?, arm["polled"] == true) {
                ("redis", true) => "redis by polling",
                ("redis", false) => "redis",
                (system, _) => system,
            };
            let overtakings = arm["inversions"].as_u64()?;
            let p99_ms = arm["all"]["p99_ms"].as_f64()?;
            let per_thousand = 1e3 * overtakings as f64 / arm["served"].as_f64()?.max(1.0);
            let most = arm["overtaken_max"].as_u64()?;
            Some(format!(
                "{system}: {per_thousand:.0} overtakings in a thousand grants, at most {most} of one waiter, \
                 p99 {p99_ms:.0} ms"
            ))
        };
        Some(arms.iter().filter_map(of).collect::<Vec<_>>().join("; "))
    }

    fn releases(&self) -> Option<String> {
        let arms = self.findings(3, "forced")?;
        let of = |release: &str| {
            let arms = || arms.iter().filter(|arm| arm["release"] == release);
            let is_foreign = |arm: &&Value| {
                arm["verdicts"]
                    .as_array()
                    .is_some_and(|verdicts| verdicts.contains(&"foreign_release".into()))
            };
            (arms().filter(is_foreign).count(), arms().count())
        };
        let ((foreign, forced), (script, scripts)) = (of("get_then_del"), of("script"));
        Some(format!(
            "GET and DEL deleted another's lock in {foreign} of {forced} forced runs, the script in {script} \
             of {scripts}"
        ))
    }
}
