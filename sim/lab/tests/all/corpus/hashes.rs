//! Compares every run of the corpus with the recorded hash of its trace: all fields of all events, with true
//! times.

use std::collections::BTreeMap;
use std::path::Path;

use lab::Arm;

use crate::support::{Case, corpus};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/corpus/trace_hashes.txt");

/// The environment variable that makes the test rewrite the file, if it is `1`.
const UPDATE: &str = "UPDATE_TRACE_HASHES";

const HEAD: &str = "\
# The hash of each run's trace: hash, schedule, arms. Arms whose runs are equal share a line.
# UPDATE_TRACE_HASHES=1 cargo test --test all corpus::hashes
";

/// The lines of one schedule, by its name.
type Lines = BTreeMap<String, Vec<String>>;

#[test]
fn every_run_of_the_corpus_has_its_trace_hash() {
    let found: Lines = corpus().iter().map(|case| (case.name.clone(), lines(case))).collect();
    if std::env::var(UPDATE).is_ok_and(|value| value == "1") {
        let lines = found.values().flatten().map(|line| format!("{line}\n"));
        std::fs::write(FILE, HEAD.to_owned() + &lines.collect::<String>()).unwrap();
        return;
    }
    let file = Path::new(FILE).file_name().unwrap().display();
    let problems = differences(&accepted(), &found);
    assert!(
        problems.is_empty(),
        "{} schedules differ from {file}:\n{}\n\
         to accept them all: {UPDATE}=1 cargo test --test all corpus::hashes",
        problems.len(),
        problems.join("\n"),
    );
}

/// Returns a line for each trace of the schedule; a single one if both arms gave the same trace.
fn lines(case: &Case) -> Vec<String> {
    let mut arms_by_hash: Vec<(u64, Vec<Arm>)> = Vec::new();
    for (arm, report) in case.runs() {
        match arms_by_hash.iter_mut().find(|(hash, _)| *hash == report.hash) {
            Some((_, arms)) => arms.push(arm),
            None => arms_by_hash.push((report.hash, vec![arm])),
        }
    }
    let line = |(hash, arms): (u64, Vec<Arm>)| {
        let arms: Vec<_> = arms.into_iter().map(Arm::name).collect();
        format!("{hash:016x} {} {}", case.name, arms.join(","))
    };
    arms_by_hash.into_iter().map(line).collect()
}

/// Returns the lines of the file, by schedule.
fn accepted() -> Lines {
    let text = std::fs::read_to_string(FILE).unwrap_or_default();
    let mut accepted = Lines::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(' ').nth(1).unwrap_or_else(|| panic!("{FILE}: {line:?} names no schedule"));
        accepted.entry(name.to_owned()).or_default().push(line.to_owned());
    }
    accepted
}

/// Returns a paragraph for each schedule whose lines differ.
fn differences(accepted: &Lines, found: &Lines) -> Vec<String> {
    let names: std::collections::BTreeSet<_> = accepted.keys().chain(found.keys()).collect();
    let of =
        |lines: &Lines, name: &String| lines.get(name).map_or("none".to_owned(), |lines| lines.join("; "));
    let differing = names.into_iter().filter(|name| accepted.get(*name) != found.get(*name));
    let paragraph = |name: &String| {
        format!(
            "{name}\n  accepted: {}\n  found:    {}\n  \
             to see it: cargo run --release -- replay seeds/{name}.toml",
            of(accepted, name),
            of(found, name)
        )
    };
    differing.map(paragraph).collect()
}

#[test]
fn a_difference_names_the_schedule_and_its_replay() {
    let lines = |text: &str| Lines::from([("gc-pause".to_owned(), vec![text.to_owned()])]);
    let (one, other) = (lines("0 gc-pause fenced"), lines("1 gc-pause fenced"));
    assert_eq!(differences(&one, &one), [""; 0]);
    let [difference] = &differences(&one, &other)[..] else { panic!("one schedule differs") };
    assert!(difference.contains("cargo run --release -- replay seeds/gc-pause.toml"), "{difference}");
    assert_eq!(differences(&Lines::new(), &one).len(), 1, "a new schedule");
    assert_eq!(differences(&one, &Lines::new()).len(), 1, "a schedule that is gone");
}
