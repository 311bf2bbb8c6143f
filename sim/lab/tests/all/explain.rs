//! Explaining: the ranges are true at both ends, and the sentence says what happened.

use std::path::Path;
use std::process::Command;

use history::VerdictKind;
use lab::museum::Museum;
use lab::{Arm, Options};
use sim::explore::{Broken, Causes, Explanation, Part, RUNS_MAX, Shrunk, explain, shrink, varied};
use sim::faults::Length;
use sim::{Schedule, Span, Subject};

/// Returns true if the schedule fails with the explained cause.
fn fails<S: Subject>(subject: &S, schedule: &Schedule<S::Options>, explanation: &Explanation) -> bool {
    let causes = Causes::of(subject, schedule, &sim::sim::run(subject, schedule));
    causes.violations.contains(&explanation.cause) || causes.excused.contains(&explanation.cause)
}

/// `seeds/gc-pause.toml` without fencing, shrunk.
fn gc_pause() -> (Museum, Schedule<Options>, Explanation) {
    let subject = Museum::new(Arm::Unfenced);
    let schedule = crate::support::case("gc-pause").schedule.clone();
    let causes = Causes::of(&subject, &schedule, &sim::sim::run(&subject, &schedule));
    let is_stale = |cause: &&sim::explore::Cause| cause.broken == Broken::Verdict(VerdictKind::StaleWrite);
    let cause = causes.excused.iter().find(is_stale).unwrap().clone();
    let Shrunk { schedule, .. } = shrink(&subject, &schedule, &cause, RUNS_MAX);
    let explanation = explain(&subject, &schedule, &cause).unwrap();
    (subject, schedule, explanation)
}

#[test]
fn ranges_are_true_at_both_ends() {
    let (subject, schedule, explanation) = gc_pause();
    let step = 1_000_000;
    let mut ends = 0;
    for (number, fault) in explanation.faults.iter().enumerate() {
        for range in &fault.ranges {
            let fails_with = |length: Length, nanos: u64| {
                let varied = varied(&subject, &schedule, number, &range.part, length.with_nanos(nanos));
                varied.is_some_and(|varied| fails(&subject, &varied, &explanation))
            };
            for (end, beyond) in [(range.from, -1), (range.to, 1)] {
                let Some(end) = end else { continue };
                assert!(fails_with(end, end.nanos()), "{range}: at {end}");
                let beyond = end.nanos().saturating_add_signed(beyond * step);
                assert!(!fails_with(end, beyond), "{range}: beyond {end}");
                ends += 1;
            }
        }
    }
    assert!(ends >= 2, "{explanation}");
}

#[test]
fn an_open_range_goes_on() {
    let (subject, schedule, explanation) = gc_pause();
    let range = &explanation.faults[0].ranges[0];
    assert_eq!((&range.part, range.to), (&Part::Field("for".to_owned()), None), "{explanation}");
    for secs in [3, 7, 59] {
        let length = Length::Span(Span::from_secs(secs));
        let varied = varied(&subject, &schedule, 0, &range.part, length).unwrap();
        assert!(fails(&subject, &varied, &explanation), "{secs} s");
    }
}

#[test]
fn the_sentence_says_what_happened_in_order() {
    let (_, _, explanation) = gc_pause();
    let clauses = [
        "a was granted orders:42 with token 1 at ",
        "pause of a struck at ",
        "the lock of a expired at ",
        "b was granted orders:42 with token 2 at ",
        "resource accepted the write of b with token 2 at ",
        "resource accepted the write of a with token 1 at ",
        "so the write of a replaced the newer one of b: stale_write.",
    ];
    let mut rest = explanation.sentence.as_str();
    for clause in clauses {
        let (_, after) = rest.split_once(clause).unwrap_or_else(|| panic!("{clause}: {explanation}"));
        rest = after;
    }
    assert_eq!(rest, "");
}

/// The sentence on the verdict that the schedule `seeds/NAME.toml` gives without fencing.
fn sentence(name: &str, kind: VerdictKind) -> String {
    let subject = Museum::new(Arm::Unfenced);
    let schedule = &crate::support::case(name).schedule;
    let causes = Causes::of(&subject, schedule, &sim::sim::run(&subject, schedule));
    let is_meant = |cause: &sim::explore::Cause| cause.broken == Broken::Verdict(kind);
    let cause = causes.violations.into_iter().chain(causes.excused).find(is_meant).unwrap();
    explain(&subject, schedule, &cause).unwrap().sentence
}

#[test]
fn the_sentence_names_a_promotion() {
    let sentence = sentence("failover-lost-lock", VerdictKind::StaleWrite);
    let promoted = "redis-1 died at 0.007, replica-1 was promoted at 0.507, b was granted ";
    assert!(sentence.contains(promoted), "{sentence}");
}

#[test]
fn a_lease_without_a_majority_is_told_with_its_nodes() {
    let unheld = sentence("redlock-slow-network-unchecked", VerdictKind::Unheld);
    let granted = "a was granted orders:42 with token 2 (stored on 5 of 5 nodes) at 2.894, ";
    let ending = "a trusted a lease on orders:42 that was stored on 2 of 5 nodes: unheld.";
    assert!(unheld.contains(granted) && unheld.ends_with(ending), "{unheld}");
    assert!(unheld.contains("the lock of a expired on redis-5 at 4.457"), "{unheld}");
    let two_valid = sentence("redlock-replies-in-flight-unchecked", VerdictKind::TwoValid);
    let ending = "the leases of b and a were valid at once, stored on 5 and 0 of 5 nodes: two_valid.";
    assert!(two_valid.ends_with(ending), "{two_valid}");
}

#[test]
fn a_renewal_is_told_with_its_time_to_live() {
    let overlap = sentence("renew-narrows", VerdictKind::Overlap);
    let extended = "a extended the lock of a to a TTL of 2s at 0.671, pause of a struck at 0.972, ";
    assert!(overlap.contains(extended), "{overlap}");
    let subject = Museum::new(Arm::Fenced);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../seeds/museum/renewal-logged-redis.toml");
    let schedule = lab::museum::load(&path).unwrap();
    let causes = Causes::of(&subject, &schedule, &sim::sim::run(&subject, &schedule));
    let unheld = explain(&subject, &schedule, &causes.violations[0]).unwrap().sentence;
    assert!(unheld.contains(" renewed its lease with token ") && unheld.contains(" (valid for "), "{unheld}");
}

#[test]
fn seeds_that_break_are_counted() {
    let (subject, schedule, explanation) = gc_pause();
    let breaks = |seed: &u64| {
        let limit = schedule.limit.plus(Span::from_secs(10));
        let other = Schedule { seed: *seed, limit, ..schedule.clone() };
        fails(&subject, &other, &explanation)
    };
    assert_eq!((0..100).filter(breaks).count(), explanation.seeds as usize);
    assert!(explanation.seeds > 0);
}

#[test]
fn the_command_prints_ranges_and_seeds() {
    let output = Command::new(env!("CARGO_BIN_EXE_sim"))
        .args(["explain", "seeds/gc-pause.toml", "--verdict", "stale_write"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("pause of a after `entered` of a: for any from "), "{text}");
    assert!(text.contains("\nseed: "), "{text}");
}
