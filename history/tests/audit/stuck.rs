use std::time::Duration;

use history::{Kind, Rules, Verdict, VerdictKind, audit};

use crate::story::{
    acquired, crashed, deleted, expired, extended, granted, history, lines, lost, millis_at, not_acquired,
    only, released, renewed, requested, retried, struck,
};

const SECOND: Duration = Duration::from_secs(1);

/// Returns rules by which faults have healed at 10 s, requests are served within 3 s, and the run ends at
/// 20 s.
fn rules() -> Rules {
    Rules {
        end: millis_at(20_000),
        healed_at: Some(millis_at(10_000)),
        served_within: Some(3 * SECOND),
        grace: SECOND,
        ..Rules::default()
    }
}

fn judge<'a>(events: impl IntoIterator<Item = (u64, &'a str, Kind)>) -> Vec<Verdict> {
    audit(&history(events), &rules())
}

#[test]
fn a_waiter_that_is_never_served_is_stuck() {
    let verdicts = judge([(500, "a", requested("a"))]);
    let verdict = only(VerdictKind::Stuck, &verdicts);
    assert_eq!(
        verdict.detail,
        "a asked for the lock at 0.500 and had no answer by 13.000, 3 s after the last fault healed"
    );
    assert_eq!(verdict.at, millis_at(13_000));
}

#[test]
fn a_waiter_that_is_served_too_late_is_stuck() {
    let verdicts = judge([(11_000, "a", requested("a")), (14_001, "a", acquired("a", 1))]);
    let verdict = only(VerdictKind::Stuck, &verdicts);
    assert_eq!(
        verdict.detail,
        "a asked for the lock at 11.000 and had no answer by 14.000, 3 s after it asked"
    );
}

#[test]
fn served_refused_crashed_and_recent_waiters_are_not_stuck() {
    let verdicts = judge([
        (500, "a", requested("a")),
        (1_000, "d", requested("d")),
        (9_000, "d", crashed()),
        (13_000, "a", acquired("a", 1)),
        (15_000, "b", requested("b")),
        (18_000, "b", not_acquired("b")),
        (17_500, "c", requested("c")),
    ]);
    assert_eq!(verdicts, []);
}

#[test]
fn a_key_that_outlives_its_ttl_is_stuck() {
    let verdicts = judge([(500, "redis", granted("a", 1)), (12_000, "redis", extended("a", "a"))]);
    let verdict = only(VerdictKind::Stuck, &verdicts);
    assert_eq!(
        verdict.detail,
        "redis still held the lock of a (owner a:7f3c9e12) at 20.000: \
         it was stored at 12.000 and had to end by 14.000"
    );
}

#[test]
fn keys_that_ended_or_may_be_held_are_not_stuck() {
    let verdicts = judge([
        (500, "redis-1", granted("a", 1)),
        (2_500, "redis-1", expired("a")),
        (600, "redis-2", granted("a", 1)),
        (700, "redis-2", deleted("a", "a")),
        (800, "redis-3", granted("a", 1)),
        (900, "redis-3", Kind::ServerStopped { detail: None }),
        (950, "redis-5", granted("a", 1)),
        (950, "redis-5", crashed()),
        (1_000, "redis-4", granted("a", 1)),
        (17_000, "redis-4", extended("a", "a")),
    ]);
    assert_eq!(verdicts, [], "the last extension ends at 19 s, and its grace at 20 s with the run");
}

/// B01: the process died between SETNX and PEXPIRE.
#[test]
fn a_key_without_ttl_is_compared_with_the_runs_ttl() {
    let forever = || match granted("a", 1) {
        Kind::KeyGranted { key, owner, token, client, .. } => {
            Kind::KeyGranted { key, owner, token, client, ttl_millis: None }
        }
        kind => kind,
    };
    let with_ttl = |ttl| audit(&history([(500, "redis", forever())]), &Rules { ttl, ..rules() });
    assert_eq!(lines(&with_ttl(Some(2 * SECOND))), ["stuck a redis"]);
    assert_eq!(with_ttl(None), []);
}

#[test]
fn while_faults_last_nothing_is_stuck() {
    let story = history([(500, "a", requested("a")), (500, "redis", granted("b", 1))]);
    assert_eq!(audit(&story, &rules()).len(), 2);
    assert_eq!(audit(&story, &Rules { healed_at: None, ..rules() }), []);
}

/// The rules of a core phase that leaves `b` and `redis-3` broken.
fn without_b() -> Rules {
    Rules { outside: ["b".into(), "redis-3".into()].into(), ..rules() }
}

#[test]
fn only_processes_of_the_core_must_be_served() {
    let story = history([
        (500, "a", requested("a")),
        (600, "b", requested("b")),
        (700, "redis-3", granted("b", 1)),
        (11_000, "b", requested("b2")),
    ]);
    let verdicts = audit(&story, &without_b());
    assert_eq!(
        only(VerdictKind::Stuck, &verdicts).detail,
        "a asked for the lock at 0.500 and had no answer by 13.000, 3 s after the core healed: \
         the core was not served"
    );
}

#[test]
fn a_holder_outside_the_core_blocks_it_for_one_ttl_only() {
    let judge = |outside| {
        let story = [
            (9_000, "b", requested("b")),
            (9_500, "b", acquired("b", 1)),
            (10_500, "a", requested("a")),
            (15_500, "a", acquired("a", 2)),
        ];
        let rules = Rules { sessions: true, end: millis_at(15_600), ..without_b() };
        audit(&history(story), &if outside { rules } else { Rules { outside: [].into(), ..rules } })
    };
    assert_eq!(lines(&judge(true)), ["stuck a"], "{:?}", judge(true));
    assert_eq!(judge(false), [], "the session of a live holder may last");
}

#[test]
fn a_waiter_with_a_new_owner_token_keeps_its_start() {
    let began = [(11_000, "a", requested("a")), (13_000, "a", not_acquired("a"))];
    let went_on = [(13_000, "a", retried("a2")), (14_500, "a", acquired("a2", 1))];
    let verdicts = judge(began.clone().into_iter().chain(went_on));
    assert!(only(VerdictKind::Stuck, &verdicts).detail.starts_with("a asked for the lock at 11.000"));
    let began_anew = [(13_000, "a", requested("a2")), (14_500, "a", acquired("a2", 1))];
    assert_eq!(judge(began.into_iter().chain(began_anew)), []);
}

/// Returns a history: `a` holds the lock with a requested TTL of 2 s, and `b` waits.
fn held_by_a() -> [(u64, &'static str, Kind); 4] {
    [
        (11_000, "a", requested("a")),
        (11_000, "redis", granted("a", 1)),
        (11_001, "a", acquired("a", 1)),
        (11_500, "b", requested("b")),
    ]
}

#[test]
fn a_waiter_may_wait_as_long_as_another_lease_lasts() {
    let served_at = |at| {
        let served = [(at, "redis", granted("b", 2)), (at, "b", acquired("b", 2))];
        judge(held_by_a().into_iter().chain(served).chain([(at + 100, "redis", deleted("b", "b"))]))
    };
    assert_eq!(served_at(16_001), []);
    let verdicts = served_at(16_002);
    assert_eq!(
        only(VerdictKind::Stuck, &verdicts).detail,
        "b asked for the lock at 11.500 and had no answer by 16.001, 3 s after the last lease had to be over"
    );
}

#[test]
fn the_wait_counts_from_when_the_lock_is_free() {
    let freed = [(11_600, "redis", deleted("a", "a")), (14_601, "b", not_acquired("b"))];
    assert!(
        only(VerdictKind::Stuck, &judge(held_by_a().into_iter().chain(freed))).detail.starts_with("b asked")
    );
}

#[test]
fn a_request_that_others_overtake_is_not_stuck() {
    let grants = (0..6).flat_map(|token| {
        let at = 11_200 + token * 1_000;
        [(at, "redis", granted("a", token)), (at + 900, "redis", deleted("a", "a"))]
    });
    let story = [(11_000, "a", requested("a")), (11_100, "b", requested("b"))].into_iter().chain(grants);
    assert_eq!(
        lines(&judge(story.chain([(18_000, "b", not_acquired("b")), (18_000, "a", crashed())]))),
        [""; 0]
    );
}

#[test]
fn a_key_is_compared_with_the_requested_ttl() {
    let stored_for_an_hour = match granted("a", 1) {
        Kind::KeyGranted { key, owner, token, client, .. } => {
            Kind::KeyGranted { key, owner, token, client, ttl_millis: Some(3_600_000) }
        }
        kind => kind,
    };
    let story = [
        (11_000, "a", requested("a")),
        (11_000, "redis", stored_for_an_hour),
        (11_001, "a", acquired("a", 1)),
    ];
    assert!(only(VerdictKind::Stuck, &judge(story)).detail.ends_with("had to end by 13.000"));
}

#[test]
fn a_session_lasts_as_long_as_its_holder_lives() {
    let story = |end| {
        let holds = [
            (11_000, "a", requested("a")),
            (11_000, "etcd", granted("a", 1)),
            (11_001, "a", acquired("a", 1)),
        ];
        let waits = [(11_500, "b", requested("b")), (17_000, "a", end), (19_500, "b", not_acquired("b"))];
        history(holds.into_iter().chain(waits).chain([(19_600, "etcd", deleted("a", "a"))]))
    };
    let sessions = Rules { sessions: true, ..rules() };
    let released = || released("a", 1, "done");
    assert_eq!(audit(&story(released()), &sessions), []);
    assert_eq!(lines(&audit(&story(released()), &rules())), ["stuck b"]);
    assert_eq!(audit(&story(crashed()), &sessions), [], "the session ends a TTL after its holder");
}

/// The holder `a` dies at 11 s, with a TTL of 2 s; a new leader is elected at 12.5 s.
#[test]
fn a_new_leader_restarts_the_ttl_of_sessions() {
    let story = |kept_until, served_at| {
        history([
            (10_000, "a", requested("a")),
            (10_000, "etcd", granted("a", 1)),
            (10_001, "a", acquired("a", 1)),
            (11_000, "a", crashed()),
            (11_500, "b", requested("b")),
            (12_500, "etcd-2", struck(0, "lead")),
            (kept_until, "etcd", deleted("a", "a")),
            (served_at, "b", acquired("b", 2)),
        ])
    };
    let sessions = Rules { sessions: true, end: millis_at(15_500), ..rules() };
    assert_eq!(audit(&story(14_500, 17_500), &sessions), []);
    assert_eq!(lines(&audit(&story(14_500, 17_501), &sessions)), ["stuck b"]);
    let held = |end| {
        let story = [(11_000, "etcd", granted("a", 1)), (12_500, "etcd-2", struck(0, "lead"))];
        audit(&history(story), &Rules { end: millis_at(end), ..sessions.clone() })
    };
    assert_eq!(held(15_500), []);
    only(VerdictKind::Stuck, &held(15_501));
}

/// Judges a run without faults in which the key of `a` is extended every half second until `last`, and `b`
/// waits from 0.3 s on.
fn extended_until(last: u64, events: &[(u64, &'static str, Kind)]) -> Vec<Verdict> {
    let begins = [
        (0, "a", requested("a")),
        (0, "redis", granted("a", 1)),
        (0, "a", acquired("a", 1)),
        (300, "b", requested("b")),
    ];
    let extensions = (1..=last / 500).map(|number| (500 * number, "redis", extended("a", "a")));
    let mut story: Vec<_> = begins.into_iter().chain(extensions).chain(events.iter().cloned()).collect();
    story.sort_by_key(|(at, ..)| *at);
    audit(&history(story), &Rules { healed_at: Some(millis_at(0)), ..rules() })
}

#[test]
fn a_renewal_that_outlives_its_holder_does_not_excuse_the_wait_of_others() {
    // The holder says nothing more: its validity was over at 1.978, and a TTL later nobody may want the key.
    assert_eq!(lines(&extended_until(20_000, &[])), ["stuck a redis", "stuck b"]);
    let ends: [fn() -> Kind; 3] = [|| lost("a", 1), || released("a", 1, "error"), crashed];
    for end in ends {
        let renewed = (1_500, "a", renewed("a", 1));
        let verdicts = extended_until(20_000, &[renewed, (1_600, "a", end())]);
        assert_eq!(lines(&verdicts), ["stuck a redis", "stuck b"]);
    }
}

#[test]
fn a_renewal_for_a_holder_that_goes_on_or_has_just_ended_is_no_harm() {
    let renewals: Vec<_> = (1..=20).map(|number| (1_000 * number, "a", renewed("a", 1))).collect();
    assert_eq!(extended_until(20_000, &renewals), []);
    // Up to a TTL after the end, an extension may have been under way: the wait counts from its end.
    let served = [(3_500 + 2_000, "redis", expired("a")), (8_000, "b", acquired("b", 2))];
    assert_eq!(extended_until(3_500, &served), []);
}
