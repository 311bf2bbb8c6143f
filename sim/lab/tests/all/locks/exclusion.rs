//! Mutual exclusion where nothing excuses its loss: in these drawn schedules all holders renew, no process
//! pauses, no clock that measures leases is changed, and no lock server forgets. The explorer must allow an
//! overlap that a pause explains; these tests allow none.

use history::VerdictKind as Verdict;
use lab::{Arm, Lab, Options, System, draw_for, run};
use sim::Schedule;
use sim::explore::violation;

use crate::support::share;

/// Number of schedules on each system.
const SEEDS: u64 = 200;

/// Runs the correct lock on the schedule and asserts that nothing overlaps; returns the number of faults that
/// struck.
fn run_without_overlap(schedule: &Schedule<Options>, seed: u64) -> usize {
    let report = run(schedule, Arm::Fenced, seed).unwrap();
    let broken = violation(&Lab::new(Arm::Fenced), schedule, &report)
        .map(|violation| violation.broken)
        .unwrap_or_default();
    assert!(
        !report.kinds().contains(&Verdict::Overlap) && broken.is_empty(),
        "seed {seed}: {:?}\n{}\n{}",
        report.kinds(),
        report.trace(),
        crate::support::replay_line("all locks::exclusion", seed)
    );
    report.faults_struck()
}

fn holders_do_not_overlap_on(system: System, seeds: u64) {
    let struck: usize = crate::support::seeds(seeds)
        .map(|seed| run_without_overlap(&crate::support::without_excuses(draw_for(system, seed)), seed))
        .sum();
    let enough = struck as u64 > seeds / 2 || std::env::var("SEED").is_ok();
    assert!(enough, "only {struck} faults struck in {seeds} schedules: too few for a test");
}

fn a_cut_off_holder_stops_in_time_on(system: System, seeds: u64) {
    for seed in crate::support::seeds(seeds) {
        run_without_overlap(&crate::support::cut_off_while_working(draw_for(system, seed)), seed);
    }
}

#[test]
fn holders_do_not_overlap_without_an_excuse() {
    System::of_locks().for_each(|system| holders_do_not_overlap_on(system, share(SEEDS)));
}

#[test]
fn a_cut_off_holder_stops_in_time() {
    System::of_locks().for_each(|system| a_cut_off_holder_stops_in_time_on(system, share(SEEDS)));
}

/// The second fault strikes at a point that the server passes while it starts, so the server dies before it
/// listens. In its next life the server once found the address in use, and served nobody.
#[test]
fn a_lock_server_killed_during_its_start_serves_after_restart() {
    let text = r#"
        about  = "The server is killed by the expiry with which it starts"
        system = "redis"
        ttl    = "500ms"
        within = "3s"

        [redis]
        persistence = "always"

        [[worker]]
        name    = "a"
        release = "none"

        [[worker]]
        name   = "b"
        starts = "1500ms"

        [[fault]]
        when = { process = "a", after = "entered" }
        what = { stop = "redis-1", restart_after = "1s" }

        [[fault]]
        when = { process = "redis-1", after = "expired" }
        what = { crash = "redis-1", restart_after = "100ms" }
    "#;
    let schedule = lab::parse("killed while it starts", text).unwrap();
    let report = run(&schedule, Arm::Fenced, 0).unwrap();
    assert_eq!(report.faults_struck(), 2, "{}", report.trace());
    assert_eq!(report.summary().grants, 2, "{}", report.trace());
}
