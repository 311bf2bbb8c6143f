//! A job queue on several workers: each job is committed once, and none is lost, whatever the faults do.

use lab::museum::{Museum, Mutant};
use lab::{Arm, Options, ReadMode, ReleaseMode, System, Worker, WorkerMode};
use lab::{draw_for, run, schedule};
use sim::faults::{Fault, Pause};
use sim::{Kind, Report, Schedule, Span, VerdictKind};

use crate::support::case;
use crate::support::drawn::{is_convicted, unbroken};

/// The number of drawn schedules.
const SCHEDULES: u64 = 60;

/// Makes the workers of a drawn schedule those of a queue, with three jobs of the first one.
fn working(mut schedule: Schedule<Options>) -> Schedule<Options> {
    schedule.options.keys.truncate(1);
    for (number, worker) in schedule.options.workers.iter_mut().enumerate() {
        let plain = Worker::default();
        (worker.mode, worker.key) = (WorkerMode::new("jobs"), None);
        (worker.read, worker.release, worker.check) = (ReadMode::None, ReleaseMode::Script, plain.check);
        worker.cancel_at.clear();
        worker.jobs = (number == 0).then_some(3);
        (worker.rounds, worker.deadline) = (worker.rounds + 2, Span::from_secs(5));
    }
    // Faults that are aimed at steps of a lock never strike.
    let faults = std::mem::take(&mut schedule.faults);
    for fault in faults {
        schedule.faults.push(fault);
        if lab::validate(&schedule).is_err() {
            schedule.faults.pop();
        }
    }
    schedule.limit = schedule.limit.times(3);
    schedule
}

/// Returns the jobs whose commits were acknowledged, with their workers: `a 1`.
fn done(report: &Report) -> Vec<String> {
    let of = |event: &history::Event| match &event.kind {
        Kind::TaskEnded { task, outcome: Some(outcome), .. } if outcome.as_str() == "done" => {
            Some(format!("{} {task}", event.process))
        }
        _ => None,
    };
    report.events.iter().filter_map(of).collect()
}

fn replay(name: &str) -> &'static Report {
    case(name).run(Arm::Fenced)
}

#[test]
fn workers_of_a_queue_break_nothing_under_faults() {
    for system in [System::REDIS, System::POSTGRES] {
        let mut jobs = 0;
        for seed in 0..SCHEDULES {
            let schedule = working(draw_for(system, seed));
            let report = unbroken(&schedule, seed);
            jobs += done(&report).len() as u64;
        }
        assert!(jobs > SCHEDULES, "{system}: {jobs} jobs");
    }
}

#[test]
fn a_lease_without_its_token_completes_a_job_twice_on_postgresql() {
    let schedule = &case("jobs-postgres-pause").schedule;
    let mistaken = Museum::new(Arm::Fenced).with(Mutant::LeaseIsTruth);
    let verdicts = |museum: &Museum| sim::sim::run(museum, schedule).unwrap().kinds();
    let kinds = verdicts(&mistaken);
    assert!(kinds.contains(&VerdictKind::RanTwice), "{kinds:?}");
    let kinds = verdicts(&mistaken.twin());
    assert!(kinds.is_empty(), "{kinds:?}");
}

#[test]
fn a_queue_in_postgresql_keeps_its_jobs_without_power() {
    let report = replay("jobs-postgres-power-loss");
    assert_eq!(report.faults_struck(), 1, "{}", report.trace());
    let mut jobs: Vec<_> = report.events.iter().filter_map(effect).collect();
    jobs.sort_unstable();
    jobs.dedup();
    assert_eq!(jobs.len(), 2, "{}", report.trace());
}

#[test]
fn postgresql_ends_a_silent_transaction_and_no_shorter_pause_gives_its_job_away() {
    let mut schedule = case("jobs-postgres-idle").schedule.clone();
    let accepted = |schedule: &Schedule<Options>| {
        let accepted = run(schedule, Arm::Fenced, 1).unwrap().summary().accepted;
        accepted.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(accepted(&schedule), ["b:2"]);
    // Shorter than the timeout of 5 s: the row of the job stays locked until its worker commits.
    let pause = Pause { lasts: Some(Span::from_secs(4)), ..Pause::of("a") };
    schedule.faults = vec![Fault::new(schedule.faults[0].when.clone(), pause)];
    assert_eq!(accepted(&schedule), ["a:1"]);
}

/// Returns the key of a job of which a part is committed.
fn effect(event: &history::Event) -> Option<&str> {
    match &event.kind {
        Kind::WriteAccepted { key, .. } => Some(key.as_str()),
        _ => None,
    }
}

#[test]
fn a_queue_without_its_rules_is_convicted() {
    let cases = [(Mutant::PopAndLose, VerdictKind::TaskLost), (Mutant::LeaseIsTruth, VerdictKind::RanTwice)];
    for (mutant, shows) in cases {
        let (mut convicted, mut twin) = (0, 0);
        // Few schedules crash a worker in its job.
        for seed in 0..10 * SCHEDULES {
            if seed >= SCHEDULES && convicted > 0 {
                break;
            }
            let schedule = working(draw_for(System::REDIS, seed));
            let [is_mistaken, is_twin] = is_convicted(mutant, shows, &schedule, seed);
            convicted += u64::from(is_mistaken);
            twin += u64::from(is_twin);
        }
        assert!(convicted > 0 && twin == 0, "{mutant}: {convicted}, of the twin {twin}");
    }
}

#[test]
fn each_job_is_done_by_one_worker() {
    let report = replay("jobs");
    let mut jobs: Vec<_> =
        done(report).iter().filter_map(|done| Some(done.split_once(' ')?.1.to_owned())).collect();
    jobs.sort();
    assert_eq!(jobs, ["1", "2", "3"], "{}", report.trace());
    assert_eq!(done(replay("jobs-lost-answer")), [""; 0]);
    assert_eq!(done(replay("jobs-dead")), ["b 21"]);
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let a = Worker { mode: WorkerMode::new("jobs"), ..Worker::new("a") };
    let of = |system, worker: Worker| {
        let schedule = schedule("jobs", system, Span::from_secs(2), vec![worker]);
        run(&schedule, Arm::Fenced, 1).unwrap_err().to_string()
    };
    let cases = [
        (System::ETCD, a.clone(), "needs a queue: the system `redis` or `postgres`, not `etcd`"),
        (
            System::POSTGRES,
            Worker::new("a"),
            "`mode = \"lock\"` of `a`: `postgres` has a job queue and no lock: write mode = \"jobs\"",
        ),
        (System::REDIS, Worker { jobs: Some(21), ..a.clone() }, "`jobs` of `a`: it must be 1 to 20"),
        (System::REDIS, Worker { read: ReadMode::Fenced, ..a.clone() }, "`read` does not apply"),
        (System::REDIS, Worker { check: false, ..a.clone() }, "`check` does not apply"),
        (System::REDIS, Worker { jobs: Some(1), ..Worker::new("a") }, "`jobs` needs `mode = \"jobs\"`"),
    ];
    for (system, worker, problem) in cases {
        let error = of(system, worker);
        assert!(error.contains(problem), "{problem}: {error}");
    }
}
