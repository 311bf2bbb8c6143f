//! Workers whose sections nest: on every system they break nothing, whatever the faults.

use lab::{Arm, Options, ReleaseMode, System, Worker, WorkerMode, draw_for, run, schedule};
use sim::{Schedule, Span};

use crate::support::drawn::unbroken;

/// The number of drawn schedules on each system.
const SCHEDULES: u64 = 20;

/// Makes the workers of a drawn schedule nest two or three sections.
fn nested(mut schedule: Schedule<Options>) -> Schedule<Options> {
    for (number, worker) in schedule.options.workers.iter_mut().enumerate() {
        (worker.mode, worker.depth) = (WorkerMode::new("reentrant"), Some(2 + number as u32 % 2));
        (worker.writes, worker.release) = (1, ReleaseMode::default());
    }
    schedule
}

fn with(worker: Worker) -> Schedule<Options> {
    schedule("reentrant", System::REDIS, Span::from_secs(2), vec![worker])
}

fn reentrant(depth: Option<u32>) -> Worker {
    Worker { mode: WorkerMode::new("reentrant"), depth, ..Worker::new("a") }
}

#[test]
fn nested_sections_break_nothing_under_faults() {
    for system in System::of_locks() {
        let (mut grants, mut accepted) = (0, 0);
        for seed in 0..SCHEDULES {
            let schedule = nested(draw_for(system, seed));
            let report = unbroken(&schedule, seed);
            grants += report.summary().grants as usize;
            accepted += report.summary().accepted.len();
        }
        assert!(accepted > 2 * grants, "{system}: {accepted} writes under {grants} grants");
    }
}

#[test]
fn a_round_makes_one_grant_and_twice_the_depth_less_one_writes() {
    for depth in [2, 3, 9] {
        let report = run(&with(reentrant(Some(depth))), Arm::Fenced, 1).unwrap();
        assert_eq!(report.verdicts, []);
        assert_eq!(report.summary().accepted.len() as u32, 2 * depth - 1);
        assert_eq!(report.summary().grants, 1);
    }
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let refused = |worker: Worker| run(&with(worker), Arm::Fenced, 1).unwrap_err().to_string();
    let cases = [
        (reentrant(Some(1)), "`depth` = 1 of `a`: give 2 to 9"),
        (Worker { writes: 2, ..reentrant(None) }, "`writes` does not apply to `mode = \"reentrant\"`"),
        (Worker { release: ReleaseMode::None, ..reentrant(None) }, "`release` does not apply to"),
        (
            Worker { mode: WorkerMode::default(), ..reentrant(Some(2)) },
            "`depth` needs `mode = \"reentrant\"`",
        ),
    ];
    for (worker, problem) in cases {
        let error = refused(worker);
        assert!(error.contains(problem), "{problem}: {error}");
    }
}
