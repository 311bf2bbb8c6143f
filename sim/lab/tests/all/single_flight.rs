//! Workers that share results: on every system they break nothing, whatever the faults, and compute less
//! often than they ask.

use lab::museum::Mutant;
use lab::{Arm, Options, System, Worker, WorkerMode, draw_for, run, schedule, validate};
use sim::{Kind, Schedule, Span, VerdictKind};

use crate::support::drawn::{convicted, unbroken};

/// The number of drawn schedules on each system.
const SCHEDULES: u64 = 20;

/// Makes the workers of a drawn schedule share results; the first one fails once.
fn flying(mut schedule: Schedule<Options>) -> Schedule<Options> {
    for (number, worker) in schedule.options.workers.iter_mut().enumerate() {
        let Worker { name, starts, rounds, key, think, deadline, work, .. } = worker.clone();
        let (mode, fails) = (WorkerMode::new("single_flight"), (number == 0).then_some(1));
        *worker =
            Worker { name, mode, fails, starts, rounds, key, think, deadline, work, ..Worker::default() };
    }
    // Faults that are aimed at steps of other workloads, or drop their calls.
    for fault in std::mem::take(&mut schedule.faults) {
        schedule.faults.push(fault);
        if validate(&schedule).is_err() {
            schedule.faults.pop();
        }
    }
    schedule
}

fn with(workers: Vec<Worker>) -> Schedule<Options> {
    schedule("single-flight", System::REDIS, Span::from_secs(2), workers)
}

fn flight(name: &str) -> Worker {
    Worker { mode: WorkerMode::new("single_flight"), ..Worker::new(name) }
}

#[test]
fn flights_break_nothing_under_faults() {
    for system in System::of_locks() {
        let (mut accepted, mut rounds) = (0, 0);
        for seed in 0..SCHEDULES {
            let schedule = flying(draw_for(system, seed));
            let report = unbroken(&schedule, seed);
            accepted += report.summary().accepted.len();
            rounds += schedule.options.workers.iter().map(|worker| worker.rounds as usize).sum::<usize>();
        }
        assert!(accepted > SCHEDULES as usize && accepted < rounds, "{system}: {accepted} of {rounds}");
    }
}

#[test]
fn without_a_second_look_results_are_computed_again() {
    for system in System::of_locks() {
        let drawn = |seed| {
            let mut schedule = flying(draw_for(system, seed));
            schedule.options.workers.iter_mut().for_each(|worker| worker.fails = None);
            schedule
        };
        convicted(Mutant::NoSecondLook, VerdictKind::ComputedTwice, (0..SCHEDULES).map(drawn));
    }
}

#[test]
fn one_computes_and_both_return_its_result() {
    let workers = ["a", "b"].map(|name| Worker { work: Span::from_millis(500), ..flight(name) });
    let report = run(&with(workers.into()), Arm::Fenced, 1).unwrap();
    let count =
        |is_meant: fn(&Kind) -> bool| report.events.iter().filter(|event| is_meant(&event.kind)).count();
    let started = count(|kind| matches!(kind, Kind::FlightStarted { above: 0, .. }));
    let computed = count(|kind| matches!(kind, Kind::ComputationStarted { token: 1, .. }));
    let returned = count(|kind| matches!(kind, Kind::ResultReturned { token: 1, .. }));
    assert_eq!((started, computed, returned), (2, 1, 2), "{}", report.trace());
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let refused = |workers| run(&with(workers), Arm::Fenced, 1).unwrap_err().to_string();
    let cases = [
        (
            vec![Worker { check: false, ..flight("a") }],
            "`check` does not apply to `mode = \"single_flight\"`",
        ),
        (vec![Worker { fails: Some(1), ..Worker::new("a") }], "`fails` needs `mode = \"single_flight\"`"),
        (vec![flight("a"), Worker::new("b")], "`a` keeps results in the resource that `b` writes"),
    ];
    for (workers, problem) in cases {
        let error = refused(workers);
        assert!(error.contains(problem), "{problem}: {error}");
    }
}
