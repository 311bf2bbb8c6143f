//! A pause ends once: by itself, by a `resume`, or with its process.

use std::collections::BTreeSet;

use history::VerdictKind as Verdict;
use lab::{Arm, run};
use sim::Report;

/// Two workers on one Redis; one waits for longer than `within`, the limit of `stuck`.
const WORKERS: &str = r#"
about = "b waits for the lock that a holds"
system = "redis"
ttl = "2s"
within = "1ms"

[[worker]]
name = "a"
work = "1s"

[[worker]]
name = "b"
starts = "100ms"
rounds = 3
"#;

fn run_with(faults: &[(&str, &str)]) -> Report {
    let faults = faults.iter().map(|(when, what)| format!("\n[[fault]]\nwhen = {when}\nwhat = {what}\n"));
    let text = WORKERS.to_owned() + &faults.collect::<String>();
    let schedule = lab::parse("pauses", &text).unwrap_or_else(|error| panic!("{error}"));
    run(&schedule, Arm::Unfenced, 1).unwrap()
}

/// Returns the lines of the trace that contain `text`.
fn lines<'a>(trace: &'a str, text: &str) -> Vec<&'a str> {
    trace.lines().filter(|line| line.contains(text)).collect()
}

#[test]
fn a_resume_ends_an_endless_pause_and_heals_the_run() {
    let pause = ("{ at = \"200ms\" }", "{ pause = \"redis-1\" }");
    let resume = ("{ at = \"300ms\" }", "{ resume = \"redis-1\" }");
    let stuck = BTreeSet::from([Verdict::Stuck]);
    assert_eq!(run_with(&[]).kinds(), stuck, "this schedule exceeds its limit without any fault");
    let report = run_with(&[pause, resume]);
    assert_eq!(report.kinds(), stuck, "{}", report.trace());
    let report = run_with(&[pause]);
    assert!(report.kinds().is_empty(), "no waiter is stuck while a server is paused: {}", report.trace());
}

#[test]
fn a_resume_ends_the_endless_pause_first() {
    let short = ("{ at = \"200ms\" }", "{ pause = \"a\", for = \"700ms\" }");
    let endless = ("{ at = \"300ms\" }", "{ pause = \"a\" }");
    let resume = ("{ at = \"400ms\" }", "{ resume = \"a\" }");
    let trace = run_with(&[short, endless, resume]).trace();
    let resumed = lines(&trace, "resumed");
    assert_eq!(resumed.len(), 2, "{trace}");
    assert!(resumed[0].contains("0.400") && resumed[0].contains('▌'), "the other pause goes on: {trace}");
    assert!(resumed[1].contains("0.900") && !resumed[1].contains('▌'), "{trace}");
}

#[test]
fn a_trace_marks_a_process_until_its_last_pause_ends() {
    let trace = run_with(&[
        ("{ at = \"200ms\" }", "{ pause = \"a\", for = \"600ms\" }"),
        ("{ at = \"300ms\" }", "{ pause = \"a\", for = \"200ms\" }"),
        ("{ at = \"310ms\" }", "{ rate = \"a\", factor = 0.5, for = \"100ms\" }"),
    ])
    .trace();
    let marked: Vec<bool> = ["true again", "resumed"]
        .iter()
        .flat_map(|text| lines(&trace, text))
        .map(|line| line.contains('▌'))
        .collect();
    assert_eq!(marked, [true, true, false], "{trace}");
}

#[test]
fn a_crash_ends_the_pauses_of_its_process() {
    let trace = run_with(&[
        ("{ at = \"200ms\" }", "{ pause = \"a\", for = \"1s\" }"),
        ("{ at = \"300ms\" }", "{ crash = \"a\", restart_after = \"100ms\" }"),
        ("{ at = \"500ms\" }", "{ pause = \"a\", for = \"2s\" }"),
    ])
    .trace();
    let resumed = lines(&trace, "resumed");
    assert_eq!(resumed.len(), 1, "the end of a pause of an earlier life changes nothing: {trace}");
    assert!(resumed[0].contains("2.500"), "{trace}");
}

#[test]
fn a_pause_of_a_dead_process_ends_with_another_crash() {
    let report = run_with(&[
        ("{ at = \"200ms\" }", "{ crash = \"redis-1\", restart_after = \"500ms\" }"),
        ("{ at = \"300ms\" }", "{ pause = \"redis-1\", for = \"200ms\" }"),
        ("{ at = \"400ms\" }", "{ crash = \"redis-1\", restart_after = \"300ms\" }"),
    ]);
    let trace = report.trace();
    let accepted = lines(&trace, "accepted");
    assert!(accepted.iter().any(|line| line.contains(" b ")), "b waits for a server that is up: {trace}");
}
