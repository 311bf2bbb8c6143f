use history::VerdictKind;

use crate::story::{deleted, expired, extended, granted, judge, only};

/// `get-then-del`: the lease expires between the two.
#[test]
fn deleting_the_next_holders_lock_is_a_foreign_release() {
    let verdicts = judge([
        (0, "redis", granted("a", 1)),
        (2000, "redis", expired("a")),
        (2010, "redis", granted("b", 2)),
        (2020, "redis", deleted("b", "a")),
    ]);
    let verdict = only(VerdictKind::ForeignRelease, &verdicts);
    assert_eq!(
        verdict.detail,
        "a deleted the lock on redis at 2.020, which belonged to b (owner b:7f3c9e12)"
    );
}

#[test]
fn extending_another_clients_lock_is_a_foreign_release() {
    let verdicts = judge([(0, "redis", granted("b", 2)), (9, "redis", extended("b", "a"))]);
    only(VerdictKind::ForeignRelease, &verdicts);
}

#[test]
fn a_client_may_extend_and_delete_its_own_lock() {
    let verdicts = judge([
        (0, "redis", granted("a", 1)),
        (9, "redis", extended("a", "a")),
        (20, "redis", deleted("a", "a")),
        (30, "redis", granted("b", 2)),
        (40, "redis", deleted("b", "b")),
    ]);
    assert_eq!(verdicts, []);
}

/// B03: the second holder of a shared owner token loses its lock to the first one's release.
#[test]
fn a_shared_owner_token_belongs_to_its_latest_grantee() {
    let one = |client: &str| match granted("x:00000000", 1) {
        history::Kind::KeyGranted { key, owner, token, ttl_millis, .. } => {
            history::Kind::KeyGranted { key, owner, token, ttl_millis, client: client.into() }
        }
        kind => kind,
    };
    let verdicts = judge([
        (0, "redis", one("a")),
        (2000, "redis", expired("x:00000000")),
        (2010, "redis", one("b")),
        (2020, "redis", deleted("x:00000000", "a")),
    ]);
    only(VerdictKind::ForeignRelease, &verdicts);
}

#[test]
fn a_promoted_replica_serves_the_grants_of_the_old_primary() {
    let by = |client| judge([(0, "redis-1", granted("a", 1)), (9, "redis-2", deleted("a", client))]);
    assert_eq!(by("a"), []);
    only(VerdictKind::ForeignRelease, &by("b"));
}

#[test]
fn an_owner_whose_grant_is_unknown_is_not_judged() {
    assert_eq!(judge([(9, "redis", deleted("a", "b"))]), []);
}

/// A server evicts keys, and a replica deletes those that its primary has deleted.
#[test]
fn a_server_may_delete_a_lock() {
    let verdicts = judge([(0, "redis", granted("a", 1)), (9, "redis", deleted("a", "redis"))]);
    assert_eq!(verdicts, []);
}

/// A promoted replica evicts a key of the old primary before it has granted one itself.
#[test]
fn a_promoted_replica_may_delete_a_lock() {
    let verdicts = judge([(0, "redis-1", granted("a", 1)), (9, "redis-2", deleted("a", "redis-2"))]);
    assert_eq!(verdicts, []);
}
