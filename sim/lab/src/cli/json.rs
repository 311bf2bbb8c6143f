//! A run as one JSON object.

use std::collections::BTreeMap;
use std::time::Duration;

use history::Fairness;
use lab::{Arm, Options};
use serde::Serialize;
use sim::Schedule;
use sim::sim::{Mismatch, Report};

/// The object that `--json` prints: sums over all arms that were run, and some values by arm.
#[derive(Serialize)]
pub(crate) struct Object {
    /// The seed of the run's randomness.
    seed: u64,
    /// The schedule's file, or `drawn from the seed`.
    schedule: String,
    /// True if every arm gave the expected outcome; absent if the schedule expects none.
    #[serde(skip_serializing_if = "Option::is_none")]
    as_expected: Option<bool>,
    verdicts: Vec<JsonVerdict>,
    counts: BTreeMap<&'static str, u64>,
    /// The hash of the trace, by arm.
    trace_hash: BTreeMap<&'static str, String>,
    /// Simulated time in seconds, by arm.
    simulated_seconds: BTreeMap<&'static str, f64>,
    /// Fairness of the lock, by arm: order of arrival against order of grant.
    fairness: BTreeMap<&'static str, Fairness>,
    /// Commands that the lock servers executed.
    commands: u64,
    /// Real time of the runs, in seconds.
    wall_seconds: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mismatches: Vec<String>,
}

#[derive(Serialize)]
struct JsonVerdict {
    kind: String,
    /// The resource.
    key: String,
    processes: Vec<String>,
    /// True time in seconds.
    at: f64,
    /// `on` or `off`.
    fence: &'static str,
    detail: String,
}

impl Object {
    pub(crate) fn new(schedule: &Schedule<Options>, name: String) -> Self {
        Self {
            seed: schedule.seed,
            schedule: name,
            as_expected: None,
            verdicts: Vec::new(),
            counts: BTreeMap::new(),
            trace_hash: BTreeMap::new(),
            simulated_seconds: BTreeMap::new(),
            fairness: BTreeMap::new(),
            commands: 0,
            wall_seconds: 0.0,
            mismatches: Vec::new(),
        }
    }

    /// Adds the run of one arm, which took `wall`.
    pub(crate) fn add(&mut self, arm: Arm, report: &Report, wall: Duration, mismatches: Option<&[Mismatch]>) {
        let fence = fence(arm);
        self.seed = report.seed;
        self.verdicts.extend(report.verdicts.iter().map(|verdict| JsonVerdict {
            kind: verdict.kind.to_string(),
            key: report.names.key(&verdict.key).to_owned(),
            processes: verdict.processes.iter().map(ToString::to_string).collect(),
            at: verdict.at.0 as f64 / 1e9,
            fence,
            detail: verdict.detail.clone(),
        }));
        for (what, count) in counts(report) {
            *self.counts.entry(what).or_default() += count;
        }
        self.trace_hash.insert(fence, format!("{:016x}", report.hash));
        self.simulated_seconds.insert(fence, report.simulated.as_secs_f64());
        self.fairness.insert(fence, Fairness::of(&report.events));
        self.commands += report.commands;
        self.wall_seconds += wall.as_secs_f64();
        if let Some(mismatches) = mismatches {
            self.as_expected = Some(self.as_expected.unwrap_or(true) && mismatches.is_empty());
            self.mismatches.extend(mismatches.iter().map(|mismatch| format!("fencing {fence}: {mismatch}")));
        }
    }

    /// Formats the object, with a line feed at its end.
    pub(crate) fn text(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

fn fence(arm: Arm) -> &'static str {
    match arm {
        Arm::Unfenced => "off",
        Arm::Fenced => "on",
    }
}

fn counts(report: &Report) -> [(&'static str, u64); 13] {
    let summary = report.summary();
    [
        ("accepted", summary.accepted.len() as u64),
        ("refused", summary.refused.len() as u64),
        ("repeated", report.repeated().len() as u64),
        ("grants", summary.grants),
        ("releases", summary.releases),
        ("renewals", summary.renewals),
        ("expiries", summary.expiries),
        ("updates", summary.updates.made),
        ("update_attempts", summary.updates.attempts),
        ("update_conflicts", summary.updates.conflicts),
        ("updates_given_up", summary.updates.given_up),
        ("faults", report.faults_struck() as u64),
        ("events", report.events.len() as u64),
    ]
}
