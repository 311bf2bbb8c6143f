//! Runs in processes of their own.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sim::faults::{Crash, Fault, Pause, Trigger};
use sim::servers::redis::RedisHost;
use sim::{Process, RunError, Sim, Span};

/// A program should not fork while another thread of it begins its first run.
static ONE: Mutex<()> = Mutex::new(());

fn alone<T>(test: impl FnOnce() -> T) -> T {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    test()
}

/// Code with all that a report holds: a server, a pause, sections, probes, points.
fn world(sim: &mut Sim) {
    sim.host("redis", RedisHost::new()).key("orders");
    for name in ["a", "b"] {
        sim.process(name, |process: Process| async move {
            let mut redis = sim::clients::redis(&process, "redis:6379").await.unwrap();
            let section = process.section("orders");
            let count: u64 = redis::cmd("INCR").arg("count").query_async(&mut redis).await.unwrap();
            process.sometimes("the second one", count == 2);
            process.always("one at a time", count < 2);
            process.sleep(Duration::from_millis(100)).await;
            drop(section);
        });
    }
    let pause = Pause { process: "a".to_owned(), lasts: Some(Span::from_secs(1)) };
    sim.fault(Fault::new(Trigger::At(Span::from_millis(20)), pause));
}

#[test]
fn a_report_is_that_of_a_run_in_this_program() {
    let run = |is_apart: bool| {
        let mut sim = Sim::new(11);
        world(sim.record_steps());
        if is_apart {
            sim.in_own_process();
        }
        sim.run().unwrap()
    };
    let (here, apart) = alone(|| (run(false), run(true)));
    assert!(!here.verdicts.is_empty() && !here.findings.is_empty() && !here.steps.is_empty());
    assert!(here.commands > 0 && here.sections.contains("orders") && here.struck == [true]);
    assert_eq!(format!("{here:?}"), format!("{apart:?}"));
    assert_eq!(here.trace(), apart.trace());
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

fn numbered(sim: &mut Sim) {
    sim.process("a", |process: Process| async move {
        process.point(&format!("number {}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    });
}

#[test]
fn a_static_is_named_as_the_cause_of_a_difference() {
    let folder = std::env::temp_dir().join(format!("sim-own-process-{}", std::process::id()));
    let find = |world: fn(&mut Sim)| {
        let search = sim::check("numbers", world).schedules(2).check_determinism().keep_in(&folder);
        alone(|| search.find()).unwrap()
    };
    let failure = find(numbered).unwrap();
    assert!(failure.problems[0].contains("code in it changes a static"), "{:?}", failure.problems);
    std::fs::remove_dir_all(&folder).unwrap();
    let apart = |sim: &mut Sim| {
        numbered(sim);
        sim.in_own_process();
    };
    assert!(find(apart).is_none());
}

/// The time of the real world, which each run finds changed.
fn by_the_clock(sim: &mut Sim) {
    sim.process("a", |process: Process| async move {
        let pid = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        process.point(&pid.replace(|letter: char| !letter.is_ascii_digit(), ""));
    });
}

#[test]
fn another_cause_of_a_difference_is_not_called_a_static() {
    let folder = std::env::temp_dir().join(format!("sim-own-process-clock-{}", std::process::id()));
    let search = sim::check("clock", by_the_clock).schedules(2).check_determinism().keep_in(&folder);
    let failure = alone(|| search.find()).unwrap().unwrap();
    assert!(failure.problems[0].contains("reads a clock, a random source"), "{:?}", failure.problems);
    std::fs::remove_dir_all(&folder).unwrap();
}

fn error(main: fn()) -> RunError {
    let mut sim = Sim::new(7);
    sim.process("a", move |_: Process| async move { main() });
    alone(|| sim.in_own_process().real_limit(Duration::from_secs(2)).run()).unwrap_err()
}

#[test]
fn an_error_comes_out_of_the_process() {
    let panicked = error(|| {
        sim::point("started");
        panic!("not today")
    });
    assert!(
        matches!(&panicked, RunError::Panicked { message, location, trace, .. }
            if message == "not today" && location.contains("own_process.rs") && trace.contains("started")),
        "{panicked}"
    );
    let escaped = error(|| drop(std::net::TcpStream::connect("127.0.0.1:1")));
    assert!(matches!(&escaped, RunError::Escaped { call: "socket", .. }), "{escaped}");
    let hung = error(|| {
        loop {
            std::hint::spin_loop();
        }
    });
    assert!(matches!(&hung, RunError::Hung { .. }), "{hung}");
}

/// Such code would end the whole program otherwise.
#[test]
fn code_that_ends_its_program_ends_its_run() {
    let aborted = error(|| std::process::abort());
    assert!(aborted.to_string().contains("ended by signal 6"), "{aborted}");
    let exited = error(|| std::process::exit(3));
    assert!(exited.to_string().contains("ended with exit code 3"), "{exited}");
}

/// Libraries make the name of an owner from the number of their process.
#[test]
#[cfg(target_os = "linux")]
fn a_process_has_the_same_number_in_each_run() {
    let run = || {
        let mut sim = Sim::new(7);
        for name in ["a", "b"] {
            sim.process(name, |process: Process| async move {
                process.point(&format!("number {}", std::process::id()));
                process.sleep(Duration::from_secs(3)).await;
            });
        }
        let crash = Crash { restart_after: Some(Span::from_secs(1)), ..Crash::of("a") };
        sim.fault(Fault::new(Trigger::At(Span::from_secs(1)), crash));
        sim
    };
    let here = run().run().unwrap();
    let numbers: std::collections::BTreeSet<&str> =
        here.events.iter().filter_map(|event| sim_point(&event.kind)).collect();
    assert_eq!(numbers.len(), 3, "a, b, and a after its restart: {numbers:?}");
    assert_eq!(alone(|| run().in_own_process().run()).unwrap().hash, here.hash);
}

#[cfg(target_os = "linux")]
fn sim_point(kind: &sim::Kind) -> Option<&str> {
    match kind {
        sim::Kind::PointPassed { step } => Some(step.as_str()),
        _ => None,
    }
}
