use history::{Kind, VerdictKind};

use crate::story::{crashed, judge, key, only};

/// `leader` leads in `term`, as an observer saw.
fn sees(leader: &str, term: u64) -> Kind {
    Kind::TermObserved { key: key(), owner: Some(leader.into()), token: term }
}

#[test]
fn an_older_term_after_a_newer_one_is_convicted() {
    let verdicts = judge([(0, "o", sees("a", 1)), (10, "o", sees("b", 2)), (20, "o", sees("a", 1))]);
    let verdict = only(VerdictKind::TermRegressed, &verdicts);
    assert_eq!(verdict.detail, "o was shown a as the leader of term 1 at 0.020, after b of term 2 at 0.010");
    assert_eq!(verdict.because, [1]);
}

#[test]
fn a_term_that_is_shown_twice_is_convicted() {
    only(VerdictKind::TermRegressed, &judge([(0, "o", sees("a", 1)), (10, "o", sees("a", 1))]));
    only(VerdictKind::TermRegressed, &judge([(0, "o", sees("a", 1)), (10, "o", sees("b", 1))]));
}

#[test]
fn terms_that_grow_with_gaps_are_not() {
    assert_eq!(judge([(0, "o", sees("a", 1)), (10, "o", sees("b", 5)), (20, "o", sees("a", 6))]), []);
}

#[test]
fn observers_learn_of_a_term_at_different_times() {
    assert_eq!(judge([(0, "o", sees("b", 2)), (10, "p", sees("a", 1)), (20, "p", sees("b", 2))]), []);
}

#[test]
fn an_observer_that_crashes_begins_anew() {
    assert_eq!(judge([(0, "o", sees("b", 2)), (5, "o", crashed()), (10, "o", sees("b", 2))]), []);
}
