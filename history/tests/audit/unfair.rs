use history::{Kind, Rules, Verdict, VerdictKind, audit};

use crate::story::{
    acquired, crashed, expired, granted, history, not_acquired, only, queued, waiter_gone, waiter_gone_from,
};

fn judge<'a>(events: impl IntoIterator<Item = (u64, &'a str, Kind)>) -> Vec<Verdict> {
    audit(&history(events), &Rules { fifo: true, ..Rules::default() })
}

fn a_then_b_queued() -> [(u64, &'static str, Kind); 2] {
    [(1, "a", queued("a", 10)), (2, "b", queued("b", 11))]
}

#[test]
fn serving_the_later_waiter_first_is_unfair() {
    let story =
        || a_then_b_queued().into_iter().chain([(5, "b", acquired("b", 1)), (9, "a", acquired("a", 2))]);
    let verdicts = judge(story());
    let verdict = only(VerdictKind::Unfair, &verdicts);
    assert_eq!(
        verdict.detail,
        "b (place 11 in line) was given the lock at 0.005, while a (place 10) was waiting"
    );
    assert_eq!(audit(&history(story()), &Rules::default()), [], "a lock that promises no order");
}

#[test]
fn serving_waiters_in_queue_order_is_fair() {
    let served = [(5, "a", acquired("a", 1)), (9, "b", acquired("b", 2))];
    assert_eq!(judge(a_then_b_queued().into_iter().chain(served)), []);
}

#[test]
fn a_waiter_that_left_is_not_overtaken() {
    let of_server = [("server", expired("a")), ("server", waiter_gone("a"))];
    for leaves in of_server.into_iter().chain([("a", not_acquired("a")), ("a", crashed())]) {
        let rest = [(4, leaves.0, leaves.1), (5, "b", acquired("b", 1))];
        assert_eq!(judge(a_then_b_queued().into_iter().chain(rest)), []);
    }
}

#[test]
fn the_crash_of_another_process_changes_no_places() {
    let rest = [(4, "c", crashed()), (5, "b", acquired("b", 1))];
    only(VerdictKind::Unfair, &judge(a_then_b_queued().into_iter().chain(rest)));
}

#[test]
fn a_grant_that_is_reported_late_is_in_order() {
    let rest = [
        (3, "server", granted("a", 1)),
        (2003, "server", expired("a")),
        (2004, "server", granted("b", 2)),
        (2005, "b", acquired("b", 2)),
        (2006, "a", acquired("a", 1)),
    ];
    assert_eq!(judge(a_then_b_queued().into_iter().chain(rest)), []);
}

#[test]
fn a_place_that_was_served_before_it_is_reported_is_not_overtaken() {
    // A paused waiter reads its place when its session is over.
    let story = |place| {
        [
            (1, "server", granted("a", 10)),
            (1000, "server", expired("a")),
            (1001, "b", queued("b", 11)),
            (1002, "a", queued("a", place)),
            (1003, "server", granted("b", 11)),
        ]
    };
    assert_eq!(judge(story(10)), []);
    only(VerdictKind::Unfair, &judge(story(9)));
}

#[test]
fn a_place_that_was_removed_before_it_is_reported_is_not_overtaken() {
    // A paused waiter reads its place when its session is over, and finds that out later.
    let story = |place| {
        let gone = waiter_gone_from("a", 10);
        let late = [(1000, "server", gone), (1001, "b", queued("b", 11)), (1002, "a", queued("a", place))];
        late.into_iter().chain([(1003, "server", granted("b", 11))])
    };
    assert_eq!(judge(story(10)), []);
    only(VerdictKind::Unfair, &judge(story(9)));
}

#[test]
fn a_place_of_an_earlier_session_that_is_served_overtakes_nobody() {
    // a queues again, since its session is over by its own clock; the server has not ended it yet.
    let story = |place| {
        [
            (1, "a", queued("a", 10)),
            (2, "b", queued("b", 11)),
            (3, "a", queued("a", 12)),
            (4, "server", granted("a", place)),
        ]
    };
    assert_eq!(judge(story(10)), []);
    only(VerdictKind::Unfair, &judge(story(12)));
}

#[test]
fn a_grant_out_of_order_is_reported_once() {
    let rest = [(3, "server", granted("b", 1)), (4, "b", acquired("b", 1))];
    let verdicts = judge(a_then_b_queued().into_iter().chain(rest));
    assert_eq!(only(VerdictKind::Unfair, &verdicts).at.to_string(), "0.003");
}

#[test]
fn a_waiter_that_never_queued_is_not_judged() {
    assert_eq!(judge([(1, "a", queued("a", 10)), (5, "b", acquired("b", 1))]), []);
}

#[test]
fn a_waiter_whose_earlier_place_ends_still_waits_at_its_second() {
    let queues_again = || [(1, "a", queued("a", 10)), (2, "a", queued("a", 12))];
    let overtaken = || [(5, "c", queued("c", 13)), (6, "server", granted("c", 13))];
    let removed = |place| {
        let gone = [(3, "server", waiter_gone_from("a", place))];
        judge(queues_again().into_iter().chain(gone).chain(overtaken()))
    };
    only(VerdictKind::Unfair, &removed(10));
    assert_eq!(removed(12), []);
    let served = [(3, "server", granted("a", 10)), (4, "server", expired("a"))];
    only(VerdictKind::Unfair, &judge(queues_again().into_iter().chain(served).chain(overtaken())));
}
