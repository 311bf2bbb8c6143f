use history::{Kind, VerdictKind};

use crate::story::{
    accepted, accepted_number, accepted_unnamed, acquired, claimed, entered, judge, key, left, lines, only,
    rejected, repeated,
};

/// Kleppmann's figure (K1 of docs/redlock.md), with fencing off.
#[test]
fn a_paused_holders_write_after_its_successors_is_stale() {
    let verdicts = judge([
        (14, "a", acquired("a", 1)),
        (14, "a", entered("a", 1)),
        (2031, "b", acquired("b", 2)),
        (2031, "b", entered("b", 2)),
        (2085, "resource", accepted("b", 2, 1)),
        (2090, "b", left("b", 2)),
        (5071, "resource", accepted("a", 1, 2)),
        (5080, "a", left("a", 1)),
    ]);
    assert_eq!(lines(&verdicts), ["overlap a b", "stale_write a b"]);
    assert_eq!(
        verdicts[1].detail,
        "the resource accepted the write of a (token 1) at 5.071, after that of b (token 2) at 2.085"
    );
}

/// The same figure with fencing on.
#[test]
fn a_refused_stale_write_does_no_harm() {
    let verdicts = judge([(2085, "resource", accepted("b", 2, 1)), (5071, "resource", rejected("a", 1, 2))]);
    assert_eq!(verdicts, []);
}

#[test]
fn growing_tokens_are_in_order() {
    let verdicts = judge([(1, "resource", accepted("a", 33, 1)), (2, "resource", accepted("b", 34, 2))]);
    assert_eq!(verdicts, []);
}

#[test]
fn numbered_writes_of_one_holder_count_up() {
    let counted =
        [(1, "resource", accepted_number("a", 7, 1, 1)), (2, "resource", accepted_number("a", 7, 2, 2))];
    let last = (3, "resource", accepted("a", 7, 3));
    assert_eq!(judge(counted.clone().into_iter().chain([last.clone()])), []);
    let after_the_last =
        judge(counted.into_iter().chain([last, (4, "resource", accepted_number("a", 7, 3, 4))]));
    assert_eq!(lines(&after_the_last), ["stale_write a a"]);
}

#[test]
fn a_number_that_does_not_grow_is_stale() {
    let verdicts = judge([
        (1, "resource", accepted_number("a", 7, 2, 1)),
        (2, "resource", accepted_number("a", 7, 1, 2)),
    ]);
    only(VerdictKind::StaleWrite, &verdicts);
}

#[test]
fn a_repeated_position_is_stale_unless_a_recognised_retry() {
    let stored_twice = judge([(1, "resource", accepted("a", 7, 1)), (2, "resource", accepted("a", 7, 2))]);
    only(VerdictKind::StaleWrite, &stored_twice);
    assert_eq!(judge([(1, "resource", accepted("a", 7, 1)), (2, "resource", repeated("a", 7, 1))]), []);
}

#[test]
fn an_equal_token_of_another_owner_is_stale() {
    let verdicts = judge([
        (1, "resource", accepted_number("a", 1, 1, 1)),
        (2, "resource", accepted_number("b", 1, 2, 2)),
    ]);
    assert_eq!(lines(&verdicts), ["stale_write b a"]);
}

#[test]
fn after_a_stale_write_the_highest_token_still_counts() {
    let verdicts = judge([
        (1, "resource", accepted("c", 3, 1)),
        (2, "resource", accepted("a", 1, 2)),
        (3, "resource", accepted("b", 2, 3)),
    ]);
    assert_eq!(lines(&verdicts), ["stale_write a c", "stale_write b c"]);
}

#[test]
fn a_claim_is_no_write() {
    assert_eq!(judge([(1, "resource", claimed("b", 2, 0)), (2, "resource", accepted("b", 2, 1))]), []);
}

#[test]
fn a_writer_without_an_owner_is_named_by_its_token() {
    let verdicts = judge([
        (1, "a", acquired("a", 1)),
        (2, "b", acquired("b", 2)),
        (3, "resource", accepted_unnamed(2, 1)),
        (4, "resource", accepted_unnamed(1, 2)),
    ]);
    assert_eq!(lines(&verdicts), ["stale_write a b"]);
}

#[test]
fn after_an_operator_has_set_the_fence_the_rule_goes_on_from_there() {
    let poisoned = [(1, "resource", accepted("a", 34, 1)), (2, "resource", accepted("x", u64::MAX, 2))];
    let set = (3, "resource", Kind::FenceSet { key: key(), token: 34, seen: u64::MAX });
    let next = (4, "resource", accepted("b", 35, 3));
    assert_eq!(lines(&judge(poisoned.clone().into_iter().chain([next.clone()]))), ["stale_write b x"]);
    assert_eq!(judge(poisoned.clone().into_iter().chain([set.clone(), next])), []);
    let late = (4, "resource", accepted("c", 33, 3));
    let verdicts = judge(poisoned.into_iter().chain([set, late]));
    only(VerdictKind::StaleWrite, &verdicts);
}
