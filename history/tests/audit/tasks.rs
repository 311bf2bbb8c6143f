use history::{Kind, Verdict, VerdictKind};

use crate::story::{accepted, accepted_number, acquired, judge, key, lines, only, owner};

fn due(task: u64) -> Kind {
    Kind::TaskDue { key: key(), task }
}

fn started(worker: &str, token: u64, task: u64) -> Kind {
    Kind::TaskStarted { key: key(), owner: Some(owner(worker)), token, task }
}

fn sent(worker: &str, token: u64, task: u64) -> Kind {
    Kind::TaskSent { key: key(), owner: Some(owner(worker)), token, seq: None, task }
}

fn ended(worker: &str, token: u64, task: u64, outcome: &str) -> Kind {
    let (owner, outcome) = (Some(owner(worker)), Some(outcome.into()));
    Kind::TaskEnded { key: key(), owner, token, task, outcome }
}

fn passed(task: u64, outcome: &str) -> Kind {
    Kind::TasksPassed { key: key(), task, outcome: Some(outcome.into()) }
}

/// Judges what follows a run of task 7 by `a` up to the acceptance of its commit.
fn after_a_run<const N: usize>(events: [(u64, &'static str, Kind); N]) -> Vec<Verdict> {
    let run = [
        (0, "a", acquired("a", 1)),
        (1, "a", due(7)),
        (2, "a", started("a", 1, 7)),
        (3, "a", sent("a", 1, 7)),
        (4, "resource", accepted("a", 1, 1)),
    ];
    judge(run.into_iter().chain(events))
}

#[test]
fn a_task_that_is_committed_twice_is_convicted() {
    let verdicts = after_a_run([
        (10, "b", acquired("b", 2)),
        (11, "b", started("b", 2, 7)),
        (12, "b", sent("b", 2, 7)),
        (13, "resource", accepted("b", 2, 2)),
        (14, "b", ended("b", 2, 7, "done")),
    ]);
    let verdict = only(VerdictKind::RanTwice, &verdicts);
    assert_eq!(
        verdict.detail,
        "b (token 2) committed task 7 at 0.013, and a (token 1) had committed it at 0.004"
    );
}

#[test]
fn a_task_may_start_again_until_its_commit_is_acknowledged() {
    assert_eq!(after_a_run([(10, "b", started("b", 2, 7))]), []);
    let verdicts = after_a_run([(5, "a", ended("a", 1, 7, "done")), (10, "b", started("b", 2, 7))]);
    let verdict = only(VerdictKind::RanTwice, &verdicts);
    assert_eq!(
        verdict.detail,
        "b (token 2) started task 7 at 0.010, and a (token 1) had the answer to its commit at 0.005"
    );
}

#[test]
fn a_grant_commits_a_task_once() {
    let sent = |seq| {
        let (owner, seq) = (Some(owner("a")), Some(seq));
        Kind::TaskSent { key: key(), owner, token: 1, seq, task: 7 }
    };
    let first = [
        (0, "a", acquired("a", 1)),
        (1, "a", started("a", 1, 7)),
        (2, "a", sent(1)),
        (3, "resource", accepted_number("a", 1, 1, 1)),
    ];
    let and_then = |events: [_; 2]| lines(&judge(first.clone().into_iter().chain(events)));
    let done = || ended("a", 1, 7, "done");
    assert_eq!(and_then([(4, "a", done()), (5, "a", done())]), [""; 0]);
    let again = accepted_number("a", 1, 2, 2);
    assert_eq!(and_then([(4, "a", sent(2)), (5, "resource", again)]), ["ran_twice a"]);
    assert_eq!(and_then([(4, "a", done()), (5, "a", started("a", 1, 7))]), ["ran_twice a"]);
}

#[test]
fn a_worker_that_claimed_before_the_commit_may_start_late() {
    let committed_by_b = [
        (0, "a", acquired("a", 1)),
        (10, "b", acquired("b", 2)),
        (11, "b", started("b", 2, 7)),
        (12, "b", sent("b", 2, 7)),
        (13, "resource", accepted("b", 2, 1)),
        (14, "b", ended("b", 2, 7, "done")),
    ];
    let and_then = |event| judge(committed_by_b.clone().into_iter().chain([event]));
    assert_eq!(and_then((20, "a", started("a", 1, 7))), []);
    only(VerdictKind::RanTwice, &and_then((20, "a", started("a", 3, 7))));
}

#[test]
fn the_next_task_and_a_refused_commit_are_no_second_run() {
    assert_eq!(
        after_a_run([
            (5, "a", ended("a", 1, 7, "done")),
            (10, "b", started("b", 2, 8)),
            (11, "b", sent("b", 2, 8)),
            (12, "resource", accepted("b", 2, 2)),
            (13, "a", ended("a", 1, 7, "done")),
            (14, "c", sent("c", 3, 7)),
            (15, "c", ended("c", 3, 7, "refused")),
        ]),
        []
    );
}

#[test]
fn a_store_without_events_is_judged_by_the_answers() {
    let done = |worker| ended(worker, 1, 7, "done");
    assert_eq!(lines(&judge([(1, "a", done("a")), (2, "b", done("b"))])), ["ran_twice b a"]);
    assert_eq!(judge([(1, "a", done("a")), (2, "a", done("a"))]), []);
}

#[test]
fn a_due_task_that_is_passed_over_is_lost() {
    let verdicts = judge([(1, "a", due(7)), (2, "a", due(9)), (3, "b", passed(8, "done"))]);
    let verdict = only(VerdictKind::TaskLost, &verdicts);
    assert!(verdict.detail.starts_with("task 7 was due at 0.001 by a, and b found"), "{}", verdict.detail);
}

#[test]
fn the_worker_that_ran_a_lost_task_has_a_part_in_its_loss() {
    let run =
        [(1, "a", due(7)), (2, "c", started("c", 1, 7)), (3, "c", Kind::ProcessCrashed { detail: None })];
    let verdicts = judge(run.into_iter().chain([(4, "b", passed(8, "done"))]));
    assert_eq!(lines(&verdicts), ["task_lost b c"]);
}

#[test]
fn a_task_is_not_lost_while_a_worker_has_it() {
    let step = |step: &str| Kind::WorkerStep { step: step.into(), key: Some(key()), owner: None };
    let (died, empty) = (Kind::ProcessCrashed { detail: None }, || passed(u64::MAX, "done"));
    let asked = [(1, "a", due(7)), (2, "c", step("asked"))].to_vec();
    let started = [asked.clone(), vec![(3, "c", started("c", 1, 7))]].concat();
    let with = |run: &Vec<_>, then: Vec<_>| lines(&judge([run.clone(), then].concat()));
    for run in [&asked, &started] {
        assert_eq!(with(run, vec![(5, "b", empty())]), [""; 0]);
        // It is lost once the worker is done with it, or dead.
        for end in [step("released"), empty(), died.clone()] {
            let then = vec![(5, "b", empty()), (6, "c", end.clone()), (7, "b", empty())];
            assert_eq!(with(run, then).len(), 1, "{end:?}");
        }
    }
    assert_eq!(with(&asked, vec![(5, "c", died.clone()), (6, "b", empty())]), ["task_lost b c"]);
    // Nobody asks again: the end of the history shows that it died with the task.
    let end = vec![(5, "b", empty()), (6, "c", died.clone())];
    assert_eq!(with(&asked, end.clone()), ["task_lost b c"]);
    assert_eq!(with(&started, end), ["task_lost b c"]);
    // The late commit of a worker that was passed over counts.
    let late = vec![(5, "b", empty()), (6, "c", sent("c", 1, 7)), (7, "resource", accepted("c", 1, 1))];
    assert_eq!(with(&[started, late].concat(), vec![(8, "b", empty())]), [""; 0]);
}

#[test]
fn a_commit_may_go_to_a_resource_of_its_own() {
    let write_sent = |worker: &str, token| Kind::WriteSent {
        key: "7".into(),
        owner: Some(owner(worker)),
        token,
        seq: None,
    };
    let accepted_there = |worker: &str, token| {
        let owner = Some(owner(worker));
        Kind::WriteAccepted { key: "7".into(), owner, token, seq: None, version: token, body: None }
    };
    let once = [
        (1, "a", due(7)),
        (2, "a", sent("a", 1, 7)),
        (3, "a", write_sent("a", 1)),
        (4, "resource", accepted_there("a", 1)),
        (5, "b", passed(u64::MAX, "done")),
    ];
    assert_eq!(judge(once.clone()), []);
    let again =
        [(6, "b", sent("b", 2, 7)), (7, "b", write_sent("b", 2)), (8, "resource", accepted_there("b", 2))];
    only(VerdictKind::RanTwice, &judge(once.clone().into_iter().chain(again)));
    // A write of the job that no event has announced commits nothing.
    let part = [(6, "b", write_sent("b", 2)), (7, "resource", accepted_there("b", 2))];
    assert_eq!(judge(once.into_iter().chain(part)), []);
}

#[test]
fn a_task_that_was_stored_after_the_question_is_not_lost() {
    let asked = || Kind::WorkerStep { step: "asked".into(), key: Some(key()), owner: None };
    let empty = || passed(u64::MAX, "done");
    assert_eq!(judge([(1, "b", asked()), (2, "a", due(7)), (3, "b", empty())]), []);
    let verdicts =
        judge([(1, "b", asked()), (2, "a", due(7)), (3, "b", empty()), (4, "b", asked()), (5, "b", empty())]);
    only(VerdictKind::TaskLost, &verdicts);
}

#[test]
fn a_task_that_was_dead_before_its_enqueue_was_acknowledged_is_not_lost() {
    assert_eq!(
        judge([(1, "b", ended("b", 1, 7, "dead")), (2, "a", due(7)), (3, "b", passed(9, "done"))]),
        []
    );
}

/// As `real chaos` found with PostgreSQL behind a slow link: `a` asked before `b`, and had its answer later.
#[test]
fn a_task_that_was_skipped_is_not_due_to_a_worker_with_an_older_answer() {
    let skips = |from, to| [(1, "b", passed(from, "done")), (1, "b", passed(to, "skipped"))];
    let then = [(3, "a", due(7)), (4, "b", passed(9, "done"))];
    assert_eq!(judge(skips(5, 8).into_iter().chain(then.clone())), []);
    // The skipped tasks end before task 7.
    assert_eq!(lines(&judge(skips(5, 6).into_iter().chain(then))), ["task_lost b"]);
}

#[test]
fn a_task_that_is_done_skipped_or_dead_is_not_lost() {
    assert_eq!(after_a_run([(9, "b", passed(7, "done"))]), []);
    assert_eq!(after_a_run([(8, "b", due(7)), (9, "b", passed(u64::MAX, "done"))]), []);
    assert_eq!(judge([(1, "a", due(7)), (2, "b", passed(7, "skipped")), (3, "b", passed(9, "done"))]), []);
    assert_eq!(
        judge([(1, "a", due(7)), (2, "b", ended("b", 1, 7, "dead")), (3, "b", passed(9, "done"))]),
        []
    );
}
