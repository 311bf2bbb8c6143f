use history::{Kind, Verdict, VerdictKind};

use crate::story::{
    accepted, acquired, crashed, entered, judge, left, lines, only, release_requested, released, sent,
};

/// Judges what follows a round of `a` that ends with the release.
fn after_a_round<const N: usize>(events: [(u64, &'static str, Kind); N]) -> Vec<Verdict> {
    let round = [
        (0, "a", acquired("a", 1)),
        (1, "a", entered("a", 1)),
        (9, "a", sent("a", 1)),
        (10, "a", left("a", 1)),
        (11, "a", release_requested("a", 1)),
    ];
    judge(round.into_iter().chain(events))
}

#[test]
fn a_write_that_is_sent_after_the_own_release_is_convicted() {
    let verdicts = after_a_round([(12, "a", released("a", 1, "done")), (20, "a", sent("a", 1))]);
    let verdict = only(VerdictKind::AfterRelease, &verdicts);
    assert_eq!(
        verdict.detail,
        "a (token 1) had begun to release the lock at 0.011, and sent a write at 0.020"
    );
}

#[test]
fn a_release_that_fails_or_has_no_answer_is_one_too() {
    only(VerdictKind::AfterRelease, &after_a_round([(20, "a", sent("a", 1))]));
    let failed = [(12, "a", released("a", 1, "error")), (20, "a", sent("a", 1)), (30, "a", sent("a", 1))];
    only(VerdictKind::AfterRelease, &after_a_round(failed));
}

#[test]
fn a_write_that_was_sent_before_the_release_may_arrive_after_it() {
    assert_eq!(after_a_round([(20, "resource", accepted("a", 1, 1))]), []);
}

#[test]
fn the_next_round_of_the_same_process_or_owner_is_another_matter() {
    assert_eq!(after_a_round([(20, "a", acquired("a:00000002", 2)), (21, "a", sent("a:00000002", 2))]), []);
    assert_eq!(after_a_round([(20, "a", acquired("a", 2)), (21, "a", sent("a", 2))]), []);
}

#[test]
fn another_process_with_the_same_owner_has_not_released() {
    assert_eq!(after_a_round([(20, "b", sent("a", 1))]), []);
}

#[test]
fn a_section_that_goes_on_after_the_own_release_may_meet_no_other() {
    let begins =
        [(0, "a", acquired("a", 1)), (1, "a", entered("a", 1)), (10, "a", release_requested("a", 1))];
    let and_then = |events: Vec<(u64, &'static str, Kind)>| judge(begins.clone().into_iter().chain(events));
    let verdicts = and_then(vec![(20, "b", entered("b", 2)), (30, "a", left("a", 1))]);
    assert_eq!(lines(&verdicts), ["overlap a b", "after_release a"]);
    // Alone, left before, or dead: no other is harmed.
    assert_eq!(and_then(vec![(20, "a", left("a", 1)), (20, "b", entered("b", 2))]), []);
    assert_eq!(and_then(vec![(15, "a", crashed()), (20, "b", entered("b", 2))]), []);
    assert_eq!(and_then(vec![(30, "a", left("a", 1))]), []);
}

#[test]
fn an_overlap_with_one_who_has_not_released_is_an_overlap_alone() {
    let verdicts = judge([
        (0, "a", acquired("a", 1)),
        (1, "a", entered("a", 1)),
        (20, "b", entered("b", 2)),
        (30, "a", left("a", 1)),
        (31, "a", release_requested("a", 1)),
    ]);
    assert_eq!(lines(&verdicts), ["overlap a b"]);
}
