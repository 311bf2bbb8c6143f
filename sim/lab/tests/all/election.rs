//! Elections: leaders follow each other under all faults, and observers see their terms in order.

use history::Kind;
use lab::{Arm, Options, System, Worker, WorkerMode, draw_for, run, schedule};
use sim::{Schedule, Span};

use crate::support::case;
use crate::support::drawn::unbroken;

/// The number of drawn schedules on each system.
const SCHEDULES: u64 = 20;

fn of_mode(mode: &'static str, name: &str) -> Worker {
    Worker { mode: WorkerMode::new(mode), ..Worker::new(name) }
}

/// Makes the workers of a drawn schedule candidates, and adds an observer.
fn election(mut schedule: Schedule<Options>) -> Schedule<Options> {
    let options = &mut schedule.options;
    (options.permits, options.readers) = (None, false);
    for worker in &mut options.workers {
        let Worker { key, starts, work, deadline, check, read, .. } = worker.clone();
        let Worker { rounds, think, retry_put, .. } = worker.clone();
        let base = of_mode("election", &worker.name);
        *worker = Worker { key, starts, work, deadline, check, read, rounds, think, retry_put, ..base };
    }
    schedule.options.workers.push(Worker { rounds: 9, ..of_mode("observe", "observer") });
    schedule
}

/// Returns the terms that observers saw in a run of the schedule, with their leaders.
fn seen(name: &str) -> Vec<(String, u64)> {
    let report = case(name).run(Arm::Fenced);
    let events = report.events.iter().filter_map(|event| match &event.kind {
        Kind::TermObserved { owner: Some(owner), token, .. } => Some((owner.as_str(), *token)),
        _ => None,
    });
    events.map(|(owner, token)| (owner.split(':').next().unwrap_or_default().to_owned(), token)).collect()
}

#[test]
fn an_observer_sees_both_leaders_of_a_hand_over() {
    for system in ["election", "election-redlock", "election-etcd", "election-zookeeper"] {
        let seen = seen(system);
        let names: Vec<_> = seen.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b"], "{system}");
        assert!(seen[0].1 < seen[1].1, "{system}: {seen:?}");
    }
}

#[test]
fn after_a_failover_no_old_term_is_shown() {
    let seen = seen("election-failover");
    assert_eq!(seen, [("a".to_owned(), 1), ("b".to_owned(), 2)], "c leads in term 2, too");
}

#[test]
fn elections_break_nothing_under_faults() {
    for system in System::of_locks() {
        let (mut grants, mut terms) = (0, 0);
        for seed in 0..SCHEDULES {
            let schedule = election(draw_for(system, seed));
            let report = unbroken(&schedule, seed);
            grants += report.summary().grants;
            terms +=
                report.events.iter().filter(|event| matches!(event.kind, Kind::TermObserved { .. })).count();
        }
        assert!(grants > SCHEDULES && terms > 0, "{system}: {grants} grants, {terms} terms seen");
    }
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let cases = [
        (
            Worker { renew: true, ..of_mode("election", "a") },
            "`renew` does not apply to `mode = \"election\"`",
        ),
        (
            Worker { release: lab::ReleaseMode::None, ..of_mode("election", "a") },
            "`release` does not apply to `mode = \"election\"`",
        ),
        (Worker { writes: 2, ..of_mode("observe", "a") }, "`writes` does not apply to `mode = \"observe\"`"),
    ];
    for (worker, problem) in cases {
        let schedule = schedule("election", System::REDIS, Span::from_secs(2), vec![worker]);
        let error = run(&schedule, Arm::Fenced, 1).unwrap_err().to_string();
        assert!(error.contains(problem), "{problem}: {error}");
    }
    for mode in ["election", "observe"] {
        let mut schedule = schedule("election", System::REDIS, Span::from_secs(2), vec![of_mode(mode, "a")]);
        schedule.options.permits = Some(2);
        let error = run(&schedule, Arm::Fenced, 1).unwrap_err().to_string();
        assert!(error.contains("an election has one leader at a time"), "{error}");
    }
}
