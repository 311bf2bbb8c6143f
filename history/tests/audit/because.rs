//! A verdict names the event that broke the rule, the events that led there, and the faults that took part.

use std::time::Duration;

use history::{Kind, Rules, Verdict, VerdictKind, audit};

use crate::story::{
    accepted, acquired, crashed, deleted, entered, expired, granted, healed, history, millis_at,
    release_requested, released, requested, struck,
};

/// Kleppmann's figure, with its server, and more faults than matter: one of a worker that does not take part,
/// and one that is over before.
fn figure() -> Vec<(u64, &'static str, Kind)> {
    vec![
        (1, "c", requested("c")),
        (2, "network", struck(2, "cut")),
        (3, "network", healed(2, "cut")),
        (4, "c", struck(3, "pause")),
        (9, "redis-1", granted("a", 1)),
        (14, "a", acquired("a", 1)),
        (15, "a", struck(0, "pause")),
        (2014, "redis-1", expired("a")),
        (2030, "redis-1", granted("b", 2)),
        (2031, "b", acquired("b", 2)),
        (2085, "resource", accepted("b", 2, 1)),
        (2090, "redis-1", struck(1, "step")),
        (5000, "a", healed(0, "pause")),
        (5071, "resource", accepted("a", 1, 2)),
        (6000, "redis-1", struck(4, "step")),
    ]
}

/// The rules of a run with one server, by the true times of its history.
fn of_one_server() -> Rules {
    Rules { exact: true, servers: ["redis-1".into()].into(), ..Rules::default() }
}

fn of_kind(kind: VerdictKind, verdicts: &[Verdict]) -> &Verdict {
    verdicts.iter().find(|verdict| verdict.kind == kind).unwrap()
}

#[test]
fn a_late_write_is_the_event_and_the_pause_led_there() {
    let verdicts = audit(&history(figure()), &Rules::default());
    let stale = of_kind(VerdictKind::StaleWrite, &verdicts);
    assert_eq!(stale.event, Some(13), "the write of token 1");
    // The grant of a, its pause, the end of its lease, the grant of b, its write, and a fault of the server.
    assert_eq!(stale.because, [5, 6, 7, 9, 10, 11]);
}

#[test]
fn without_a_grant_the_request_is_named() {
    let rules = Rules {
        end: millis_at(20_000),
        healed_at: Some(millis_at(100)),
        served_within: Some(Duration::from_secs(5)),
        ..Rules::default()
    };
    let events = [
        (1, "redis-1", crashed()),
        (2, "c", crashed()),
        (3, "c", requested("c")),
        (4, "a", requested("a")),
        (5, "a", struck(0, "pause")),
        (9, "c", acquired("c", 1)),
    ];
    let verdicts = audit(&history(events), &rules);
    let stuck = of_kind(VerdictKind::Stuck, &verdicts);
    assert_eq!((stuck.event, &stuck.processes[..]), (None, &["a".into()][..]), "nothing happened");
    assert_eq!(stuck.because, [0, 3, 4], "its request, the death of the server, its own pause");
}

#[test]
fn of_equal_times_the_event_is_the_one_that_broke_the_rule() {
    let events = [
        (1, "a", acquired("a", 1)),
        (1, "a", entered("a", 1)),
        (2, "b", acquired("b", 2)),
        (2, "b", entered("b", 2)),
        (2, "c", acquired("c", 3)),
        (2, "c", entered("c", 3)),
    ];
    let verdicts = audit(&history(events), &Rules::default());
    let named: Vec<_> = verdicts.iter().map(|verdict| (verdict.processes.len(), verdict.event)).collect();
    assert_eq!(named, [(2, Some(3)), (2, Some(5)), (2, Some(5))]);
    assert_eq!(verdicts[2].because, [2, 4], "the grants of b and c");
}

/// A lease of `a` that `c` deletes before the answer arrives, and the pause of `c` before that.
#[test]
fn an_end_before_the_answer_to_the_grant_is_named() {
    let events = [
        (1, "c", requested("c")),
        (2, "redis-1", granted("c", 1)),
        (3, "c", acquired("c", 1)),
        (4, "c", struck(0, "pause")),
        (5, "a", requested("a")),
        (2003, "redis-1", expired("c")),
        (2004, "redis-1", granted("a", 2)),
        (2005, "redis-1", deleted("a", "c")),
        (2006, "a", acquired("a", 2)),
    ];
    let verdicts = audit(&history(events), &of_one_server());
    let unheld = of_kind(VerdictKind::Unheld, &verdicts);
    assert_eq!(unheld.processes[..], ["a".into()]);
    assert_eq!(
        (unheld.event, &unheld.because[..]),
        (Some(8), &[3, 4, 7][..]),
        "the pause of c, its deletion"
    );
}

/// A pause of a predecessor delays the grant of the process that waits for it.
#[test]
fn the_release_that_ended_a_wait_is_named_with_its_faults() {
    let events = [
        (1, "a", requested("a")),
        (1, "b", requested("b")),
        (2, "redis-1", granted("a", 1)),
        (3, "a", acquired("a", 1)),
        (4, "a", struck(0, "pause")),
        (300, "a", healed(0, "pause")),
        (300, "a", release_requested("a", 1)),
        (301, "redis-1", deleted("a", "a")),
        (301, "a", released("a", 1, "done")),
        (302, "redis-1", granted("b", 2)),
        (303, "b", acquired("b", 2)),
        (304, "redis-1", expired("b")),
    ];
    let verdicts = audit(&history(events), &of_one_server());
    let unheld = of_kind(VerdictKind::Unheld, &verdicts);
    assert_eq!(unheld.processes[..], ["b".into()]);
    assert_eq!(unheld.because, [4, 7, 10], "the pause of a, its release, the grant of b");
}

/// Some of several servers granted the lock to `c`, which never had it, long before `a` asked.
#[test]
fn a_process_that_had_half_of_a_lock_takes_part() {
    let events = [
        (1, "c", requested("c")),
        (2, "c", struck(0, "pause")),
        (3, "redis-1", granted("c", 9)),
        (9, "c", healed(0, "pause")),
        (10, "a", requested("a")),
        (11, "redis-2", granted("a", 1)),
        (12, "a", acquired("a", 9)),
        (13, "b", requested("b")),
        (14, "b", acquired("b", 4)),
    ];
    let verdicts = audit(&history(events.clone()), &Rules::default());
    let regressed = of_kind(VerdictKind::TokenRegressed, &verdicts);
    assert_eq!(regressed.because, [6, 7], "the pause of c was over before a asked");
    let mut events = events.to_vec();
    events.remove(3);
    let verdicts = audit(&history(events), &Rules::default());
    let regressed = of_kind(VerdictKind::TokenRegressed, &verdicts);
    assert_eq!(regressed.because, [1, 5, 6], "the pause of c was in force");
}

/// A client that ignores the first failed renewal, but remembers that its last release had no answer.
#[test]
fn a_fault_of_the_last_release_of_the_same_process_is_named() {
    let events = [
        (1, "a", requested("a:1")),
        (2, "redis-1", granted("a:1", 1)),
        (3, "a", acquired("a:1", 1)),
        (4, "a", struck(0, "pause")),
        (5, "a", healed(0, "pause")),
        (6, "a", release_requested("a:1", 1)),
        (7, "network", struck(1, "cut")),
        (8, "network", healed(1, "cut")),
        (10, "a", requested("a:2")),
        (11, "redis-1", granted("a:2", 2)),
        (12, "a", acquired("a:2", 2)),
        (900, "redis-1", expired("a:2")),
    ];
    let verdicts = audit(&history(events), &of_one_server());
    let unheld = of_kind(VerdictKind::Unheld, &verdicts);
    assert_eq!(unheld.because, [6, 10], "the cut while it released, its grant");
}
