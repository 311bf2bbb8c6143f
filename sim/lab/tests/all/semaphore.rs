//! Semaphores: as many workers hold permits at once as there are, a queue serves them in order, and their
//! locks are acquitted on drawn schedules.

use std::collections::BTreeSet;

use history::Name;
use lab::museum::{Museum, Mutant};
use lab::{Arm, Options, ReleaseMode, System, Waiting, Worker, draw_for, run, schedule};
use sim::explore::{Portfolio, explore};
use sim::{Kind, Report, Schedule, Span};

use crate::support::drawn::unbroken;
use crate::support::share;

/// The systems whose locks can be semaphores.
const SYSTEMS: [System; 3] = [System::REDIS, System::ETCD, System::ZOOKEEPER];

/// Workers that start one after the other and contend for two permits.
fn contended(system: System, workers: u64) -> Schedule<Options> {
    let worker = |number: u64| Worker {
        starts: Span::from_millis(20 * number),
        work: Span::from_millis(300),
        ..Worker::new(&format!("w{number}"))
    };
    let mut schedule =
        schedule("A semaphore", system, Span::from_secs(2), (1..=workers).map(worker).collect());
    schedule.options.permits = Some(2);
    schedule
}

/// Returns the largest number of workers that were in their critical sections at once.
fn most_inside(report: &Report) -> usize {
    let mut inside = BTreeSet::new();
    let mut most = 0;
    for event in &report.events {
        match &event.kind {
            Kind::SectionEntered { .. } => _ = inside.insert(&event.process),
            Kind::SectionLeft { .. } => _ = inside.remove(&event.process),
            _ => {}
        }
        most = most.max(inside.len());
    }
    most
}

/// Returns the tokens in the order of the grants, with their processes.
fn grants(report: &Report) -> Vec<(&Name, u64)> {
    let grant = |event: &'_ history::Event| match event.kind {
        Kind::LeaseAcquired { token, .. } => Some(token),
        _ => None,
    };
    report.events.iter().filter_map(|event| Some((&event.process, grant(event)?))).collect()
}

#[test]
fn two_permits_are_held_at_once() {
    for system in SYSTEMS {
        let report = run(&contended(system, 5), Arm::Unfenced, 1).unwrap();
        assert_eq!(report.kinds(), [].into(), "{system}:\n{}", report.trace());
        assert_eq!(most_inside(&report), 2, "{system}:\n{}", report.trace());
        let grants = grants(&report);
        let tokens: BTreeSet<u64> = grants.iter().map(|(_, token)| *token).collect();
        assert_eq!((grants.len(), tokens.len()), (5, 5), "{system}: {grants:?}");
    }
}

#[test]
fn a_queue_serves_permits_in_the_order_of_the_requests() {
    for system in SYSTEMS {
        let mut schedule = contended(system, 6);
        // Without a limit of its waiters Redis has no queue.
        schedule.options.waiters_max = (system == System::REDIS).then_some(9);
        let report = run(&schedule, Arm::Unfenced, 1).unwrap();
        assert_eq!(report.kinds(), [].into(), "{system}:\n{}", report.trace());
        let order: Vec<String> = grants(&report).iter().map(|(process, _)| process.to_string()).collect();
        assert_eq!(order, ["w1", "w2", "w3", "w4", "w5", "w6"], "{system}:\n{}", report.trace());
    }
}

#[test]
fn the_servers_tell_of_each_permit() {
    let report = run(&contended(System::REDIS, 3), Arm::Unfenced, 1).unwrap();
    let count = |wanted: fn(&Kind) -> bool| report.events.iter().filter(|event| wanted(&event.kind)).count();
    assert_eq!(count(|kind| matches!(kind, Kind::KeyGranted { token: Some(_), .. })), 3);
    assert_eq!(count(|kind| matches!(kind, Kind::KeyDeleted { .. })), 3);
    assert_eq!(count(|kind| matches!(kind, Kind::LeasePermits { permits: 2, .. })), 3);
}

#[test]
fn a_permit_that_nobody_releases_expires_at_its_server() {
    let mut schedule = contended(System::REDIS, 1);
    schedule.options.workers[0].release = ReleaseMode::None;
    let report = run(&schedule, Arm::Unfenced, 1).unwrap();
    let is_expired = |event: &history::Event| matches!(event.kind, Kind::KeyExpired { owner: Some(_), .. });
    let at = report.events.iter().find(|event| is_expired(event)).map(|event| event.at.0 / 1_000_000);
    let at = at.unwrap_or_else(|| panic!("it expires:\n{}", report.trace()));
    assert!((2000..2400).contains(&at), "at {at} ms:\n{}", report.trace());
}

/// The first's permit has ended, and the second's is still live: the third need not ask twice.
#[test]
fn a_permit_that_has_expired_is_free_at_once() {
    let mut schedule = contended(System::REDIS, 3);
    let [first, second, third] = &mut schedule.options.workers[..] else { panic!("three workers") };
    first.release = ReleaseMode::None;
    (second.work, second.renew) = (Span::from_secs(4), true);
    third.starts = Span::from_secs(3);
    let report = run(&schedule, Arm::Unfenced, 1).unwrap();
    let granted = |event: &&history::Event| {
        event.process.as_str() == "w3" && matches!(event.kind, Kind::LeaseAcquired { .. })
    };
    let at = report.events.iter().find(granted).map(|event| event.at.0 / 1_000_000);
    assert!(at.is_some_and(|at| (3000..3020).contains(&at)), "{at:?}:\n{}", report.trace());
}

/// The permit of the first is left to its TTL, longer after the last renewal than the second needs: a run
/// that ended with the release of the second would accuse the lock of the first as `stuck`.
#[test]
fn a_run_lasts_until_every_permit_is_free() {
    for system in SYSTEMS {
        let mut schedule = contended(system, 2);
        let [first, second] = &mut schedule.options.workers[..] else { panic!("two workers") };
        (first.work, first.renew, first.release) = (Span::from_millis(4300), true, ReleaseMode::None);
        second.work = Span::from_millis(4500);
        second.renew = true;
        let report = run(&schedule, Arm::Fenced, 1).unwrap();
        assert_eq!(report.kinds(), [].into(), "{system}:\n{}", report.trace());
        let ends =
            |event: &&history::Event| matches!(event.kind, Kind::KeyDeleted { .. } | Kind::KeyExpired { .. });
        assert_eq!(report.events.iter().filter(ends).count(), 2, "{system}:\n{}", report.trace());
    }
}

/// The twins of these mistakes are the library's semaphores.
#[test]
fn semaphores_are_acquitted_on_drawn_schedules() {
    let both = [(Mutant::ClientClock, &SYSTEMS[..1]), (Mutant::OnePermitMore, &SYSTEMS[1..])];
    for (mutant, systems) in both {
        for system in systems {
            let museum = Museum::new(Arm::Fenced).with(mutant).twin().drawing(*system);
            let found =
                explore(&[museum], 0..share(200), &Portfolio::default(), 1, |tally| tally.violations == 0)
                    .unwrap();
            assert_eq!(found.tally.violations, 0, "{system}: {:?}", found.violations);
        }
    }
}

/// A queue of Redis for permits, which searches draw seldom.
#[test]
fn permits_in_turn_break_nothing_under_faults() {
    let mut granted = 0;
    for seed in 0..200 {
        let mut schedule = draw_for(System::REDIS, seed);
        let Options { permits, waiters_max, redis, .. } = &mut schedule.options;
        (*permits, *waiters_max) = (Some(2), Some(1 + u32::from(seed % 2 == 0)));
        redis.waiting = if seed % 3 == 0 { Waiting::Polled } else { Waiting::Called };
        if lab::validate(&schedule).is_ok() {
            granted += grants(&unbroken(&schedule, seed)).len();
        }
    }
    assert!(granted > 400, "{granted} grants");
}

#[test]
fn a_number_of_permits_that_no_lock_has_is_refused() {
    let parsed = |system: &str, permits: u32, more: &str| {
        let text = format!(
            "about = \"x\"\nsystem = \"{system}\"\nttl = \"2s\"\npermits = {permits}\n{more}\n[[worker]]\nname = \"a\"\n"
        );
        lab::parse("x.toml", &text).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(parsed("redis", 3, ""), Ok(()));
    assert_eq!(parsed("zookeeper", 9, ""), Ok(()));
    for (system, permits, more, why) in [
        ("redis", 1, "", "a semaphore has 2 to 9 permits"),
        ("etcd", 10, "", "a semaphore has 2 to 9 permits"),
        ("redlock", 2, "redis = { nodes = 3 }", "`redlock` has no semaphores"),
        ("etcd", 2, "etcd = { recipe = \"service\" }", "recipe = \"service\" has no semaphores"),
    ] {
        let error = parsed(system, permits, more).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}
