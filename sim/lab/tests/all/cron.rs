//! A cron on several workers: each tick is committed once, whatever their clocks and the faults do.

use lab::museum::{Museum, Mutant};
use lab::{Arm, Cron, MissedMode, Options, ReadMode, ReleaseMode, System, TickStore, Worker, WorkerMode};
use lab::{draw_for, run, schedule};
use sim::faults::{Crash, Fault, Trigger};
use sim::{Draw, Kind, Report, Schedule, Span, Strategy, Subject, VerdictKind};

use crate::support::case;
use crate::support::drawn::{convicted, unbroken};

/// The number of drawn schedules on each system.
const SCHEDULES: u64 = 20;

/// The wall clocks at the start of a run, in milliseconds of Unix time.
const EPOCH_MS: u64 = 1_767_225_600_000;

/// Makes the workers of a drawn schedule fire.
fn firing(mut schedule: Schedule<Options>, seed: u64) -> Schedule<Options> {
    let policies = [MissedMode::Skip, MissedMode::Latest, MissedMode::All];
    schedule.options.cron = Cron { missed: policies[(seed % 3) as usize], ..Cron::default() };
    for worker in &mut schedule.options.workers {
        worker.mode = WorkerMode::new("cron");
        (worker.read, worker.release, worker.writes) = (ReadMode::None, ReleaseMode::Script, 1);
    }
    schedule.limit = schedule.limit.times(2);
    schedule
}

/// Puts the record of ticks into PostgreSQL, which loses power once in every other schedule.
fn in_postgres(mut schedule: Schedule<Options>, seed: u64) -> Schedule<Options> {
    schedule.options.cron.record = TickStore::Postgres;
    if seed.is_multiple_of(2) {
        let (process, restart_after) = ("postgres".to_owned(), Some(Span::from_millis(300)));
        let crash = Crash { process, power_loss: true, restart_after };
        schedule.faults.push(Fault::new(Trigger::after("postgres", "accepted"), crash));
    }
    schedule
}

/// Returns the ticks whose commits were acknowledged, with their runners: the tick at 3 s is `a 3000`.
fn done(report: &Report) -> Vec<String> {
    let of = |event: &history::Event| match &event.kind {
        Kind::TaskEnded { task, outcome: Some(outcome), .. } if outcome.as_str() == "done" => {
            Some(format!("{} {}", event.process, task - EPOCH_MS))
        }
        _ => None,
    };
    report.events.iter().filter_map(of).collect()
}

fn replay(name: &str) -> &'static Report {
    case(name).run(Arm::Fenced)
}

#[test]
fn workers_that_fire_break_nothing_under_faults() {
    for system in System::of_locks() {
        let mut ticks = 0;
        for seed in 0..SCHEDULES {
            let schedule = firing(draw_for(system, seed), seed);
            let report = unbroken(&schedule, seed);
            ticks += done(&report).len() as u64;
        }
        assert!(ticks > SCHEDULES, "{system}: {ticks} ticks");
    }
}

#[test]
fn ticks_in_postgresql_break_nothing_under_faults() {
    for system in System::of_locks() {
        let mut ticks = 0;
        for seed in 0..SCHEDULES / 2 {
            let schedule = in_postgres(firing(draw_for(system, seed), seed), seed);
            let report = unbroken(&schedule, seed);
            ticks += done(&report).len();
        }
        assert!(ticks > 0, "{system}: no tick");
    }
}

#[test]
fn a_lock_alone_runs_ticks_twice_on_every_system() {
    lock_alone_runs_ticks_twice(SCHEDULES, |schedule, _| schedule);
}

#[test]
fn a_lock_alone_runs_ticks_of_postgresql_twice() {
    lock_alone_runs_ticks_twice(SCHEDULES / 2, in_postgres);
}

fn lock_alone_runs_ticks_twice(schedules: u64, store: impl Fn(Schedule<Options>, u64) -> Schedule<Options>) {
    for system in System::of_locks() {
        let drawn = |seed| store(firing(draw_for(system, seed), seed), seed);
        convicted(Mutant::LockOnlyCron, VerdictKind::RanTwice, (0..schedules).map(drawn));
    }
}

#[test]
fn a_tick_of_postgresql_that_is_recorded_at_its_start_is_lost_with_its_runner() {
    let schedules =
        ["", "-pause", "-crash"].map(|name| case(&format!("cron-postgres{name}")).schedule.clone());
    convicted(Mutant::StartIsRecord, VerdictKind::TaskLost, schedules);
}

/// The two stores don't see each other's tokens: no key is to be written in both.
#[test]
fn a_search_draws_a_record_in_postgresql_where_all_workers_fire() {
    let museum = Museum::new(Arm::Fenced).drawing(System::REDIS);
    let mut drawn = std::collections::BTreeMap::<_, u32>::new();
    for seed in 0..2_000 {
        let options = museum.schedule(&mut Draw::new(seed).by(Strategy::Uniform)).unwrap().options;
        let fire = options.workers.iter().filter(|worker| worker.fires()).count();
        let is_mixed = fire < options.workers.len();
        if fire > 0 {
            *drawn.entry((options.cron.record == TickStore::Postgres, is_mixed)).or_default() += 1;
        }
    }
    let has = |in_postgres, is_mixed| drawn.contains_key(&(in_postgres, is_mixed));
    let of_both = [has(false, false), has(true, false), has(false, true), has(true, true)];
    assert_eq!(of_both, [true, true, true, false], "(in PostgreSQL, mixed): {drawn:?}");
}

#[test]
fn missed_ticks_follow_the_policy() {
    let first = "a 1000".to_owned();
    let expected = [
        ("cron-missed-skip", &["a 7000"][..]),
        ("cron-missed-latest", &["a 6000", "a 7000"]),
        ("cron-missed-all", &["a 5000", "a 6000", "a 7000"]),
    ];
    for (name, later) in expected {
        let report = replay(name);
        let ticks = done(report);
        assert_eq!(ticks.first(), Some(&first), "{name}:\n{}", report.trace());
        assert_eq!(ticks[1..], *later, "{name}:\n{}", report.trace());
    }
}

#[test]
fn a_clock_ahead_runs_ticks_early_and_once() {
    let report = replay("cron-clock-jump");
    let ticks = done(report);
    let mut numbers: Vec<&str> = ticks.iter().filter_map(|tick| tick.split(' ').nth(1)).collect();
    let all = numbers.clone();
    numbers.dedup();
    assert_eq!(all, numbers, "{ticks:?}:\n{}", report.trace());
    assert!(ticks.iter().any(|tick| tick.starts_with("a ")), "{ticks:?}");
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let cron = |worker: Worker| Worker { mode: WorkerMode::new("cron"), ..worker };
    let with = |worker: Worker, cron: Cron| {
        let mut schedule = schedule("cron", System::REDIS, Span::from_secs(2), vec![worker]);
        schedule.options.cron = cron;
        run(&schedule, Arm::Fenced, 1).unwrap_err().to_string()
    };
    let plain = Cron::default();
    let every = |every| Cron { every, ..plain };
    let a = Worker::new("a");
    let cases = [
        (cron(Worker { read: ReadMode::Fenced, ..a.clone() }), plain, "`read` does not apply"),
        (cron(Worker { writes: 2, ..a.clone() }), plain, "`writes` does not apply"),
        (cron(Worker { release: ReleaseMode::None, ..a.clone() }), plain, "`release` does not apply"),
        (cron(a.clone()), every(Span::from_millis(1)), "`every` = 1ms: it must be"),
        (cron(a.clone()), every(Span::from_nanos(100_500_000)), "whole number of milliseconds"),
        (cron(a.clone()), Cron { limit: Some(2), ..plain }, "`limit` needs `missed = \"all\"`"),
        (
            cron(a.clone()),
            Cron { late_max: Some(Span::from_secs(60)), ..plain },
            "one firing may run 62 ticks: make it 20 at most",
        ),
        (a, every(Span::from_secs(2)), "`cron` needs a worker with `mode = \"cron\"`"),
    ];
    for (worker, cron, problem) in cases {
        let error = with(worker, cron);
        assert!(error.contains(problem), "{problem}: {error}");
    }
}
