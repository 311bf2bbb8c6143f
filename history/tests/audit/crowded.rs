use history::{Kind, Rules, Verdict, VerdictKind, audit};

use crate::story::{
    acquired, crashed, granted, history, key, not_acquired, only, owner, queued, waiter_gone_from,
};

fn bounded(worker: &str, waiters_max: u64) -> Kind {
    Kind::LeaseBounded { resource_type: None, key: key(), owner: owner(worker), waiters_max }
}

fn judge<'a>(events: impl IntoIterator<Item = (u64, &'a str, Kind)>) -> Vec<Verdict> {
    let rules = Rules { servers: vec!["server".into()], ..Rules::default() };
    let verdicts = audit(&history(events), &rules);
    verdicts.into_iter().filter(|verdict| verdict.kind == VerdictKind::Crowded).collect()
}

/// Three requests for a queue of two, of which two wait.
fn full() -> Vec<(u64, &'static str, Kind)> {
    let asked = [(1, "a", bounded("a", 2)), (2, "b", bounded("b", 2)), (3, "c", bounded("c", 2))];
    asked.into_iter().chain([(4, "a", queued("a", 10)), (5, "b", queued("b", 11))]).collect()
}

fn with(rest: impl IntoIterator<Item = (u64, &'static str, Kind)>) -> Vec<Verdict> {
    judge(full().into_iter().chain(rest))
}

#[test]
fn one_waiter_more_than_the_limit_is_convicted() {
    assert_eq!(judge(full()), []);
    let verdicts = with([(6, "c", queued("c", 12))]);
    let verdict = only(VerdictKind::Crowded, &verdicts);
    assert_eq!(
        verdict.detail,
        "c (place 12) waited for the lock at 0.006, and with it 3 acquires did, where 2 may"
    );
    assert_eq!(verdict.processes, ["c", "a"].map(history::Name::from));
}

#[test]
fn a_place_is_free_again_once_its_waiter_has_left() {
    let ends = [
        ("server", granted("a", 1)),
        ("server", waiter_gone_from("a", 10)),
        ("a", acquired("a", 1)),
        ("a", not_acquired("a")),
        ("a", crashed()),
    ];
    for (process, end) in ends {
        assert_eq!(with([(6, process, end), (7, "c", queued("c", 12))]), []);
    }
}

#[test]
fn a_place_that_is_reported_late_does_not_count() {
    let late = [(6, "server", waiter_gone_from("c", 12)), (7, "c", queued("c", 12))];
    assert_eq!(with(late), []);
}

#[test]
fn a_new_place_of_the_same_request_is_no_second_one() {
    assert_eq!(with([(6, "a", queued("a", 15))]), []);
}

#[test]
fn a_server_that_dies_may_have_lost_its_queue() {
    assert_eq!(with([(6, "server", crashed()), (7, "c", queued("c", 1))]), []);
    only(VerdictKind::Crowded, &with([(6, "d", crashed()), (7, "c", queued("c", 12))]));
}

#[test]
fn without_a_limit_any_number_may_wait() {
    let asked = ["a", "b", "c"].into_iter().zip(10..).map(|(name, place)| (place, name, queued(name, place)));
    assert_eq!(judge(asked), []);
}

#[test]
fn without_the_events_of_servers_nothing_is_judged() {
    let story = full().into_iter().chain([(6, "c", queued("c", 12))]);
    assert_eq!(audit(&history(story), &Rules::default()), []);
}
