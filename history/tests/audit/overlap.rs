use std::collections::BTreeSet;

use history::{Kind, Rules, VerdictKind, audit};
use proptest::prelude::*;

use crate::story::{crashed, entered, history, judge, left, lines, only};

#[test]
fn two_holders_inside_at_once_overlap() {
    let verdicts = judge([
        (14, "a", entered("a", 1)),
        (2031, "b", entered("b", 2)),
        (2090, "b", left("b", 2)),
        (5071, "a", left("a", 1)),
    ]);
    let verdict = only(VerdictKind::Overlap, &verdicts);
    assert_eq!(
        verdict.detail,
        "a (token 1) was still in its critical section, since 0.014, when b (token 2) entered at 2.031"
    );
    assert_eq!((verdict.at.to_string(), verdict.key.as_str()), ("2.031".into(), "2f1a6b03c9de"));
}

#[test]
fn consecutive_sections_at_one_time_do_not_overlap() {
    let verdicts = judge([(14, "a", entered("a", 1)), (20, "a", left("a", 1)), (20, "b", entered("b", 2))]);
    assert_eq!(verdicts, []);
}

#[test]
fn a_section_that_is_never_left_lasts_to_the_end() {
    let verdicts =
        judge([(14, "a", entered("a", 1)), (9_000, "b", entered("b", 2)), (9_001, "b", left("b", 2))]);
    assert_eq!(lines(&verdicts), ["overlap a b"]);
}

#[test]
fn a_crash_ends_only_its_own_processs_sections() {
    let enter_both = [(1, "a", entered("a", 1)), (2, "c", entered("c", 9))];
    let after = [(3, "a", crashed()), (4, "b", entered("b", 2))];
    let verdicts = judge(enter_both.into_iter().chain(after));
    assert_eq!(lines(&verdicts), ["overlap a c", "overlap c b"]);
}

#[test]
fn each_overlapping_pair_is_convicted_once() {
    let verdicts = judge([
        (1, "a", entered("a", 1)),
        (2, "b", entered("b", 2)),
        (3, "b", left("b", 2)),
        (4, "b", entered("b", 2)),
        (5, "c", entered("c", 3)),
    ]);
    assert_eq!(lines(&verdicts), ["overlap a b", "overlap a c", "overlap b c"]);
}

#[test]
fn two_tasks_that_share_an_owner_token_are_two_holders() {
    let verdicts = judge([(1, "a", entered("x:00000000", 1)), (2, "b", entered("x:00000000", 1))]);
    assert_eq!(lines(&verdicts), ["overlap a b"]);
}

#[test]
fn sections_of_two_resources_do_not_overlap() {
    let other = Kind::SectionEntered { key: "0123456789ab".into(), owner: "b:7f3c9e12".into(), token: 1 };
    assert_eq!(judge([(1, "a", entered("a", 1)), (2, "b", other)]), []);
}

const WORKERS: [&str; 4] = ["a", "b", "c", "d"];

proptest! {
    /// By definition, two sections overlap if neither ends before the other begins.
    #[test]
    fn the_verdict_agrees_with_comparing_all_pairs_of_intervals(
        steps in prop::collection::vec((0..4_usize, 0..5_u8), 0..60),
    ) {
        let mut inside = [None; 4];
        let mut intervals = Vec::new();
        let mut story = Vec::new();
        for (at, (worker, step)) in (0_u64..).zip(steps) {
            let name = WORKERS[worker];
            let kind = match (step, inside[worker]) {
                (0..=1, None) => { inside[worker] = Some(at); entered(name, 1) }
                (2..=3, Some(since)) => {
                    intervals.push((worker, since, at));
                    inside[worker] = None;
                    left(name, 1)
                }
                (4, since) => {
                    intervals.extend(since.map(|since| (worker, since, at)));
                    inside[worker] = None;
                    crashed()
                }
                _ => continue,
            };
            story.push((at, name, kind));
        }
        let open = inside.iter().enumerate();
        intervals.extend(open.filter_map(|(worker, since)| Some((worker, (*since)?, u64::MAX))));

        let mut pairs = BTreeSet::new();
        for (one, since, until) in &intervals {
            for (other, other_since, other_until) in &intervals {
                if one < other && since < other_until && other_since < until {
                    pairs.insert([WORKERS[*one], WORKERS[*other]]);
                }
            }
        }
        let verdicts = audit(&history(story), &Rules::default());
        let mut found: Vec<Vec<&str>> = verdicts
            .iter()
            .map(|verdict| verdict.processes.iter().map(|name| name.as_str()).collect())
            .collect();
        found.iter_mut().for_each(|pair| pair.sort_unstable());
        found.sort();
        prop_assert_eq!(found, pairs.into_iter().map(Vec::from).collect::<Vec<_>>());
    }
}
