//! The determinism guard finds a leak: a value that does not depend on the seed gets into a run, and the
//! guard names the first event that differs.
//!
//! The leak is a metrics recorder: the resource calls it within the run, and it emits an event with a number
//! from a counter of the whole process. The recorder is global, so this is a program of its own, with one
//! test.
#![allow(unreachable_pub, reason = "in a program `pub` only says that other modules use it")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

/// Parts of the program `all`.
mod all {
    pub mod support {
        pub mod guard;
        pub mod replay;
    }
}

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use all::support::guard::{assert_same, trace};
use all::support::replay::replay_line;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

static LEAKS: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);

/// A recorder that emits the number of all writes in the process as an event of the run that writes.
struct Leak;

impl Recorder for Leak {
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let number = if LEAKS.load(Ordering::Relaxed) { CALLS.fetch_add(1, Ordering::Relaxed) } else { 0 };
        if key.name() == "resource_writes_total" {
            tracing::info!(target: "worker", event = "worker_step", step = %format_args!("leaked {number}"));
        }
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }

    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
}

#[test]
fn a_number_from_outside_the_run_is_found() {
    metrics::set_global_recorder(Leak).unwrap();
    let seed = 1;
    let [one, other] = [trace(seed), trace(seed)];
    assert!(one.contains("leaked 0"), "the recorder's events are in the trace");
    assert_same(seed, &one, &other);

    LEAKS.store(true, Ordering::Relaxed);
    let [one, other] = [trace(seed), trace(seed)];
    let panic = catch_unwind(|| assert_same(seed, &one, &other)).expect_err("the guard fails");
    let said = panic.downcast_ref::<String>().unwrap();
    let number = one.lines().position(|line| line.contains("leaked")).unwrap();
    let first = |trace: &str| trace.lines().nth(number).unwrap().to_owned();
    assert_ne!(first(&one), first(&other));
    let expected = format!(
        "seed {seed} gave two traces; the first difference is event {number}:\n{}\n{}\n{}",
        first(&one),
        first(&other),
        replay_line("all determinism", seed)
    );
    assert_eq!(*said, expected);
    let shorter = one.lines().take(number).collect::<Vec<_>>().join("\n");
    let panic = catch_unwind(|| assert_same(seed, &shorter, &one)).expect_err("a shorter trace differs");
    assert!(panic.downcast_ref::<String>().unwrap().contains(&format!("event {number}:\n(over)\n")));
}
