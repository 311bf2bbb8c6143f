//! Conditional writes: they lose no update, unless the resource accepts one on an old version.

use history::{Summary, Updates, VerdictKind};

use crate::story::{accepted, claimed, conditional, conditional_unnamed, history, judge, lines, only, read};

#[test]
fn updates_that_saw_one_another_lose_nothing() {
    let verdicts = judge([
        (1, "resource", read("a", 0)),
        (2, "resource", read("b", 0)),
        (3, "resource", conditional("a", 0, 1)),
        (4, "resource", read("b", 1)),
        (5, "resource", conditional("b", 1, 2)),
    ]);
    assert_eq!(verdicts, []);
}

#[test]
fn a_write_accepted_on_an_old_version_loses_an_update() {
    let verdicts = judge([
        (1, "resource", read("a", 0)),
        (2, "resource", read("b", 0)),
        (3, "resource", conditional("a", 0, 1)),
        (4, "resource", conditional("b", 0, 2)),
    ]);
    assert_eq!(
        only(VerdictKind::LostUpdate, &verdicts).detail,
        "b (if version 0) read version 0 at 0.002, a (if version 0) wrote version 1 at 0.003, \
         and b overwrote it at 0.004 without having seen it"
    );
}

#[test]
fn the_expected_version_counts_as_read_by_its_writer() {
    let verdicts = judge([
        (1, "resource", conditional_unnamed(0, 1)),
        (2, "resource", conditional_unnamed(1, 2)),
        (3, "resource", conditional_unnamed(1, 3)),
    ]);
    let verdict = only(VerdictKind::LostUpdate, &verdicts);
    assert!(verdict.detail.contains("had seen version 1"), "{}", verdict.detail);
}

#[test]
fn a_conditional_write_to_a_locked_key_bypasses_the_fence() {
    let stale = judge([(1, "resource", accepted("b", 34, 1)), (2, "resource", conditional("c", 1, 2))]);
    assert_eq!(
        only(VerdictKind::StaleWrite, &stale).detail,
        "the resource accepted the write of c (no token) at 0.002, after that of b (token 34) at 0.001"
    );
    let late = judge([(1, "resource", claimed("b", 34, 0)), (2, "resource", conditional("c", 0, 1))]);
    assert_eq!(lines(&late), ["late_write c b"]);
    // The holder's write then overwrites one that it has not seen.
    let lost = judge([
        (1, "resource", claimed("b", 34, 0)),
        (2, "resource", conditional("c", 0, 1)),
        (3, "resource", accepted("b", 34, 2)),
    ]);
    assert_eq!(lines(&lost), ["late_write c b", "lost_update b c"]);
}

#[test]
fn attempts_and_conflicts_are_counted() {
    use history::Kind::{ConditionalRejected, ConditionalSent, UpdateEnded};
    let key = || crate::story::KEY.into();
    let sent = || ConditionalSent { key: key(), owner: None, expected: 0 };
    let rejected = |outcome: &str| ConditionalRejected {
        key: key(),
        owner: None,
        expected: 0,
        version: Some(1),
        seen: None,
        outcome: Some(outcome.into()),
    };
    let ended = |outcome: &str| UpdateEnded { key: key(), owner: None, outcome: Some(outcome.into()) };
    let events = history([
        (1, "a", sent()),
        (2, "resource", conditional("a", 0, 1)),
        (3, "a", ended("done")),
        (4, "b", sent()),
        (5, "resource", rejected("conflict")),
        (6, "b", sent()),
        (7, "resource", rejected("fenced")),
        (8, "b", ended("fenced")),
    ]);
    let updates = Summary::of(&events).updates;
    assert_eq!(updates, Updates { made: 1, attempts: 3, conflicts: 1, fenced: 1, given_up: 1 });
    assert_eq!(updates.attempts_per_update(), Some(3.0));
}
