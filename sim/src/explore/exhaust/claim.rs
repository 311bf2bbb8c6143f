//! The result of a search, and the exact claim that it allows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::breaks::Break;
use super::candidate::Candidate;
use crate::Schedule;
use crate::faults::{FAULTS, Form};
use crate::sim::Step;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The result of an exhaustive search.
#[derive(Clone, Debug)]
pub struct Exhausted<O> {
    /// The largest number of faults of a placement.
    pub faults: usize,
    /// Number of placements that were run, the one without a fault included.
    pub runs: u64,
    /// Number of these placements whose results come from the progress file.
    pub resumed: u64,
    /// Number of first faults whose placements were not all run. The number of these placements is not known.
    pub remaining: usize,
    /// Number of first faults that were left out: they touch no step, or first touch the same step as one
    /// that was placed.
    pub alike: u64,
    /// Number of placements that the subject refuses, such as a second promotion.
    pub refused: u64,
    /// The smallest placements that break a promise, one for each cause.
    pub breaks: Vec<Break<O>>,
    /// The workload.
    pub base: Schedule<O>,
    /// The trace hash of its run without faults, which depends on the versions of all code in it.
    pub hash: u64,
    /// The arm of the runs.
    pub arm: &'static str,
    /// The forms of faults, each with its targets.
    pub(super) targets: Vec<(Form, Vec<String>)>,
    /// The points of the run without faults: for each process, the names with the numbers of passings.
    pub(super) points: BTreeMap<String, BTreeMap<String, u32>>,
    /// The processes that faults may affect; `None` for all.
    pub(super) befall: Option<BTreeSet<String>>,
}

impl<O: Clone + Serialize + DeserializeOwned> Exhausted<O> {
    /// Returns the claim: the placements that were run, the result, and what is not covered.
    pub fn claim(&self) -> String {
        let mut text = match self.breaks.first() {
            None => "no violation in all ".to_owned(),
            Some(least) => format!(
                "violations, the smallest with {}, in ",
                counted(least.faults as u64, "fault", "faults")
            ),
        };
        let _ = writeln!(
            text,
            "{} placements of at most {}, of these kinds and durations, at these points, for this workload, \
             these versions and this seed; {} remaining.",
            self.runs,
            counted(self.faults as u64, "fault", "faults"),
            self.remaining(),
        );
        self.write_scope(&mut text);
        self.write_uncovered(&mut text);
        text
    }

    fn remaining(&self) -> String {
        match self.remaining {
            0 => "0".to_owned(),
            first => format!("{first} first faults with all that follows them are"),
        }
    }

    fn write_scope(&self, text: &mut String) {
        text.push_str("\nKinds and durations:\n");
        for (form, targets) in &self.targets {
            let _ = writeln!(text, "- {form}: {}", targets.join(", "));
        }
        text.push_str(
            "\nPoints of the run without faults (later faults: those of the run that they are in):\n",
        );
        for (process, points) in &self.points {
            let name = |(point, count): (&String, &u32)| {
                if *count == 1 { point.clone() } else { format!("{point} ×{count}") }
            };
            let names: Vec<String> = points.iter().map(name).collect();
            let _ = writeln!(text, "- {process}: {}", names.join(", "));
        }
        let _ = writeln!(text, "\nWorkload ({}):\n\n{}", self.arm, indented(&self.base.to_toml()));
        let version = env!("CARGO_PKG_VERSION");
        let _ = writeln!(
            text,
            "Versions: sim, dlock and resource {version}; the run without faults has the trace {:016x}. \
             Seed: {}.",
            self.hash, self.base.seed
        );
    }

    fn write_uncovered(&self, text: &mut String) {
        let placed: BTreeSet<&str> = self.targets.iter().map(|(form, _)| form.verb()).collect();
        let others = FAULTS.iter().map(|kind| kind.verb).filter(|verb| !placed.contains(verb));
        let others: Vec<&str> = others.collect();
        let _ = write!(
            text,
            "\nNot covered:\n\
             - more than {}\n\
             - other durations, those included that differ by the time between two points\n\
             - other kinds of faults: {}; links between servers\n\
             - other times than those points: before the first one, and between two of them\n\
             - other seeds: latencies, backoff, the order of tasks that are ready at once\n\
             - further faults in a schedule that breaks a promise already\n",
            counted(self.faults as u64, "fault", "faults"),
            if others.is_empty() { "none".to_owned() } else { others.join(", ") },
        );
        if let Some(befall) = &self.befall {
            let names: Vec<&str> = befall.iter().map(String::as_str).collect();
            let _ = writeln!(text, "- faults of other processes than {}", names.join(", "));
        }
        let _ = write!(
            text,
            "\nNot run: {} first faults that touch nothing or first touch the same step as one that was placed; \
             {} placements that the workload's rules refuse.\n",
            self.alike, self.refused
        );
    }
}

/// Returns the forms, each with the targets of its faults.
pub(super) fn targets(forms: &[Form], candidates: &[Candidate]) -> Vec<(Form, Vec<String>)> {
    let of = |number: usize| {
        let own = candidates.iter().filter(|candidate| candidate.form == number);
        own.map(|candidate| candidate.target.clone()).collect::<Vec<_>>()
    };
    let all = forms.iter().enumerate().map(|(number, form)| (form.clone(), of(number)));
    all.filter(|(_, targets)| !targets.is_empty()).collect()
}

/// Returns the points of the steps, by process.
pub(super) fn points<'a>(steps: impl Iterator<Item = &'a Step>) -> BTreeMap<String, BTreeMap<String, u32>> {
    let mut points: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
    for step in steps {
        let of_process = points.entry(step.process.to_string()).or_default();
        *of_process.entry(step.point.to_string()).or_default() += 1;
    }
    points
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}
