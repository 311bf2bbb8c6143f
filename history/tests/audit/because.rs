//! A verdict names the event that broke the rule, the events that led there, and the faults that took part.

use std::time::Duration;

use history::{Kind, Rules, Verdict, VerdictKind, audit};

use crate::story::{
    accepted, acquired, crashed, entered, expired, granted, healed, history, millis_at, requested, struck,
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
