//! The order and the number of waiters, from the events of clients alone.

use history::{Kind, Rules, Verdict, VerdictKind, audit};

use crate::story::{
    acquired, history, key, lines, only, owner, queued, release_requested, released, requested,
};

type Story = Vec<(u64, &'static str, Kind)>;

fn judge(events: impl IntoIterator<Item = (u64, &'static str, Kind)>) -> Vec<Verdict> {
    audit(&history(events), &Rules { tokens_are_places: true, ..Rules::default() })
}

fn bounded(worker: &str) -> Kind {
    Kind::LeaseBounded { resource_type: None, key: key(), owner: owner(worker), waiters_max: 1 }
}

/// Returns a client's part: it asks, reports its place, its grant and its release at these milliseconds.
fn client(name: &'static str, place: u64, [asks, waits, gets, leaves]: [u64; 4]) -> Story {
    vec![
        (asks, name, requested(name)),
        (asks, name, bounded(name)),
        (waits, name, queued(name, place)),
        (gets, name, acquired(name, place)),
        (leaves, name, release_requested(name, place)),
        (leaves + 1, name, released(name, place, "done")),
    ]
}

fn merged(parts: impl IntoIterator<Item = Story>) -> Story {
    let mut story: Story = parts.into_iter().flatten().collect();
    story.sort_by_key(|(at, ..)| *at);
    story
}

/// Two clients that are served in order, and have one waiter at a time.
fn in_order() -> [Story; 3] {
    [client("a", 10, [1, 2, 3, 20]), client("b", 11, [4, 5, 22, 30]), client("c", 15, [23, 24, 32, 40])]
}

/// The same, and b is served before a, which is in the queue: b at 6, a at 7.
fn out_of_order() -> [Story; 2] {
    [client("a", 10, [1, 2, 7, 20]), client("b", 11, [3, 4, 6, 30])]
}

#[test]
fn waiters_in_order_within_the_limit_are_correct() {
    assert_eq!(judge(merged(in_order())), []);
}

#[test]
fn a_grant_before_that_of_an_earlier_place_is_unfair() {
    let verdicts = judge(merged(out_of_order()));
    let verdict = only(VerdictKind::Unfair, &verdicts);
    assert_eq!(
        verdict.detail,
        "b (place 11) was given the lock at 0.006, while a (place 10) was waiting, which was given it at 0.007"
    );
    let story = merged(out_of_order());
    assert_eq!(story[verdict.event.unwrap()].2, acquired("b", 11));
}

#[test]
fn an_entry_that_may_be_gone_can_not_be_overtaken() {
    let [mut a, b] = out_of_order();
    // Its release found no entry of it: it was lost some time before.
    a[5].2 = released("a", 10, "not_owner");
    assert_eq!(judge(merged([a, b])), []);
    let [mut a, b] = out_of_order();
    // Its entry at place 10 is lost, and it has queued again behind b.
    a.insert(3, (5, "a", queued("a", 12)));
    a[4].2 = acquired("a", 12);
    assert_eq!(judge(merged([a, b])), []);
}

#[test]
fn one_entry_more_than_the_limit_is_crowded() {
    let parts =
        [client("a", 10, [1, 2, 3, 20]), client("b", 11, [4, 5, 22, 30]), client("c", 12, [6, 7, 32, 40])];
    let verdicts = judge(merged(parts));
    let verdict = only(VerdictKind::Crowded, &verdicts);
    assert_eq!(
        verdict.detail,
        "c (place 12) waited for the lock at 0.007, and with it 2 acquires did, where 1 may"
    );
    assert_eq!(verdict.processes, ["c", "b"].map(history::Name::from));
}

/// The server serves b when a's entry is deleted, of which b learns later: c finds room in between.
#[test]
fn a_waiter_whose_grant_is_in_flight_does_not_wait() {
    let parts =
        [client("a", 10, [1, 2, 3, 6]), client("b", 11, [4, 5, 22, 30]), client("c", 15, [7, 8, 32, 40])];
    assert_eq!(judge(merged(parts)), []);
}

#[test]
fn a_place_that_the_waiter_was_not_granted_proves_nothing() {
    let mut parts =
        [client("a", 10, [1, 2, 3, 20]), client("b", 11, [4, 5, 32, 40]), client("c", 12, [6, 7, 22, 30])];
    // Its session was over, and its entry gone, when c came.
    parts[1][3].2 = acquired("b", 14);
    assert_eq!(judge(merged(parts)), []);
}

#[test]
fn a_server_that_stopped_may_have_lost_its_queue() {
    let stopped = |at| vec![(at, "etcd-1", Kind::ServerStopped { detail: None })];
    let started = |at| vec![(at, "etcd-1", Kind::ServerStarted { detail: None })];
    let with = |parts: Vec<Story>| lines(&judge(merged(out_of_order().into_iter().chain(parts))));
    assert_eq!(with(vec![stopped(5), started(5)]), [""; 0]);
    assert_eq!(with(vec![stopped(0)]), [""; 0]);
    assert_eq!(with(vec![stopped(0), started(0)]), ["unfair b a"]);
    assert_eq!(with(vec![stopped(35)]), ["unfair b a"]);
}

#[test]
fn without_places_that_are_tokens_nothing_is_judged() {
    assert_eq!(audit(&history(merged(out_of_order())), &Rules::default()), []);
}

#[test]
fn readers_and_holders_of_permits_are_not_judged() {
    let shared = |name: &'static str| {
        vec![(0, name, Kind::LeaseShared { resource_type: None, key: key(), owner: owner(name) })]
    };
    let parts = out_of_order().into_iter().chain([shared("a"), shared("b")]);
    assert_eq!(judge(merged(parts)), []);
}
