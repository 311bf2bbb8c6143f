use history::{Fairness, Summary, WriteBy};
use proptest::prelude::*;

use crate::story::{
    accepted, accepted_unnamed, acquired, expired, history, not_acquired, rejected, released, renewed,
    repeated, requested, retried,
};

#[test]
fn a_summary_names_writes_by_worker_and_token() {
    let summary = Summary::of(&history([
        (1, "worker-1", acquired("a", 1)),
        (2, "redis", expired("a")),
        (3, "b", acquired("b", 2)),
        (4, "b", renewed("b", 2)),
        (5, "resource", accepted("b", 2, 1)),
        (6, "resource", repeated("b", 2, 1)),
        (7, "resource", rejected("a", 1, 2)),
        (8, "resource", accepted("stranger", 3, 2)),
        (9, "resource", accepted_unnamed(2, 3)),
        (9, "resource", accepted_unnamed(9, 4)),
        (10, "b", released("b", 2, "done")),
        (11, "worker-1", released("a", 1, "not_owner")),
    ]));
    let texts = |writes: &[WriteBy]| writes.iter().map(WriteBy::to_string).collect::<Vec<_>>();
    assert_eq!(texts(&summary.accepted), ["b:2", "stranger:3", "b:2", "?:9"]);
    assert_eq!(texts(&summary.refused), ["worker-1:1"], "by its process, not by its owner token");
    assert_eq!((summary.grants, summary.releases, summary.renewals, summary.expiries), (2, 1, 1, 1));
}

#[test]
fn a_write_reads_back_from_its_text() {
    let write: WriteBy = "a:b:2".parse().unwrap();
    assert_eq!((write.worker.as_str(), write.token, write.to_string().as_str()), ("a:b", 2, "a:b:2"));
    for text in ["", "b", ":2", "b:", "b:x"] {
        assert!(text.parse::<WriteBy>().unwrap_err().to_string().contains("b:2"), "{text}");
    }
}

/// Counts the fairness of grants: `order` has the place of each one's request in the order of arrival.
fn fairness(order: &[usize]) -> Fairness {
    let names: Vec<String> = (0..order.len()).map(|number| format!("w{number}")).collect();
    let arrivals = names.iter().map(|name| (1, name.as_str(), requested(name)));
    let grants = order.iter().map(|number| (2, names[*number].as_str(), acquired(&names[*number], 1)));
    Fairness::of(&history(arrivals.chain(grants)))
}

#[test]
fn fairness_counts_inversions_and_the_longest_overtaking() {
    assert_eq!(fairness(&[0, 1, 2, 3]), Fairness { served: 4, inversions: 0, overtaken_max: 0 });
    assert_eq!(fairness(&[3, 0, 1, 2]), Fairness { served: 4, inversions: 3, overtaken_max: 1 });
    assert_eq!(fairness(&[1, 2, 3, 0]), Fairness { served: 4, inversions: 3, overtaken_max: 3 });
    assert_eq!(fairness(&[]), Fairness::default());
}

#[test]
fn a_request_with_a_new_owner_token_keeps_its_place() {
    let history = history([
        (1, "a", requested("a")),
        (2, "b", requested("b")),
        (3, "a", not_acquired("a")),
        (3, "a", retried("a2")),
        (4, "b", acquired("b", 1)),
        (5, "a", acquired("a2", 2)),
    ]);
    assert_eq!(Fairness::of(&history), Fairness { served: 2, inversions: 1, overtaken_max: 1 });
}

proptest! {
    #[test]
    fn fairness_agrees_with_counting_all_pairs(
        order in Just((0..40).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let overtakers =
            |place: usize| order[..place].iter().filter(|other| **other > order[place]).count() as u64;
        let each: Vec<u64> = (0..order.len()).map(overtakers).collect();
        let expected = Fairness {
            served: 40,
            inversions: each.iter().sum(),
            overtaken_max: each.iter().copied().max().unwrap(),
        };
        prop_assert_eq!(fairness(&order), expected);
    }
}
