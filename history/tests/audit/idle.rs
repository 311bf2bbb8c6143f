use std::time::Duration;

use history::{Kind, Name, Rules, Verdict, VerdictKind, audit};

use crate::story::{
    acquired, crashed, deleted, expired, granted, healed, history, lost, millis_at, not_acquired, only,
    released, requested, struck,
};

/// Audits a run in which a retry comes within 3 s, and which ends at 10 s.
fn judge<'a>(events: impl IntoIterator<Item = (u64, &'a str, Kind)>) -> Vec<Verdict> {
    let servers = vec![Name::from("redis")];
    let longest_retry = Some(Duration::from_secs(3));
    audit(&history(events), &Rules { servers, longest_retry, end: millis_at(10_000), ..Rules::default() })
}

/// Returns a history: `a` holds the lock until 1 s; `b` requests it at 0.5 s.
fn handed_over() -> [(u64, &'static str, Kind); 3] {
    [(0, "redis", granted("a", 1)), (500, "b", requested("b")), (1_000, "redis", deleted("a", "a"))]
}

fn and_then(events: impl IntoIterator<Item = (u64, &'static str, Kind)>) -> Vec<(u64, &'static str, Kind)> {
    handed_over().into_iter().chain(events).collect()
}

#[test]
fn a_waiter_that_misses_a_release_leaves_the_lock_idle() {
    let verdicts = judge(and_then([(4_001, "redis", granted("b", 2))]));
    let verdict = only(VerdictKind::Idle, &verdicts);
    assert_eq!(
        verdict.detail,
        "the lock was free from 1.000 on, b had asked for it at 0.500, and at 4.000 nobody had it"
    );
}

#[test]
fn a_lock_free_at_the_end_with_waiters_is_idle() {
    only(VerdictKind::Idle, &judge(handed_over()));
    only(VerdictKind::Idle, &judge([(6_999, "b", requested("b"))]));
    assert_eq!(judge([(7_000, "b", requested("b"))]), []);
}

#[test]
fn a_lock_without_a_live_waiter_is_not_idle() {
    for (at, process, end) in
        [(4_000, "redis", granted("b", 2)), (4_000, "b", not_acquired("b")), (4_000, "b", crashed())]
    {
        assert_eq!(judge(and_then([(at, process, end)])), []);
    }
}

#[test]
fn a_waiter_that_gives_up_late_leaves_the_lock_idle() {
    only(VerdictKind::Idle, &judge(and_then([(4_001, "b", not_acquired("b"))])));
}

#[test]
fn a_lock_that_is_held_is_not_idle() {
    let story = [(0, "redis", granted("a", 1)), (1, "a", acquired("a", 1)), (500, "b", requested("b"))];
    assert_eq!(judge(story), []);
}

#[test]
fn while_something_is_broken_no_lock_is_idle() {
    let cut = [(900, "network", struck(0, "cut")), (7_500, "network", healed(0, "cut"))];
    assert_eq!(judge(and_then(cut)), []);
    let endless = [(900, "redis", struck(0, "pause"))];
    assert_eq!(judge(and_then(endless)), []);
    let short = [(900, "network", struck(0, "cut")), (1_500, "network", healed(0, "cut"))];
    only(VerdictKind::Idle, &judge(and_then(short)));
    let late = [(4_500, "network", struck(0, "cut"))];
    only(VerdictKind::Idle, &judge(and_then(late)));
}

#[test]
fn a_lock_on_a_crashed_server_is_not_idle() {
    let down = [(1_200, "redis", crashed())];
    assert_eq!(judge(and_then(down)), []);
}

fn promoted() -> Kind {
    Kind::ServerPromoted { detail: None }
}

/// The replica is promoted at 1.1 s, before it learns that `a` has released the lock.
#[test]
fn a_promoted_replica_may_hold_the_lock_for_a_ttl() {
    let served = |at| judge(and_then([(1_100, "replica", promoted()), (at, "replica", granted("b", 2))]));
    // The TTL ends at 3.1 s.
    assert_eq!(served(6_100), []);
    only(VerdictKind::Idle, &served(6_101));
}

#[test]
fn a_promoted_replica_that_drops_the_lock_frees_it() {
    let served = |at| {
        judge(and_then([
            (1_100, "replica", promoted()),
            (2_000, "replica", expired("a")),
            (at, "replica", granted("b", 2)),
        ]))
    };
    assert_eq!(served(5_000), []);
    only(VerdictKind::Idle, &served(5_001));
}

#[test]
fn a_promoted_replica_with_a_stepped_clock_may_hold_longer() {
    let story = [(1_050, "replica", struck(0, "step")), (1_100, "replica", promoted())];
    assert_eq!(judge(and_then(story)), []);
}

#[test]
fn a_lock_whose_key_was_evicted_may_be_held_by_another_record() {
    let evicted = |events: Vec<(u64, &'static str, Kind)>| {
        let begins = [
            (0, "redis", granted("a", 1)),
            (1, "a", acquired("a", 1)),
            (500, "b", requested("b")),
            (1_000, "redis", struck(0, "evict")),
            (1_000, "redis", deleted("a", "redis")),
        ];
        judge(begins.into_iter().chain(events))
    };
    assert_eq!(evicted(vec![]), []);
    // Its owner has released it or lost it: it is free then, or a TTL later.
    only(VerdictKind::Idle, &evicted(vec![(2_000, "a", released("a", 1, "done"))]));
    assert_eq!(evicted(vec![(7_000, "a", released("a", 1, "done"))]), []);
    only(VerdictKind::Idle, &evicted(vec![(4_900, "a", lost("a", 1))]));
    assert_eq!(evicted(vec![(5_000, "a", lost("a", 1))]), []);
    // A client's deletion is no eviction, nor is the end of the next grant.
    only(
        VerdictKind::Idle,
        &evicted(vec![(1_500, "redis", granted("c", 2)), (1_600, "redis", deleted("c", "c"))]),
    );
}
