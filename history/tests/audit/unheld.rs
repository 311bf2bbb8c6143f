use history::{Kind, Name, Rules, Verdict, VerdictKind, audit};

use crate::story::{
    acquired, crashed, deleted, expired, extended, granted, history, only, release_requested,
};

fn judge<'a>(servers: &[&str], events: impl IntoIterator<Item = (u64, &'a str, Kind)>) -> Vec<Verdict> {
    let servers = servers.iter().copied().map(Name::from).collect();
    audit(&history(events), &Rules { exact: true, servers, ..Rules::default() })
}

const FIVE: [&str; 5] = ["redis-1", "redis-2", "redis-3", "redis-4", "redis-5"];

#[test]
fn a_valid_lease_whose_key_has_expired_is_unheld() {
    let story = [(0, "redis", granted("a", 1)), (5, "a", acquired("a", 1)), (1_982, "redis", expired("a"))];
    let verdicts = judge(&["redis"], story);
    let verdict = only(VerdictKind::Unheld, &verdicts);
    assert_eq!(
        verdict.detail,
        "the lease of a (token 1) was valid by its own clock until 1.983, \
         and from 1.982 on the lock was not stored for it"
    );
}

#[test]
fn a_key_that_outlives_the_validity_is_no_violation() {
    let story = [(0, "redis", granted("a", 1)), (5, "a", acquired("a", 1)), (1_983, "redis", expired("a"))];
    assert_eq!(judge(&["redis"], story), []);
}

#[test]
fn a_lease_that_no_server_has_granted_is_unheld() {
    only(VerdictKind::Unheld, &judge(&["redis"], [(5, "a", acquired("a", 1))]));
    assert_eq!(judge(&[], [(5, "a", acquired("a", 1))]), [], "without server events there is no evidence");
}

#[test]
fn a_lease_under_release_is_no_longer_valid() {
    let story = [
        (0, "redis", granted("a", 1)),
        (5, "a", acquired("a", 1)),
        (100, "a", release_requested("a", 1)),
        (102, "redis", deleted("a", "a")),
    ];
    assert_eq!(judge(&["redis"], story), []);
}

#[test]
fn a_lease_whose_key_another_owner_has_is_unheld() {
    let story = [(0, "redis", granted("a", 1)), (5, "a", acquired("a", 1)), (900, "redis", granted("b", 2))];
    assert_eq!(only(VerdictKind::Unheld, &judge(&["redis"], story)).processes, ["a".into()]);
}

#[test]
fn of_five_servers_three_must_hold_the_key() {
    let majority = FIVE[..3].iter().map(|server| (0, *server, granted("a", 1)));
    let story: Vec<_> = majority.chain([(5, "a", acquired("a", 1))]).collect();
    assert_eq!(judge(&FIVE, story.clone()), []);
    let one_less = story.into_iter().chain([(700, "redis-2", expired("a"))]);
    only(VerdictKind::Unheld, &judge(&FIVE, one_less.clone()));
    // Another server has taken its place before.
    let another = [(600, "redis-4", granted("a", 1))];
    assert_eq!(judge(&FIVE, another.into_iter().chain(one_less)), []);
}

#[test]
fn a_dead_server_may_keep_the_key_on_disk() {
    let story = [
        (0, "redis", granted("a", 1)),
        (5, "a", acquired("a", 1)),
        (100, "redis", crashed()),
        (900, "redis", extended("a", "a")),
    ];
    assert_eq!(judge(&["redis"], story), []);
}

#[test]
fn a_restarted_server_that_grants_again_lost_the_key() {
    let story = [
        (0, "redis", granted("a", 1)),
        (5, "a", acquired("a", 1)),
        (100, "redis", crashed()),
        (900, "redis", granted("b", 1)),
    ];
    only(VerdictKind::Unheld, &judge(&["redis"], story));
}

#[test]
fn after_the_primary_died_the_promoted_replica_counts() {
    let promoted = || Kind::ServerPromoted { detail: None };
    let lagging = [
        (0, "redis", granted("a", 1)),
        (5, "a", acquired("a", 1)),
        (100, "redis", crashed()),
        (200, "replica-1", promoted()),
    ];
    only(VerdictKind::Unheld, &judge(&["redis"], lagging.clone()));
    let replicated = [(1, "replica-1", granted("a", 1))];
    assert_eq!(judge(&["redis"], replicated.into_iter().chain(lagging.clone())), []);
    let alive = lagging.into_iter().filter(|(at, ..)| *at != 100);
    assert_eq!(judge(&["redis"], alive), [], "clients may still be connected to the old primary");
}
