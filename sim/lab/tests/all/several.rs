//! Workers that lock several keys together: on every system all of them are served, whatever the faults.

use lab::museum::Mutant;
use lab::{Arm, Options, System, Worker, WorkerMode, draw_for, run, schedule};
use sim::{Schedule, Span, VerdictKind};

use crate::support::drawn::{convicted, unbroken};

/// The number of drawn schedules on each system.
const SCHEDULES: u64 = 20;

fn keys(numbers: &[u64]) -> Vec<String> {
    numbers.iter().map(|number| format!("orders:{number}")).collect()
}

fn several(name: &str, numbers: &[u64]) -> Worker {
    Worker { mode: WorkerMode::new("several"), keys: keys(numbers), ..Worker::new(name) }
}

fn with(workers: Vec<Worker>) -> Schedule<Options> {
    let mut schedule = schedule("several", System::REDIS, Span::from_secs(2), workers);
    schedule.options.keys = keys(&[42, 43, 44]);
    schedule
}

/// Makes the workers of a drawn schedule lock two or three of three keys, in orders that close circles.
fn together(mut schedule: Schedule<Options>) -> Schedule<Options> {
    schedule.options.keys = keys(&[42, 43, 44]);
    for (number, worker) in schedule.options.workers.iter_mut().enumerate() {
        (worker.mode, worker.key) = (WorkerMode::new("several"), None);
        worker.keys = schedule.options.keys.clone();
        worker.keys.rotate_left(number % 3);
        worker.keys.truncate(2 + number % 2);
    }
    schedule
}

#[test]
fn workers_of_several_keys_break_nothing_under_faults() {
    for system in System::of_locks() {
        let mut grants = 0;
        for seed in 0..SCHEDULES {
            let schedule = together(draw_for(system, seed));
            let report = unbroken(&schedule, seed);
            grants += report.summary().grants;
        }
        assert!(grants > 3 * SCHEDULES, "{system}: {grants} grants");
    }
}

#[test]
fn keys_in_the_order_of_the_request_deadlock_on_every_system() {
    for system in System::of_locks() {
        let schedules = (0..SCHEDULES).map(|seed| together(draw_for(system, seed)));
        convicted(Mutant::UnorderedKeys, VerdictKind::Stuck, schedules);
    }
}

#[test]
fn each_write_carries_the_token_of_its_own_key() {
    let one = Worker { key: Some("orders:43".into()), rounds: 3, ..Worker::new("a") };
    let both = Worker { starts: Span::from_secs(5), ..several("b", &[43, 42]) };
    let report = run(&with(vec![one, both]), Arm::Fenced, 1).unwrap();
    assert_eq!(report.verdicts, []);
    let accepted: Vec<String> = report.summary().accepted.iter().map(ToString::to_string).collect();
    assert_eq!(accepted, ["a:1", "a:2", "a:3", "b:1", "b:4"]);
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let refused = |worker: Worker| run(&with(vec![worker]), Arm::Fenced, 1).unwrap_err().to_string();
    let cases = [
        (several("a", &[42, 45]), "unknown key `orders:45` of `a`"),
        (several("a", &[42, 42]), "`a` names the key `orders:42` twice"),
        (several("a", &[42]), "`a` has one key: `mode = \"several\"` needs two at least"),
        (
            Worker { key: Some("orders:42".into()), ..several("a", &[42, 43]) },
            "`key` does not apply to `mode = \"several\"`",
        ),
        (
            Worker { mode: WorkerMode::default(), ..several("a", &[42, 43]) },
            "`keys` needs `mode = \"several\"`",
        ),
    ];
    for (worker, problem) in cases {
        let error = refused(worker);
        assert!(error.contains(problem), "{problem}: {error}");
    }
}
