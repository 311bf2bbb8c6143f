//! Mutual exclusion where nothing excuses its loss: drawn schedules in which all holders renew, and no
//! process pauses, no clock is bent and no lock server forgets. The explorer must allow an overlap, since a
//! pause explains one; here none does.

use resource::audit::VerdictKind as Verdict;
use sim::Schedule;
use sim::explore::violation;
use sim::lab::{Arm, Lab, Options, System, draw_for, run};

/// Runs the correct lock on the schedule; how many faults struck.
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

fn no_two_holders_work_at_once_on(system: System, seeds: u64) {
    let struck: usize = crate::support::seeds(seeds)
        .map(|seed| run_without_overlap(&crate::support::without_excuses(draw_for(system, seed)), seed))
        .sum();
    let enough = struck as u64 > seeds / 2 || std::env::var("SEED").is_ok();
    assert!(enough, "only {struck} faults struck in {seeds} schedules: this showed little");
}

fn a_holder_that_is_cut_off_stops_on(system: System, seeds: u64) {
    for seed in crate::support::seeds(seeds) {
        run_without_overlap(&crate::support::cut_off_while_working(draw_for(system, seed)), seed);
    }
}

#[test]
fn no_two_holders_of_redis_work_at_once_where_no_fault_excuses_it() {
    no_two_holders_work_at_once_on(System::Redis, 400);
}

#[test]
fn no_two_holders_of_redlock_work_at_once_where_no_fault_excuses_it() {
    no_two_holders_work_at_once_on(System::Redlock, 150);
}

#[test]
fn no_two_holders_of_etcd_work_at_once_where_no_fault_excuses_it() {
    no_two_holders_work_at_once_on(System::Etcd, 150);
}

#[test]
fn no_two_holders_of_zookeeper_work_at_once_where_no_fault_excuses_it() {
    no_two_holders_work_at_once_on(System::ZooKeeper, 150);
}

#[test]
fn a_holder_of_redis_that_is_cut_off_stops_before_the_next_one_begins() {
    a_holder_that_is_cut_off_stops_on(System::Redis, 400);
}

#[test]
fn a_holder_of_redlock_that_is_cut_off_stops_before_the_next_one_begins() {
    a_holder_that_is_cut_off_stops_on(System::Redlock, 150);
}

#[test]
fn a_holder_of_etcd_that_is_cut_off_stops_before_the_next_one_begins() {
    a_holder_that_is_cut_off_stops_on(System::Etcd, 150);
}

#[test]
fn a_holder_of_zookeeper_that_is_cut_off_stops_before_the_next_one_begins() {
    a_holder_that_is_cut_off_stops_on(System::ZooKeeper, 150);
}

/// The fault waits for what a server does as it starts: it dies before it listens. Its next life once found
/// the address taken, and nobody served.
#[test]
fn a_lock_server_that_is_killed_while_it_starts_serves_in_its_next_life() {
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
    let schedule = Schedule::parse("killed while it starts", text).unwrap();
    let report = run(&schedule, Arm::Fenced, 0).unwrap();
    assert_eq!(report.faults_struck(), 2, "{}", report.trace());
    assert_eq!(report.summary().grants, 2, "{}", report.trace());
}
