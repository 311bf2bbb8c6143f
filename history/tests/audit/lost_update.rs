use history::VerdictKind;

use crate::story::{accepted, accepted_number, accepted_unnamed, judge, only, read, rejected, repeated};

#[test]
fn a_change_between_read_and_write_is_a_lost_update() {
    let verdicts = judge([
        (1, "resource", read("b", 3)),
        (2, "resource", accepted("a", 33, 4)),
        (3, "resource", accepted("b", 34, 5)),
    ]);
    let verdict = only(VerdictKind::LostUpdate, &verdicts);
    assert_eq!(
        verdict.detail,
        "b (token 34) read version 3 at 0.001, a (token 33) wrote version 4 at 0.002, \
         and b overwrote it at 0.003 without having seen it"
    );
}

#[test]
fn a_second_read_that_sees_the_change_loses_nothing() {
    let verdicts = judge([
        (1, "resource", read("b", 3)),
        (2, "resource", accepted("a", 33, 4)),
        (3, "resource", read("b", 4)),
        (4, "resource", accepted("b", 34, 5)),
    ]);
    assert_eq!(verdicts, []);
}

#[test]
fn a_refused_or_repeated_change_changes_nothing() {
    let verdicts = judge([
        (1, "resource", read("b", 3)),
        (2, "resource", rejected("a", 33, 34)),
        (3, "resource", repeated("a", 33, 3)),
        (4, "resource", accepted("b", 34, 4)),
    ]);
    assert_eq!(verdicts, []);
}

#[test]
fn an_owner_has_seen_its_own_writes() {
    let verdicts = judge([
        (1, "resource", read("b", 0)),
        (2, "resource", accepted_number("b", 34, 1, 1)),
        (3, "resource", accepted_number("b", 34, 2, 2)),
    ]);
    assert_eq!(verdicts, []);
}

#[test]
fn a_lost_change_between_own_writes_is_reported_once() {
    let verdicts = judge([
        (1, "resource", read("b", 0)),
        (2, "resource", accepted_number("b", 34, 1, 1)),
        (3, "resource", accepted("c", 35, 2)),
        (4, "resource", accepted_number("b", 36, 2, 3)),
        (5, "resource", accepted_number("b", 36, 3, 4)),
    ]);
    let verdict = only(VerdictKind::LostUpdate, &verdicts);
    assert_eq!(verdict.at.to_string(), "0.004");
}

#[test]
fn of_several_changes_the_last_is_named() {
    let verdicts = judge([
        (1, "resource", read("b", 0)),
        (2, "resource", accepted("a", 1, 1)),
        (3, "resource", accepted("c", 2, 2)),
        (4, "resource", accepted("d", 3, 3)),
        (5, "resource", accepted("b", 4, 4)),
    ]);
    let verdict = only(VerdictKind::LostUpdate, &verdicts);
    assert_eq!(verdict.processes.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["b", "d"]);
}

#[test]
fn a_change_by_an_unnamed_writer_counts() {
    let verdicts = judge([
        (1, "resource", read("b", 0)),
        (2, "resource", accepted_unnamed(33, 1)),
        (3, "resource", accepted("b", 34, 2)),
    ]);
    only(VerdictKind::LostUpdate, &verdicts);
}

#[test]
fn a_writer_that_never_read_loses_no_update() {
    assert_eq!(judge([(1, "resource", accepted("a", 33, 1)), (2, "resource", accepted("b", 34, 2))]), []);
}
