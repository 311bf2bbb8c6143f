//! Keys with permits, and keys with readers and a writer, as lock servers store them: `unheld`, `leaked`
//! and `idle` judge each owner by its own entry, and a lock by all of them. And the order of service, which
//! `unfair` judges.

use std::time::Duration;

use history::{Capacity, Kind, Rules, Verdict, VerdictKind, audit};

use crate::story::{
    acquired, crashed, deleted, expired, extended, granted, history, key, lines, lost, millis_at,
    not_acquired, only, queued, release_requested, released, requested, shared, struck, waiter_gone,
};

type Story = Vec<(u64, &'static str, Kind)>;

/// Audits a run in which a retry comes within 1 s, and which ends at 10 s.
fn judge(capacity: Capacity, events: impl IntoIterator<Item = (u64, &'static str, Kind)>) -> Vec<Verdict> {
    let rules = Rules {
        capacities: [(key(), capacity)].into(),
        exact: true,
        fifo: true,
        servers: ["server".into()].into(),
        longest_retry: Some(Duration::from_secs(1)),
        end: millis_at(10_000),
        ..Rules::default()
    };
    audit(&history(events), &rules)
}

/// Returns `story` and what comes after it.
fn then(
    story: impl IntoIterator<Item = (u64, &'static str, Kind)>,
    rest: impl IntoIterator<Item = (u64, &'static str, Kind)>,
) -> Story {
    story.into_iter().chain(rest).collect()
}

/// Returns the request of `name` for reading.
fn asks_to_read(at: u64, name: &'static str) -> [(u64, &'static str, Kind); 2] {
    [(at, name, requested(name)), (at, name, shared(name))]
}

/// `a` and `b` have the lock and trust their leases until 1.983 s.
fn a_and_b_hold() -> Story {
    vec![
        (0, "server", granted("a", 1)),
        (0, "server", granted("b", 2)),
        (5, "a", acquired("a", 1)),
        (5, "b", acquired("b", 2)),
    ]
}

fn a_and_b_read() -> Story {
    then([(0, "a", shared("a")), (0, "b", shared("b"))], a_and_b_hold())
}

#[test]
fn a_permit_that_expires_before_its_validity_ends_is_unheld() {
    let expires_at = |at| judge(Capacity::Permits(2), then(a_and_b_hold(), [(at, "server", expired("a"))]));
    let verdicts = expires_at(1_982);
    let verdict = only(VerdictKind::Unheld, &verdicts);
    assert_eq!(verdict.processes, ["a".into()], "b's permit is stored");
    assert_eq!(
        verdict.detail,
        "the lease of a (token 1) was valid by its own clock until 1.983, \
         and from 1.982 on the lock was not stored for it"
    );
    assert_eq!(expires_at(1_983), []);
}

#[test]
fn a_permit_that_is_deleted_is_unheld_unless_its_holder_releases_it() {
    let deletion = (102, "server", deleted("b", "b"));
    let verdicts = judge(Capacity::Permits(2), then(a_and_b_hold(), [deletion.clone()]));
    assert_eq!(only(VerdictKind::Unheld, &verdicts).processes, ["b".into()]);
    let released = then(a_and_b_hold(), [(100, "b", release_requested("b", 2)), deletion.clone()]);
    assert_eq!(judge(Capacity::Permits(2), released), []);
    // The release of a's permit does not excuse the loss of b's.
    let other = then(a_and_b_hold(), [(100, "a", release_requested("a", 1)), deletion]);
    only(VerdictKind::Unheld, &judge(Capacity::Permits(2), other));
}

#[test]
fn a_permit_that_is_stored_for_others_only_is_unheld() {
    let c = |capacity, grant: Option<Kind>| {
        let grant = grant.map(|kind| (10, "server", kind));
        judge(capacity, then(then(a_and_b_hold(), grant), [(15, "c", acquired("c", 3))]))
    };
    let verdicts = c(Capacity::Permits(3), None);
    assert_eq!(only(VerdictKind::Unheld, &verdicts).processes, ["c".into()]);
    // A grant takes nobody's place: a's and b's permits stay beside it.
    assert_eq!(c(Capacity::Permits(3), Some(granted("c", 3))), []);
    let of_mutex = lines(&c(Capacity::Mutex, Some(granted("c", 3))));
    assert!(of_mutex.contains(&"unheld b".into()), "{of_mutex:?}");
}

#[test]
fn a_reader_whose_lease_expires_before_its_validity_ends_is_unheld() {
    let expires_at =
        |at| judge(Capacity::ReadersWriter, then(a_and_b_read(), [(at, "server", expired("a"))]));
    let verdicts = expires_at(1_982);
    assert_eq!(only(VerdictKind::Unheld, &verdicts).processes, ["a".into()], "b's lease is stored");
    assert_eq!(expires_at(1_983), []);
}

#[test]
fn a_writer_whose_lease_is_deleted_is_unheld_unless_it_releases_it() {
    let writes = || {
        let w = [(0, "server", granted("w", 1)), (5, "w", acquired("w", 1))];
        then([(0, "a", shared("a"))], w)
    };
    // A reader is let in next.
    let read = [(102, "server", deleted("w", "w")), (103, "server", granted("a", 2))];
    let verdicts = judge(Capacity::ReadersWriter, then(writes(), read.clone()));
    assert_eq!(only(VerdictKind::Unheld, &verdicts).processes, ["w".into()]);
    let released = then(then(writes(), [(100, "w", release_requested("w", 1))]), read);
    assert_eq!(judge(Capacity::ReadersWriter, released), []);
}

/// `b` holds the lock and renews it. `a` asks for it and is granted it at 0.1 s, and gives up at 0.2 s.
fn a_gives_up(reads: bool) -> Story {
    let ask =
        |at, name| if reads { asks_to_read(at, name).to_vec() } else { vec![(at, name, requested(name))] };
    let mut story = ask(0, "b");
    story.extend([(10, "server", granted("b", 1)), (10, "b", acquired("b", 1))]);
    story.extend(ask(20, "a"));
    story.extend([(100, "server", granted("a", 2)), (200, "a", not_acquired("a"))]);
    story
}

#[test]
fn a_permit_is_leaked_half_a_ttl_after_its_own_end() {
    let ends_at = |at| {
        // The extension of b's permit is none of a's.
        let rest = [(900, "server", extended("b", "b")), (at, "server", deleted("a", "a"))];
        judge(Capacity::Permits(2), then(a_gives_up(false), rest))
    };
    let verdicts = ends_at(1_201);
    let verdict = only(VerdictKind::Leaked, &verdicts);
    assert_eq!(
        verdict.detail,
        "server still held the lock for a (owner a:7f3c9e12) at 1.200, \
         although that acquisition had ended at 0.200"
    );
    assert_eq!(ends_at(1_200), []);
}

#[test]
fn each_permit_that_was_given_up_is_a_leak_of_its_own() {
    let ends = |released_b: bool| {
        let release = released_b.then(|| (300, "b", released("b", 1, "error")));
        lines(&judge(Capacity::Permits(2), then(a_gives_up(false), release)))
    };
    assert_eq!(ends(true), ["leaked a server", "leaked b server"]);
    assert_eq!(ends(false), ["leaked a server"], "b works on");
}

#[test]
fn a_reader_that_gives_up_leaks_its_own_lease_and_no_other() {
    let ends_at = |at| {
        // A reader that comes later does not take a's place.
        let c =
            then(asks_to_read(300, "c"), [(310, "server", granted("c", 3)), (311, "c", acquired("c", 3))]);
        let end = [(at, "server", deleted("a", "a"))];
        let mut found = lines(&judge(Capacity::ReadersWriter, then(then(a_gives_up(true), c), end)));
        found.retain(|line| line.starts_with("leaked"));
        found
    };
    assert_eq!(ends_at(1_201), ["leaked a server"]);
    assert!(ends_at(1_200).is_empty());
}

#[test]
fn a_writer_that_gives_up_behind_readers_leaks_its_place_and_its_lease() {
    let behind = |rest: Story| {
        let w = [(20, "w", requested("w")), (200, "w", not_acquired("w"))];
        judge(Capacity::ReadersWriter, then(then(a_and_b_read(), w), rest))
    };
    // It bars new readers for as long as its place stays.
    let gone_at = |at| behind(vec![(at, "server", waiter_gone("w"))]);
    only(VerdictKind::Leaked, &gone_at(1_201));
    assert_eq!(gone_at(1_200), []);
    // The place becomes its lease when the last reader leaves: the time counts from then on.
    let deleted_at = |at| {
        behind(vec![
            (2_000, "server", deleted("a", "a")),
            (2_100, "server", deleted("b", "b")),
            (2_100, "server", granted("w", 3)),
            (at, "server", deleted("w", "w")),
        ])
    };
    only(VerdictKind::Leaked, &deleted_at(3_101));
    assert_eq!(deleted_at(3_100), []);
}

/// Three ask for permits; `a` and `b` get one at once.
fn c_waits() -> Story {
    let holders = [(0, "server", granted("a", 1)), (0, "server", granted("b", 2))];
    then(holders, [(1, "c", requested("c"))])
}

#[test]
fn a_permit_that_was_never_taken_is_idle() {
    let verdicts = judge(Capacity::Permits(3), c_waits());
    assert_eq!(
        only(VerdictKind::Idle, &verdicts).detail,
        "a permit was free from 0.000 on, c had asked for it at 0.001, and at 1.001 nobody had it"
    );
    assert_eq!(judge(Capacity::Permits(2), c_waits()), [], "both are taken");
}

#[test]
fn a_permit_is_idle_from_when_it_was_free_last() {
    let served_at = |at| {
        let rest = [
            (100, "server", deleted("a", "a")),
            (600, "server", granted("d", 3)),
            (700, "server", expired("d")),
            // It was free before: from then on, there is another one.
            (900, "server", deleted("b", "b")),
            (at, "server", granted("c", 4)),
        ];
        judge(Capacity::Permits(2), then(c_waits(), rest))
    };
    let verdicts = served_at(1_701);
    let verdict = only(VerdictKind::Idle, &verdicts);
    assert!(verdict.detail.starts_with("a permit was free from 0.700 on"), "{}", verdict.detail);
    assert_eq!(served_at(1_700), []);
}

#[test]
fn a_waiter_that_was_granted_one_of_several_free_permits_waits_for_none() {
    let after = |permits, rest: Story| judge(Capacity::Permits(permits), then(c_waits(), rest));
    // Its answer is late, and a fourth permit is left.
    let served_at = |at| after(4, vec![(at, "server", granted("c", 3)), (1_800, "c", acquired("c", 3))]);
    assert_eq!(served_at(1_001), []);
    only(VerdictKind::Idle, &served_at(1_002));
    // d's permit is not c's.
    let d = || vec![(2, "d", requested("d")), (500, "server", granted("d", 3))];
    assert_eq!(only(VerdictKind::Idle, &after(4, d())).processes, ["c".into()]);
    assert_eq!(after(3, d()), []);
    // A permit that the server has dropped again is free for c, too.
    only(VerdictKind::Idle, &after(3, vec![(500, "server", granted("c", 3)), (600, "server", expired("c"))]));
}

/// `a` and `b` read; `w` waits to write, and `c` to read, behind it.
fn w_waits() -> Story {
    let readers = [(0, "a", shared("a")), (0, "b", shared("b"))];
    let held = [(0, "server", granted("a", 1)), (0, "server", granted("b", 2)), (1, "w", requested("w"))];
    then(then(readers, held), asks_to_read(2, "c"))
}

#[test]
fn while_a_reader_holds_the_lock_it_is_not_idle() {
    let after = |rest: Story| judge(Capacity::ReadersWriter, then(w_waits(), rest));
    assert_eq!(after(vec![]), [], "the writer waits for both");
    let one = || vec![(100, "server", deleted("b", "b"))];
    assert_eq!(after(one()), [], "the writer waits for the other");
    // c may now enter beside a. A lock that readers hold is not free, though: `idle` does not judge whether
    // a lock lets readers in.
    assert_eq!(after(vec![(200, "w", not_acquired("w"))]), []);
    assert_eq!(after(vec![(200, "w", crashed())]), []);
    let last = || then(one(), [(3_000, "server", deleted("a", "a"))]);
    let verdicts = after(last());
    let verdict = only(VerdictKind::Idle, &verdicts);
    assert_eq!(
        verdict.detail,
        "the lock was free from 3.000 on, w had asked for it at 0.001, and at 4.000 nobody had it"
    );
    let served_at = |at| after(then(last(), [(at, "server", granted("w", 3))]));
    assert_eq!(served_at(4_000), [], "the writer holds it, and c waits");
    only(VerdictKind::Idle, &served_at(4_001));
}

#[test]
fn a_reader_misses_the_end_of_a_writer() {
    let after = |rest: Story| {
        let w = [(0, "server", granted("w", 1))];
        let waiters = then(asks_to_read(1, "a"), asks_to_read(2, "b"));
        judge(Capacity::ReadersWriter, then(then(w, waiters), rest))
    };
    assert_eq!(after(vec![]), [], "the writer holds it");
    let served_at = |at| {
        let end = vec![(500, "server", deleted("w", "w")), (at, "server", granted("a", 2))];
        after(end)
    };
    let verdicts = served_at(1_501);
    assert_eq!(only(VerdictKind::Idle, &verdicts).processes, ["a".into()]);
    assert_eq!(served_at(1_500), [], "a holds it, and b waits");
}

#[test]
fn a_promoted_replica_that_drops_one_of_several_owners_may_hold_the_others() {
    // The replica is promoted before it learns that a and b have left. The TTL of b's lease ends at 3.1 s.
    let served_at = |at| {
        let rest = [
            (1_000, "server", deleted("a", "a")),
            (1_000, "server", deleted("b", "b")),
            (1_100, "replica", Kind::ServerPromoted { detail: None }),
            (2_000, "replica", expired("a")),
            (at, "replica", granted("w", 3)),
        ];
        judge(Capacity::ReadersWriter, then(w_waits(), rest))
    };
    assert_eq!(served_at(4_100), []);
    only(VerdictKind::Idle, &served_at(4_101));
}

#[test]
fn a_lock_whose_readers_were_evicted_may_be_held_by_each_of_them() {
    let evicted = |ends: [(u64, &'static str, Kind); 2]| {
        let eviction = [
            (200, "server", struck(0, "evict")),
            (200, "server", deleted("a", "server")),
            (200, "server", deleted("b", "server")),
        ];
        judge(Capacity::ReadersWriter, then(then(w_waits(), eviction), ends))
    };
    let (a, b) = (released("a", 1, "done"), released("b", 2, "done"));
    assert_eq!(evicted([(300, "b", b.clone()), (9_000, "a", a.clone())]), []);
    assert_eq!(evicted([(300, "a", a.clone()), (9_000, "b", b.clone())]), []);
    // A TTL after the loss.
    assert_eq!(evicted([(300, "a", a.clone()), (7_000, "b", lost("b", 2))]), []);
    only(VerdictKind::Idle, &evicted([(300, "a", a), (8_999, "b", b)]));
}

#[test]
fn a_waiter_that_left_is_not_overtaken_by_more_than_the_permits() {
    let served = |left: Option<Kind>| {
        let queue = vec![(1, "a", queued("a", 10)), (1, "b", queued("b", 11)), (1, "c", queued("c", 12))];
        let left = left.map(|kind| (4, "a", kind));
        let service = [(5, "server", granted("c", 12)), (6, "c", acquired("c", 12))];
        judge(Capacity::Permits(2), then(then(queue, left), service))
    };
    assert_eq!(served(Some(not_acquired("a"))), []);
    only(VerdictKind::Unfair, &served(None));
}

#[test]
fn a_writer_overtakes_neither_readers_nor_writers() {
    let served = |places: [&'static str; 2], reader: Option<&'static str>| {
        let reader = reader.map(|name| (0, name, shared(name)));
        let queue = places.into_iter().zip(10..).map(|(name, place)| (1, name, queued(name, place)));
        let service = [(5, "server", granted("w", 3)), (6, "w", acquired("w", 3))];
        judge(Capacity::ReadersWriter, then(then(reader, queue), service))
    };
    only(VerdictKind::Unfair, &served(["a", "w"], Some("a")));
    only(VerdictKind::Unfair, &served(["a", "w"], None));
    assert_eq!(served(["w", "a"], Some("a")), []);
}
