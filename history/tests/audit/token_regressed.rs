use history::VerdictKind;

use crate::story::{acquired, judge, lines, not_acquired, only, requested};

/// K8 of docs/redlock.md: two nodes of five have counted to 10, the others to 1.
#[test]
fn a_later_acquire_with_a_smaller_token_is_a_regress() {
    let verdicts = judge([
        (0, "a", requested("a")),
        (9, "a", acquired("a", 11)),
        (20, "b", requested("b")),
        (31, "b", acquired("b", 2)),
    ]);
    let verdict = only(VerdictKind::TokenRegressed, &verdicts);
    assert_eq!(
        verdict.detail,
        "b got token 2 at 0.031, although a had been given token 11 at 0.009, before b asked"
    );
}

#[test]
fn a_later_acquire_with_an_equal_token_is_a_regress() {
    let verdicts = judge([
        (0, "a", requested("a")),
        (9, "a", acquired("a", 1)),
        (9, "b", requested("b")),
        (31, "b", acquired("b", 1)),
    ]);
    assert_eq!(lines(&verdicts), ["token_regressed b a"]);
}

#[test]
fn concurrent_acquires_may_return_in_any_order() {
    let verdicts = judge([
        (0, "a", requested("a")),
        (1, "b", requested("b")),
        (9, "b", acquired("b", 2)),
        (10, "a", acquired("a", 1)),
    ]);
    assert_eq!(verdicts, []);
}

#[test]
fn the_highest_token_counts_not_the_last() {
    let verdicts = judge([
        (0, "a", requested("a")),
        (1, "b", requested("b")),
        (2, "a", acquired("a", 5)),
        (3, "b", acquired("b", 3)),
        (4, "c", requested("c")),
        (5, "c", acquired("c", 4)),
    ]);
    assert_eq!(lines(&verdicts), ["token_regressed c a"]);
}

#[test]
fn a_failed_attempt_is_forgotten() {
    let verdicts = judge([
        (0, "a", requested("a")),
        (9, "a", acquired("a", 5)),
        (10, "b", requested("b")),
        (20, "b", not_acquired("b")),
        (30, "b", acquired("b", 5)),
    ]);
    assert_eq!(verdicts, [], "the second acquire's beginning is not in the history");
}

/// A lease without a token has no place in the order, and hides none.
#[test]
fn a_lease_without_a_token_is_not_judged() {
    let verdicts = judge([
        (0, "a", requested("a")),
        (9, "a", acquired("a", 5)),
        (20, "b", requested("b")),
        (31, "b", acquired("b", 0)),
    ]);
    assert_eq!(verdicts, []);
    let verdicts = judge([
        (0, "a", requested("a")),
        (9, "a", acquired("a", 5)),
        (20, "b", requested("b")),
        (31, "b", acquired("b", 0)),
        (40, "c", requested("c")),
        (41, "c", acquired("c", 5)),
    ]);
    assert_eq!(lines(&verdicts), ["token_regressed c a"]);
}
