use history::VerdictKind;

use crate::story::{accepted, acquired, claimed, judge, lines, only, read, rejected};

/// The history of `seeds/read-then-late-write.toml`, with a resource that checks writes only.
#[test]
fn an_older_write_after_a_newer_holders_read_is_late() {
    let verdicts = judge([
        (10, "a", acquired("a", 33)),
        (2010, "b", acquired("b", 34)),
        (2020, "resource", read("b", 0)),
        (2030, "resource", accepted("a", 33, 1)),
        (2040, "resource", accepted("b", 34, 2)),
    ]);
    assert_eq!(lines(&verdicts), ["late_write a b", "lost_update b a"]);
    assert_eq!(
        verdicts[0].detail,
        "the resource accepted the write of a (token 33) at 2.030, after b (token 34) had read it at 2.020"
    );
}

/// The same with the fenced read: the claim makes the resource refuse the older write.
#[test]
fn an_honoured_claim_prevents_the_late_write() {
    let verdicts = judge([
        (10, "a", acquired("a", 33)),
        (2010, "b", acquired("b", 34)),
        (2020, "resource", claimed("b", 34, 0)),
        (2030, "resource", rejected("a", 33, 34)),
        (2040, "resource", accepted("b", 34, 1)),
    ]);
    assert_eq!(verdicts, []);
}

#[test]
fn an_older_write_after_a_claim_is_late() {
    let verdicts = judge([(1, "resource", claimed("b", 34, 0)), (2, "resource", accepted("a", 33, 1))]);
    assert_eq!(lines(&verdicts), ["late_write a b"]);
}

#[test]
fn a_claim_with_an_equal_token_refuses_other_owners_only() {
    let other = judge([(1, "resource", claimed("b", 1, 0)), (2, "resource", accepted("a", 1, 1))]);
    assert_eq!(lines(&other), ["late_write a b"]);
    assert_eq!(judge([(1, "resource", claimed("b", 1, 0)), (2, "resource", accepted("b", 1, 1))]), []);
}

#[test]
fn after_the_newer_holders_write_it_is_stale_instead() {
    let verdicts = judge([
        (1, "resource", claimed("b", 34, 0)),
        (2, "resource", accepted("b", 34, 1)),
        (3, "resource", accepted("a", 33, 2)),
    ]);
    only(VerdictKind::StaleWrite, &verdicts);
}

#[test]
fn a_write_before_the_newer_holder_reads_is_in_time() {
    let verdicts = judge([
        (10, "a", acquired("a", 33)),
        (2010, "b", acquired("b", 34)),
        (2015, "resource", accepted("a", 33, 1)),
        (2020, "resource", read("b", 1)),
    ]);
    assert_eq!(verdicts, []);
}

#[test]
fn reads_of_older_holders_and_of_strangers_are_no_evidence() {
    let verdicts = judge([
        (10, "a", acquired("a", 33)),
        (20, "b", acquired("b", 34)),
        (30, "resource", read("a", 0)),
        (40, "resource", read("passer-by", 0)),
        (50, "resource", accepted("b", 34, 1)),
    ]);
    assert_eq!(verdicts, []);
}
