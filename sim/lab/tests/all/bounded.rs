//! Locks with a limit of their waiters: one more is refused at once, waiters are served in order, and
//! the locks are acquitted on drawn schedules.

use std::collections::BTreeSet;

use lab::museum::{Museum, Mutant};
use lab::{Arm, Lab, Options, System, Waiting, Worker, run, schedule};
use sim::explore::{Portfolio, explore};
use sim::{Draw, Kind, Report, Schedule, Span, Subject};

use crate::support::share;

/// The systems whose locks can have a limit of their waiters.
const SYSTEMS: [System; 3] = [System::REDIS, System::ETCD, System::ZOOKEEPER];

fn millis(millis: u64) -> Span {
    Span::from_millis(millis)
}

fn worker(name: &str, starts: u64, work: u64) -> Worker {
    Worker { starts: millis(starts), work: millis(work), ..Worker::new(name) }
}

fn with(system: System, waiters_max: u32, workers: Vec<Worker>) -> Schedule<Options> {
    let mut schedule = schedule("A queue", system, Span::from_secs(2), workers);
    schedule.options.waiters_max = Some(waiters_max);
    schedule
}

/// Returns the names of the workers in the order in which they entered.
fn entered(report: &Report) -> Vec<String> {
    let name = |event: &history::Event| match &event.kind {
        Kind::SectionEntered { .. } => Some(event.process.to_string()),
        _ => None,
    };
    report.events.iter().filter_map(name).collect()
}

/// Returns the workers whose acquires failed, with the outcome and the time in milliseconds.
fn failed(report: &Report) -> Vec<(String, String, u64)> {
    let failed = |event: &history::Event| match &event.kind {
        Kind::LeaseNotAcquired { outcome: Some(outcome), .. } => {
            Some((event.process.to_string(), outcome.to_string(), event.at.0 / 1_000_000))
        }
        _ => None,
    };
    report.events.iter().filter_map(failed).collect()
}

#[test]
fn one_more_than_may_wait_is_refused_at_once() {
    for system in SYSTEMS {
        let workers =
            vec![worker("a", 0, 1500), worker("b", 100, 50), worker("c", 200, 50), worker("d", 600, 50)];
        let report = run(&with(system, 2, workers), Arm::Fenced, 1).unwrap();
        assert_eq!(report.kinds(), [].into(), "{system}:\n{}", report.trace());
        assert_eq!(entered(&report), ["a", "b", "c"], "{system}:\n{}", report.trace());
        let failed = failed(&report);
        let [(name, outcome, at)] = failed.as_slice() else { panic!("{system}: {failed:?}") };
        assert_eq!((name.as_str(), outcome.as_str()), ("d", "full"), "{system}");
        assert!((600..900).contains(at), "{system}: at {at} ms\n{}", report.trace());
    }
}

#[test]
fn a_place_is_free_once_a_waiter_has_given_up() {
    for system in SYSTEMS {
        let mut gives_up = worker("b", 100, 50);
        gives_up.deadline = millis(400);
        let workers = vec![worker("a", 0, 1500), gives_up, worker("c", 700, 50)];
        let report = run(&with(system, 1, workers), Arm::Fenced, 1).unwrap();
        assert_eq!(report.kinds(), [].into(), "{system}:\n{}", report.trace());
        assert_eq!(entered(&report), ["a", "c"], "{system}:\n{}", report.trace());
    }
}

#[test]
fn redis_serves_waiters_in_the_order_of_their_requests() {
    for waiting in [Waiting::Called, Waiting::Polled] {
        let workers = ["b", "c", "d", "e"].into_iter().zip(1..);
        let workers = workers.map(|(name, number)| worker(name, 100 * number, 50));
        let workers = [worker("a", 0, 1500)].into_iter().chain(workers).collect();
        let mut schedule = with(System::REDIS, 9, workers);
        schedule.options.redis.waiting = waiting;
        let report = run(&schedule, Arm::Fenced, 1).unwrap();
        assert_eq!(report.kinds(), [].into(), "{}", report.trace());
        assert_eq!(entered(&report), ["a", "b", "c", "d", "e"], "{}", report.trace());
    }
}

#[test]
fn a_release_wakes_the_first_waiter_of_redis_at_once() {
    let workers = vec![worker("a", 0, 1800), worker("b", 100, 50), worker("c", 200, 50)];
    let mut schedule = with(System::REDIS, 9, workers);
    schedule.options.redis.waiting = Waiting::Called;
    let report = run(&schedule, Arm::Fenced, 1).unwrap();
    let at = |name: &str, wanted: fn(&Kind) -> bool| {
        let event = report.events.iter().find(|event| event.process.as_str() == name && wanted(&event.kind));
        event.unwrap_or_else(|| panic!("{name}:\n{}", report.trace())).at.0 / 1_000_000
    };
    for (before, next) in [("a", "b"), ("b", "c")] {
        let released = at(before, |kind| matches!(kind, Kind::LeaseReleased { .. }));
        let entered = at(next, |kind| matches!(kind, Kind::SectionEntered { .. }));
        assert!(entered < released + 60, "{next}: {released} to {entered}\n{}", report.trace());
    }
}

#[test]
fn a_dead_waiter_of_redis_is_told_of_and_holds_others_up_for_a_while() {
    let workers = vec![worker("a", 0, 500), worker("b", 100, 50), worker("c", 200, 50)];
    let mut schedule = with(System::REDIS, 9, workers);
    schedule.options.workers[2].deadline = Span::from_secs(30);
    let crash = "[[fault]]\nwhen = { at = \"300ms\" }\nwhat = { crash = \"b\" }\n";
    let text = schedule.to_toml() + crash;
    let report = run(&lab::parse("x.toml", &text).unwrap(), Arm::Fenced, 1).unwrap();
    assert_eq!(report.kinds(), [].into(), "{}", report.trace());
    assert_eq!(entered(&report), ["a", "c"], "{}", report.trace());
    let gone = report.events.iter().filter_map(|event| match &event.kind {
        Kind::WaiterGone { owner, position, .. } => {
            Some((owner.to_string(), *position, event.at.0 / 1_000_000))
        }
        _ => None,
    });
    let gone: Vec<_> = gone.collect();
    // Its patience is two backoffs of 2 s and two requests of 500 ms.
    let (owner, position, at) = &gone[0];
    assert!(owner.starts_with("b:") && position.is_some(), "{gone:?}");
    assert!((5000..8000).contains(at), "{gone:?}");
}

#[test]
fn a_request_says_how_many_may_wait() {
    let report = run(&with(System::REDIS, 7, vec![worker("a", 0, 50)]), Arm::Fenced, 1).unwrap();
    let bounded =
        report.events.iter().any(|event| matches!(event.kind, Kind::LeaseBounded { waiters_max: 7, .. }));
    assert!(bounded, "{}", report.trace());
}

/// The twins of these mistakes are the library's locks.
#[test]
fn locks_with_a_queue_are_acquitted_on_drawn_schedules() {
    for mutant in [Mutant::CountThenQueue, Mutant::PatientDead] {
        let museum = Museum::new(Arm::Fenced).with(mutant).twin().drawing(System::REDIS);
        let found =
            explore(&[museum], 0..share(200), &Portfolio::default(), 1, |tally| tally.violations == 0)
                .unwrap();
        assert_eq!(found.tally.violations, 0, "{:?}", found.violations);
    }
}

#[test]
fn searches_draw_limits_of_waiters() {
    for system in SYSTEMS {
        let drawn = |seed| Lab::new(Arm::Fenced).drawing(system).schedule(&mut Draw::new(seed)).unwrap();
        let limits: BTreeSet<_> = (0..200).filter_map(|seed| drawn(seed).options.waiters_max).collect();
        assert!(limits.len() > 1, "{system}: {limits:?}");
    }
}

#[test]
fn a_limit_that_no_lock_has_is_refused() {
    let parsed = |system: &str, more: &str, worker: &str| {
        let text = format!(
            "about = \"x\"\nsystem = \"{system}\"\nttl = \"2s\"\n{more}\n[[worker]]\nname = \"a\"\n{worker}\n"
        );
        lab::parse("x.toml", &text).map(|_| ()).map_err(|error| error.to_string())
    };
    let refused = |system: &str, more: &str, worker: &str| parsed(system, more, worker).unwrap_err();
    for system in SYSTEMS {
        parsed(system.name(), "waiters_max = 3", "").unwrap();
        parsed(system.name(), "waiters_max = 3\npermits = 2", "").unwrap();
        assert!(refused(system.name(), "waiters_max = 0", "").contains("1 to 99 places"));
        let readers = "waiters_max = 3\nreaders = true";
        assert!(refused(system.name(), readers, "").contains("no limit of its waiters"));
    }
    parsed("etcd", "waiters_max = 3\npermits = 2", "").unwrap();
    assert!(refused("redlock", "waiters_max = 3\nredis = { nodes = 3 }", "").contains("no queues"));
    assert!(refused("redis", "waiters_max = 3", "mode = \"election\"").contains("only workers that lock"));
    assert!(refused("redis", "waiters_max = 3", "release = \"get-del\"").contains("wakes no waiter"));
}
