use std::time::Duration;

use history::{Kind, Name, Rules, Verdict, VerdictKind, audit};

use crate::story::{
    acquired, crashed, deleted, expired, extended, granted, healed, history, millis_at, not_acquired, only,
    released, requested, struck, waiter_gone,
};

/// Audits a run that ends at 2.5 s, and in which a retry comes within 500 ms.
fn judge<'a>(events: impl IntoIterator<Item = (u64, &'a str, Kind)>) -> Vec<Verdict> {
    audit(&history(events), &rules())
}

fn rules() -> Rules {
    let servers = vec![Name::from("redis")];
    let longest_retry = Some(Duration::from_millis(500));
    Rules { servers, longest_retry, end: millis_at(2_500), ..Rules::default() }
}

/// Returns a history: `a` requests the lock at 0 s, is granted the key at 0.1 s and gives up at 0.2 s.
fn given_up() -> [(u64, &'static str, Kind); 3] {
    [(0, "a", requested("a")), (100, "redis", granted("a", 1)), (200, "a", not_acquired("a"))]
}

fn and_then(events: impl IntoIterator<Item = (u64, &'static str, Kind)>) -> Vec<(u64, &'static str, Kind)> {
    given_up().into_iter().chain(events).collect()
}

#[test]
fn a_key_that_outlives_a_given_up_acquire_is_leaked() {
    let verdicts = judge(and_then([(2_100, "redis", expired("a"))]));
    let verdict = only(VerdictKind::Leaked, &verdicts);
    assert_eq!(
        verdict.detail,
        "redis still held the lock for a (owner a:7f3c9e12) at 1.200, \
         although that acquisition had ended at 0.200"
    );
    assert_eq!(verdict.at, millis_at(1_200));
}

#[test]
fn a_key_that_is_stored_until_the_end_is_leaked() {
    only(VerdictKind::Leaked, &judge(given_up()));
}

#[test]
fn a_place_in_a_queue_that_outlives_a_given_up_acquire_is_leaked() {
    let gone = |at| [(1, "a", requested("a")), (9, "a", not_acquired("a")), (at, "redis", waiter_gone("a"))];
    only(VerdictKind::Leaked, &judge(gone(1010)));
    assert_eq!(judge(gone(1009)), []);
    let sessions = Rules { sessions: true, ..rules() };
    assert_eq!(audit(&history(gone(1010)), &sessions), [], "it ends with the session");
}

#[test]
fn a_key_deleted_within_half_a_ttl_is_not_leaked() {
    assert_eq!(judge(and_then([(1_200, "redis", deleted("a", "a"))])), []);
}

#[test]
fn the_time_for_cleanup_counts_from_a_late_request() {
    let late = |deleted_at| {
        judge([
            (0, "a", requested("a")),
            (100, "a", not_acquired("a")),
            (1_200, "redis", granted("a", 1)),
            (deleted_at, "redis", deleted("a", "a")),
        ])
    };
    assert_eq!(late(2_200), []);
    only(VerdictKind::Leaked, &late(2_201));
}

#[test]
fn a_request_stored_a_ttl_after_the_end_is_no_leak() {
    let stored = |millis| {
        let rules = Rules { end: millis_at(10_000), ..rules() };
        let story =
            [(0, "a", requested("a")), (100, "a", not_acquired("a")), (millis, "redis", granted("a", 1))];
        audit(&history(story), &rules)
    };
    assert_eq!(stored(2_101), []);
    only(VerdictKind::Leaked, &stored(2_100));
}

#[test]
fn a_failed_release_that_leaves_the_key_leaks_it() {
    let story = [
        (0, "a", requested("a")),
        (100, "redis", granted("a", 1)),
        (110, "a", acquired("a", 1)),
        (200, "a", released("a", 1, "error")),
    ];
    only(VerdictKind::Leaked, &judge(story));
}

#[test]
fn a_key_that_is_extended_after_the_end_is_leaked() {
    let story = and_then([(800, "redis", extended("a", "a")), (1_600, "redis", extended("a", "a"))]);
    let verdicts = judge(story);
    assert_eq!(only(VerdictKind::Leaked, &verdicts).at, millis_at(1_200), "from its grant on");
    let in_time = and_then([(800, "redis", extended("a", "a")), (1_200, "redis", deleted("a", "a"))]);
    assert_eq!(judge(in_time), []);
}

#[test]
fn a_holder_that_has_not_ended_leaks_nothing() {
    let story = [(0, "a", requested("a")), (100, "redis", granted("a", 1)), (110, "a", acquired("a", 1))];
    assert_eq!(judge(story), []);
}

#[test]
fn a_client_that_died_leaks_nothing() {
    assert_eq!(judge(and_then([(300, "a", crashed())])), []);
}

#[test]
fn while_something_is_broken_nothing_leaks() {
    let cut = [(150, "network", struck(0, "cut")), (1_900, "network", healed(0, "cut"))];
    assert_eq!(judge(and_then(cut)), [], "not over half a TTL and the longest retry after it");
    let healed_in_time = [(150, "network", struck(0, "cut")), (300, "network", healed(0, "cut"))];
    only(VerdictKind::Leaked, &judge(and_then(healed_in_time)));
}

#[test]
fn a_fault_that_acts_once_does_not_end_the_wait_after_one_that_lasted() {
    let story = [
        (150, "network", struck(0, "cut")),
        (1_100, "network", healed(0, "cut")),
        (1_200, "network", struck(1, "reset")),
    ];
    assert_eq!(judge(and_then(story)), [], "the client retries up to 500 ms after the cut");
    only(VerdictKind::Leaked, &judge(and_then([(1_200, "network", struck(0, "reset"))])));
}

#[test]
fn a_delayed_release_under_way_is_no_leak() {
    let late = |millis| {
        let delay = [(150, "network", struck(0, "delay")), (300, "network", healed(0, "delay"))];
        let rules = Rules { in_flight: [(0, Duration::from_millis(millis))].into(), ..rules() };
        audit(&history(and_then(delay)), &rules)
    };
    // The run ends half a TTL and the longest retry after the last message has arrived.
    assert_eq!(late(700), []);
    only(VerdictKind::Leaked, &late(699));
}

#[test]
fn a_fault_that_comes_too_late_excuses_nothing() {
    only(VerdictKind::Leaked, &judge(and_then([(1_300, "network", struck(0, "cut"))])));
}

#[test]
fn an_acquire_that_is_dropped_is_no_excuse() {
    only(VerdictKind::Leaked, &judge(and_then([(200, "a", struck(0, "cancel"))])));
}

#[test]
fn a_key_of_a_server_that_died_is_no_evidence() {
    let story =
        [(300, "redis", crashed()), (400, "redis", healed(0, "crash")), (2_100, "redis", expired("a"))];
    assert_eq!(judge(and_then(story)), []);
}
