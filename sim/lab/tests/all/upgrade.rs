//! Readers that want to write: their leases are never made ones for writing, and all of them are served.

use lab::museum::Mutant;
use lab::{Arm, Options, ReleaseMode, System, Worker, WorkerMode, draw_for, run, schedule};
use sim::{Schedule, Span, VerdictKind};

use crate::support::drawn::{convicted, unbroken};

/// The number of drawn schedules on each system.
const SCHEDULES: u64 = 20;

/// The systems with readers.
const SYSTEMS: [System; 3] = [System::REDIS, System::ETCD, System::ZOOKEEPER];

/// Makes the workers of a drawn schedule readers that want to write.
fn upgrading(mut schedule: Schedule<Options>) -> Schedule<Options> {
    Mutant::UpgradeByWaiting.suit(&mut schedule.options);
    schedule
}

fn with(worker: Worker, readers: bool) -> Schedule<Options> {
    let mut schedule = schedule("upgrade", System::REDIS, Span::from_secs(2), vec![worker]);
    schedule.options.readers = readers;
    schedule
}

fn upgrade() -> Worker {
    Worker { mode: WorkerMode::new("upgrade"), ..Worker::new("a") }
}

#[test]
fn readers_that_write_under_a_second_lease_break_nothing_under_faults() {
    for system in SYSTEMS {
        let (mut grants, mut accepted) = (0, 0);
        for seed in 0..SCHEDULES {
            let schedule = upgrading(draw_for(system, seed));
            let report = unbroken(&schedule, seed);
            grants += report.summary().grants as usize;
            accepted += report.summary().accepted.len();
        }
        assert!(accepted > SCHEDULES as usize, "{system}: {accepted} writes");
        assert!(grants > accepted, "{system}: {grants} grants, {accepted} writes");
    }
}

#[test]
fn readers_that_wait_to_write_are_stuck_on_every_system() {
    for system in SYSTEMS {
        let schedules = (0..SCHEDULES).map(|seed| upgrading(draw_for(system, seed)));
        convicted(Mutant::UpgradeByWaiting, VerdictKind::Stuck, schedules);
    }
}

#[test]
fn a_round_makes_a_grant_to_read_and_one_to_write() {
    let report = run(&with(upgrade(), true), Arm::Fenced, 1).unwrap();
    assert_eq!(report.verdicts, []);
    let summary = report.summary();
    let accepted: Vec<String> = summary.accepted.iter().map(ToString::to_string).collect();
    assert_eq!((summary.grants, &accepted[..]), (2, &["a:2".to_owned()][..]));
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let cases = [
        (upgrade(), false, "`mode = \"upgrade\"` of `a` needs the schedule's `readers = true`"),
        (Worker { shared: true, ..upgrade() }, true, "`shared` does not apply to `mode = \"upgrade\"`"),
        (Worker { release: ReleaseMode::None, ..upgrade() }, true, "`release` does not apply to"),
    ];
    for (worker, readers, problem) in cases {
        let error = run(&with(worker, readers), Arm::Fenced, 1).unwrap_err().to_string();
        assert!(error.contains(problem), "{problem}: {error}");
    }
}
