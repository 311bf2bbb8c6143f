//! A lock of several permits, judged by its capacity.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use sim::{Capacity, Process, Sim, VerdictKind};

/// Three processes are in their sections at once.
fn overlaps(permits: usize) -> usize {
    let mut sim = Sim::new(7);
    for name in ["a", "b", "c"] {
        sim.process(name, |process: Process| async move {
            let _inside = process.section("pool");
            process.sleep(Duration::from_secs(1)).await;
        });
    }
    let report = sim.capacity("pool", Capacity::Permits(permits)).run().unwrap();
    report.verdicts.iter().filter(|verdict| verdict.kind == VerdictKind::Overlap).count()
}

#[test]
fn only_more_processes_than_permits_overlap() {
    assert_eq!((overlaps(3), overlaps(2)), (0, 1));
    // b beside a, and then c beside both.
    assert_eq!(overlaps(1), 2);
}
