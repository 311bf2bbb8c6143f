use history::{Kind, Name, Verdict, VerdictKind};

use crate::story::{accepted, acquired, claimed, crashed, judge, key, lines, only, read};

/// Begins a call that accepts values with a token above this one.
fn started(above: u64) -> Kind {
    Kind::FlightStarted { key: key(), above }
}

fn computes(token: u64) -> Kind {
    Kind::ComputationStarted { key: key(), token }
}

fn failed(token: u64) -> Kind {
    Kind::ComputationFailed { key: key(), token }
}

fn returned(token: u64) -> Kind {
    Kind::ResultReturned { key: key(), token }
}

/// Judges what follows two calls, of which that of `a` has stored the value with token 1.
fn after_a_value<const N: usize>(events: [(u64, &'static str, Kind); N]) -> Vec<Verdict> {
    let value = [
        (1, "a", started(0)),
        (2, "b", started(0)),
        (3, "a", acquired("a", 1)),
        (4, "a", computes(1)),
        (5, "resource", accepted("a", 1, 1)),
        (6, "a", returned(1)),
    ];
    judge(value.into_iter().chain(events))
}

#[test]
fn a_value_that_is_computed_again_is_convicted() {
    let verdicts = after_a_value([(10, "b", acquired("b", 2)), (11, "b", computes(2))]);
    assert_eq!(lines(&verdicts), ["computed_twice b a"]);
    let verdict = only(VerdictKind::ComputedTwice, &verdicts);
    assert_eq!(
        verdict.detail,
        "b computed at 0.011 with token 2, although the value with token 1 was stored before its lease was \
         granted, and it accepts those above 0"
    );
    assert_eq!(verdict.event, Some(7));
    assert_eq!(verdict.because, [1, 2, 4, 6], "the call, the grant and the write of a, the grant of b");
}

#[test]
fn a_process_may_not_compute_its_own_value_again() {
    let verdicts = after_a_value([(10, "a", acquired("a", 2)), (11, "a", computes(2))]);
    assert_eq!(lines(&verdicts), ["computed_twice a"]);
}

#[test]
fn a_lease_that_was_granted_before_the_value_may_compute() {
    let events = [
        (1, "a", started(0)),
        (2, "b", started(0)),
        (3, "a", acquired("a", 1)),
        (4, "a", computes(1)),
        (5, "b", acquired("b", 2)),
        (6, "resource", accepted("a", 1, 1)),
        (7, "b", computes(2)),
    ];
    assert_eq!(judge(events), []);
}

#[test]
fn a_call_that_accepts_only_newer_values_may_compute() {
    let newer = after_a_value([(7, "b", started(1)), (10, "b", acquired("b", 2)), (11, "b", computes(2))]);
    assert_eq!(newer, []);
}

#[test]
fn a_failure_lets_others_compute() {
    let events = [
        (1, "a", started(0)),
        (2, "b", started(0)),
        (3, "a", acquired("a", 1)),
        (4, "a", computes(1)),
        (5, "a", failed(1)),
        (6, "resource", accepted("a", 1, 1)),
        (7, "a", returned(1)),
        (8, "b", acquired("b", 2)),
        (9, "b", computes(2)),
    ];
    assert_eq!(judge(events), []);
}

#[test]
fn a_failure_that_replaces_a_value_lets_others_compute() {
    let before_the_grant = after_a_value([
        (10, "c", started(1)),
        (11, "c", acquired("c", 2)),
        (12, "c", computes(2)),
        (13, "c", failed(2)),
        (14, "resource", accepted("c", 2, 2)),
        (15, "b", acquired("b", 3)),
        (16, "b", computes(3)),
    ]);
    assert_eq!(before_the_grant, []);
    let after_the_grant = after_a_value([
        (10, "c", started(1)),
        (11, "c", acquired("c", 2)),
        (12, "c", computes(2)),
        (13, "b", acquired("b", 3)),
        (14, "c", failed(2)),
        (15, "resource", accepted("c", 2, 2)),
        (16, "b", computes(3)),
    ]);
    assert_eq!(after_the_grant, []);
}

/// Without fencing, the late write of e replaces a newer value, which d then can't find.
#[test]
fn an_older_value_that_replaces_a_newer_one_hides_it() {
    let verdicts = after_a_value([
        (7, "c", started(1)),
        (8, "c", acquired("c", 3)),
        (9, "c", computes(3)),
        (10, "resource", accepted("c", 3, 2)),
        (11, "d", started(2)),
        (12, "d", acquired("d", 4)),
        (13, "resource", accepted("e", 2, 3)),
        (14, "d", computes(4)),
    ]);
    assert_eq!(lines(&verdicts), ["stale_write e c"]);
}

#[test]
fn a_crash_of_the_resource_may_forget_the_value() {
    let before_the_grant =
        after_a_value([(8, "resource", crashed()), (9, "b", acquired("b", 2)), (10, "b", computes(2))]);
    assert_eq!(before_the_grant, []);
    let after_the_grant =
        after_a_value([(8, "b", acquired("b", 2)), (9, "resource", crashed()), (10, "b", computes(2))]);
    assert_eq!(after_the_grant, []);
    let other = after_a_value([(8, "a", crashed()), (9, "b", acquired("b", 2)), (10, "b", computes(2))]);
    only(VerdictKind::ComputedTwice, &other);
}

#[test]
fn a_value_that_was_stored_after_a_crash_counts() {
    let verdicts = after_a_value([
        (8, "resource", crashed()),
        (9, "a", acquired("a", 2)),
        (10, "a", computes(2)),
        (11, "resource", accepted("a", 2, 2)),
        (12, "b", acquired("b", 3)),
        (13, "b", computes(3)),
    ]);
    only(VerdictKind::ComputedTwice, &verdicts);
}

#[test]
fn a_resource_that_was_restarted_empty_lets_others_compute() {
    let verdicts = after_a_value([
        (10, "b", acquired("b", 2)),
        (11, "resource", claimed("b", 2, 0)),
        (12, "b", computes(2)),
    ]);
    assert_eq!(verdicts, []);
}

#[test]
fn a_result_that_was_never_accepted_is_convicted() {
    assert_eq!(after_a_value([(7, "b", returned(1))]), []);
    let verdicts = after_a_value([(7, "b", returned(2))]);
    assert_eq!(lines(&verdicts), ["unstored_result b"]);
    let verdict = only(VerdictKind::UnstoredResult, &verdicts);
    let detail = "b returned at 0.007 a result with token 2, which the resource never accepted";
    assert_eq!(verdict.detail, detail);
    assert_eq!(verdict.because, [1], "the call of b");
}

#[test]
fn a_result_that_the_history_may_lack_is_not_judged() {
    // The resource crashed between a write and its event.
    assert_eq!(after_a_value([(7, "resource", crashed()), (8, "b", returned(2))]), []);
    // It has stored one write more than the history has.
    assert_eq!(after_a_value([(7, "resource", read("b", 2)), (8, "b", returned(2))]), []);
    // Its history is missing, or begins later.
    assert_eq!(judge([(1, "a", started(0)), (2, "a", returned(1))]), []);
    assert_eq!(judge([(1, "a", started(0)), (2, "resource", read("a", 3)), (3, "a", returned(1))]), []);
}

#[test]
fn the_calls_of_other_keys_are_judged_apart() {
    let key = || Name::from("other");
    let granted = Kind::LeaseAcquired {
        resource_type: None,
        key: key(),
        owner: "b:28999649".into(),
        token: 2,
        ttl_millis: None,
        valid_micros: None,
    };
    let verdicts = after_a_value([
        (7, "b", Kind::FlightStarted { key: key(), above: 0 }),
        (8, "b", granted),
        (9, "b", Kind::ComputationStarted { key: key(), token: 2 }),
    ]);
    assert_eq!(verdicts, []);
}

#[test]
fn a_value_that_its_caller_knows_is_convicted() {
    let newer = [(7, "b", started(0)), (8, "b", returned(1))];
    assert_eq!(after_a_value(newer), []);
    let verdicts = after_a_value([(7, "b", started(1)), (8, "b", returned(1))]);
    assert_eq!(lines(&verdicts), ["old_result b"]);
    let verdict = only(VerdictKind::OldResult, &verdicts);
    let detail = "b returned at 0.008 the result with token 1, although it accepts those above 1";
    assert_eq!(verdict.detail, detail);
    assert_eq!(verdict.because, [6], "the call of b");
}

/// Judges a call of `b` that returns a failure: `events` say how it was stored, and when the call began.
fn after_a_failure<const N: usize>(events: [(u64, &'static str, Kind); N]) -> Vec<Verdict> {
    let computes =
        [(1, "a", started(0)), (2, "a", acquired("a", 1)), (3, "a", computes(1)), (4, "a", failed(1))];
    judge(computes.into_iter().chain(events).chain([(20, "b", returned(1))]))
}

#[test]
fn a_failure_is_for_those_who_wait_for_it() {
    let stored = |at| (at, "resource", accepted("a", 1, 1));
    assert_eq!(after_a_failure([(5, "b", started(0)), stored(6)]), []);
    let verdicts = after_a_failure([stored(5), (6, "b", started(0))]);
    let verdict = only(VerdictKind::OldResult, &verdicts);
    let detail =
        "b returned at 0.020 the result with token 1, a failure that was stored before its call began";
    assert_eq!(verdict.detail, detail);
    // Stored again, by a retry that came after the call.
    let twice = after_a_failure([stored(5), (6, "b", started(0)), stored(7)]);
    assert_eq!(lines(&twice), ["stale_write a a"]);
}

#[test]
fn old_results_of_a_resource_that_lost_some_are_not_judged() {
    let crash = (5, "resource", crashed());
    let events = [(7, "b", started(1)), (8, "resource", crashed()), (9, "b", returned(1))];
    assert_eq!(after_a_value(events), []);
    let stored = (4, "resource", accepted("a", 1, 1));
    assert_eq!(after_a_failure([stored, crash, (6, "b", started(0))]), []);
}
