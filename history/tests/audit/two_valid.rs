use history::{Kind, Rules, Verdict, VerdictKind, audit};

use crate::story::{
    acquired, crashed, history, lost, only, release_requested, renewed, requested, struck, valid_for,
};

fn judge<'a>(events: impl IntoIterator<Item = (u64, &'a str, Kind)>) -> Vec<Verdict> {
    audit(&history(events), &Rules { exact: true, ..Rules::default() })
}

/// Returns a history: the lease of `a` is valid until 1.978 s.
fn a_holds() -> [(u64, &'static str, Kind); 1] {
    [(0, "a", acquired("a", 1))]
}

#[test]
fn a_second_lease_while_the_first_is_valid_is_convicted() {
    let verdicts = judge(a_holds().into_iter().chain([(1_977, "b", acquired("b", 2))]));
    let verdict = only(VerdictKind::TwoValid, &verdicts);
    assert_eq!(
        verdict.detail,
        "the lease of a (token 1) was valid by its own clock until 1.978, \
         and from 1.977 on that of b (token 2) was too"
    );
    assert_eq!(verdict.processes, ["a".into(), "b".into()]);
}

#[test]
fn two_holders_make_one_verdict_however_often_they_renew() {
    let verdicts = judge(a_holds().into_iter().chain([
        (1_000, "b", acquired("b", 2)),
        (1_100, "a", renewed("a", 1)),
        (1_200, "b", renewed("b", 2)),
    ]));
    only(VerdictKind::TwoValid, &verdicts);
}

#[test]
fn a_lease_right_after_the_first_is_no_violation() {
    assert_eq!(judge(a_holds().into_iter().chain([(1_978, "b", acquired("b", 2))])), []);
}

#[test]
fn a_renewal_prolongs_the_validity() {
    let story = a_holds().into_iter().chain([(1_000, "a", renewed("a", 1)), (2_500, "b", acquired("b", 2))]);
    only(VerdictKind::TwoValid, &judge(story));
}

#[test]
fn a_shorter_renewal_does_not_shorten_the_validity() {
    let story = a_holds()
        .into_iter()
        .chain([(100, "a", valid_for(renewed("a", 1), 10)), (1_500, "b", acquired("b", 2))]);
    only(VerdictKind::TwoValid, &judge(story));
}

#[test]
fn a_loss_a_release_and_a_crash_end_the_validity() {
    for end in [lost("a", 1), release_requested("a", 1), crashed()] {
        let story = a_holds().into_iter().chain([(500, "a", end), (501, "b", acquired("b", 2))]);
        assert_eq!(judge(story), []);
    }
}

#[test]
fn a_pause_does_not_end_the_validity() {
    let pause = struck(0, "pause");
    let story = a_holds().into_iter().chain([(500, "a", pause), (1_900, "b", acquired("b", 2))]);
    only(VerdictKind::TwoValid, &judge(story));
}

#[test]
fn the_validity_follows_the_rate_of_the_clock() {
    let at_rate = |rate, b_at| {
        // Half of the lease is left.
        let slowed = (989, "a", Kind::ClockRate { rate });
        judge(a_holds().into_iter().chain([slowed, (b_at, "b", acquired("b", 2))]))
    };
    only(VerdictKind::TwoValid, &at_rate(500_000_000, 2_966));
    assert_eq!(at_rate(500_000_000, 2_967), []);
    only(VerdictKind::TwoValid, &at_rate(2_000_000_000, 1_483));
    assert_eq!(at_rate(2_000_000_000, 1_484), []);
}

#[test]
fn a_lease_granted_under_a_slow_clock_is_scaled() {
    let story = [
        (0, "a", Kind::ClockRate { rate: 500_000_000 }),
        (0, "a", acquired("a", 1)),
        (3_955, "b", acquired("b", 2)),
    ];
    only(VerdictKind::TwoValid, &judge(story));
}

#[test]
fn two_tasks_with_one_owner_token_are_two_holders() {
    let story = [(0, "a", acquired("a", 1)), (1, "b", acquired("a:7f3c9e12", 1))];
    only(VerdictKind::TwoValid, &judge(story));
}

#[test]
fn a_lease_of_unknown_validity_is_no_evidence() {
    let unknown = match acquired("b", 2) {
        Kind::LeaseAcquired { resource_type, key, owner, token, ttl_millis, .. } => {
            Kind::LeaseAcquired { resource_type, key, owner, token, ttl_millis, valid_micros: None }
        }
        kind => kind,
    };
    assert_eq!(judge(a_holds().into_iter().chain([(1, "b", requested("b")), (2, "b", unknown)])), []);
}

#[test]
fn without_exact_times_validity_is_not_judged() {
    let story = history(a_holds().into_iter().chain([(1_000, "b", acquired("b", 2))]));
    assert_eq!(audit(&story, &Rules::default()), []);
}
