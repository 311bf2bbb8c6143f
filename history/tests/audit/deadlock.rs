//! Circles of processes that wait for each other's locks.

use std::time::Duration;

use history::{Kind, Name, Rules, Verdict, VerdictKind, audit};

use crate::story::{history, millis_at, only};

/// A story of two locks, 1 and 2; an owner is named after its process and the lock.
fn owner(process: &str, lock: u64) -> Name {
    format!("{process}{lock}:7f3c9e12").as_str().into()
}

fn key(lock: u64) -> Name {
    format!("2f1a6b03c9d{lock}").as_str().into()
}

fn requested(process: &str, lock: u64) -> Kind {
    let (key, owner) = (key(lock), owner(process, lock));
    Kind::LeaseRequested { resource_type: None, key, owner, ttl_millis: Some(2000) }
}

fn acquired(process: &str, lock: u64) -> Kind {
    let (key, owner) = (key(lock), owner(process, lock));
    let (token, ttl_millis, valid_micros) = (1, Some(2000), Some(1_978_000));
    Kind::LeaseAcquired { resource_type: None, key, owner, token, ttl_millis, valid_micros }
}

fn renewed(process: &str, lock: u64) -> Kind {
    let (key, owner) = (key(lock), owner(process, lock));
    Kind::LeaseRenewed { resource_type: None, key, owner, token: 1, valid_micros: Some(1_978_000) }
}

fn not_acquired(process: &str, lock: u64) -> Kind {
    let (key, owner) = (key(lock), owner(process, lock));
    Kind::LeaseNotAcquired { resource_type: None, key, owner, outcome: Some("contended".into()) }
}

fn retried(process: &str, lock: u64) -> Kind {
    let (key, owner) = (key(lock), owner(process, lock));
    Kind::LeaseRetried { resource_type: None, key, owner, ttl_millis: Some(2000) }
}

fn release_requested(process: &str, lock: u64) -> Kind {
    let (key, owner) = (key(lock), owner(process, lock));
    Kind::LeaseReleaseRequested { resource_type: None, key, owner, token: 1 }
}

/// Returns rules by which requests are served within 3 s, and the run ends at 12 s.
fn rules() -> Rules {
    Rules {
        end: millis_at(12_000),
        healed_at: Some(millis_at(0)),
        served_within: Some(Duration::from_secs(3)),
        one_task: true,
        sessions: true,
        ..Rules::default()
    }
}

type Story = Vec<(u64, &'static str, Kind)>;

/// a holds lock 1 and asks for lock 2, b the other way round; both renew once a second until 9 s.
fn circle() -> Story {
    let mut story = vec![
        (100, "a", requested("a", 1)),
        (110, "b", requested("b", 2)),
        (200, "a", acquired("a", 1)),
        (210, "b", acquired("b", 2)),
        (300, "a", requested("a", 2)),
        (400, "b", requested("b", 1)),
    ];
    for second in 1..9 {
        story.push((1000 * second, "a", renewed("a", 1)));
        story.push((1000 * second + 10, "b", renewed("b", 2)));
    }
    story
}

fn judge(story: Story, rules: &Rules) -> Vec<Verdict> {
    let mut story = story;
    story.sort_by_key(|(at, ..)| *at);
    audit(&history(story), rules)
}

#[test]
fn two_that_wait_for_each_other_are_stuck() {
    let verdicts = judge(circle(), &rules());
    let verdict = only(VerdictKind::Stuck, &verdicts);
    assert_eq!(
        verdict.detail,
        "a waited since 0.300 for a lock of b, b waited since 0.400 for a lock of a: each renewed its own, \
         and none had an answer by 3.400, 3 s after the last of them began to wait"
    );
    assert_eq!((verdict.at, &verdict.processes[..]), (millis_at(3400), &["a", "b"].map(Name::from)[..]));
}

#[test]
fn a_circle_counts_from_the_end_of_the_faults() {
    let verdicts = judge(circle(), &Rules { healed_at: Some(millis_at(2000)), ..rules() });
    assert_eq!(only(VerdictKind::Stuck, &verdicts).at, millis_at(5000));
    assert_eq!(judge(circle(), &Rules { healed_at: Some(millis_at(6000)), ..rules() }), []);
}

#[test]
fn a_wait_that_goes_on_under_another_owner_is_one_wait() {
    let mut story = circle();
    for millis in (500..9000).step_by(300) {
        story.push((millis, "a", not_acquired("a", 2)));
        story.push((millis, "a", retried("a", 2)));
    }
    only(VerdictKind::Stuck, &judge(story, &rules()));
}

#[test]
fn a_circle_that_opens_in_time_is_not_stuck() {
    // b gives up, and later asks again.
    let mut story = circle();
    story.extend([(3000, "b", not_acquired("b", 1)), (6500, "b", requested("b", 1))]);
    assert_eq!(judge(story, &rules()), []);
    // b releases.
    let mut story = circle();
    story.push((2500, "b", release_requested("b", 2)));
    assert_eq!(judge(story, &rules()), []);
}

#[test]
fn leases_that_are_not_renewed_open_the_circle() {
    let renews = |kind: &Kind| matches!(kind, Kind::LeaseRenewed { .. });
    let story = circle().into_iter().filter(|(_, process, kind)| *process == "a" || !renews(kind)).collect();
    assert_eq!(judge(story, &rules()), []);
}

#[test]
fn a_chain_without_a_circle_is_not_stuck() {
    // b works under lock 2, and waits for nothing.
    let waits = |kind: &Kind| *kind == requested("b", 1);
    let story = circle().into_iter().filter(|(.., kind)| !waits(kind)).collect();
    assert_eq!(judge(story, &rules()), []);
}

#[test]
fn processes_with_several_tasks_are_not_judged() {
    assert_eq!(judge(circle(), &Rules { one_task: false, ..rules() }), []);
}

fn shared(process: &str, lock: u64) -> Kind {
    let (key, owner) = (key(lock), owner(process, lock));
    Kind::LeaseShared { resource_type: None, key, owner }
}

/// Returns an event of another request of the process for the lock: its owner is named `process` and `+`.
fn for_writing(of: fn(&str, u64) -> Kind, process: &str, lock: u64) -> Kind {
    of(&format!("{process}+"), lock)
}

/// a and b read under lock 1 and renew. Those of `writers` then ask for it again, to write.
fn readers(writers: &[&'static str]) -> Story {
    let mut story = Vec::new();
    for process in ["a", "b"] {
        story.extend([
            (100, process, shared(process, 1)),
            (110, process, requested(process, 1)),
            (200, process, acquired(process, 1)),
        ]);
        for second in 1..9 {
            story.push((1000 * second, process, renewed(process, 1)));
        }
    }
    story.extend(writers.iter().map(|process| (300, *process, for_writing(requested, process, 1))));
    story
}

#[test]
fn a_reader_that_waits_to_write_is_stuck() {
    let verdicts = judge(readers(&["a"]), &rules());
    let verdict = only(VerdictKind::Stuck, &verdicts);
    assert!(verdict.detail.starts_with("a waited since 0.300 for a lock of a: each renewed"), "{verdict:?}");
    only(VerdictKind::Stuck, &judge(readers(&["a", "b"]), &rules()));
    // It asks to read once more: readers don't exclude each other.
    let mut story = readers(&["a"]);
    story.push((290, "a", for_writing(shared, "a", 1)));
    assert_eq!(judge(story, &rules()), []);
    // Another process waits: the readers may read for long.
    let mut story = readers(&[]);
    story.push((300, "c", requested("c", 1)));
    assert_eq!(judge(story, &rules()), []);
}

#[test]
fn readers_that_wait_for_a_key_each_are_stuck() {
    let reader = |process: &'static str, lock| {
        [(90, process, shared(process, lock)), (100, process, requested(process, lock))]
    };
    let mut story = circle();
    story.extend([reader("a", 1), reader("b", 2)].concat());
    let verdicts = judge(story, &rules());
    let verdict = only(VerdictKind::Stuck, &verdicts);
    assert_eq!(verdict.processes, ["a", "b"].map(Name::from));
}
