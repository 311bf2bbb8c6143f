//! Snapshots of some traces as text, for people to read and diff. `hashes.rs` checks the hashes of all runs.

use std::collections::BTreeSet;
use std::path::Path;

use lab::Options;
use sim::Schedule;

use crate::support::{case, corpus};

/// The schedules whose traces are kept: short ones that together have every system and every kind of fault.
const READ: [&str; 23] = [
    // One Redis: pauses, a crash, a clean stop, a lost reply, a delay, a failover, dropped acquires.
    "gc-pause",
    "token-order",
    "sigkill-holder",
    "clean-restart",
    "ambiguous-acquire",
    "read-then-late-write-fenced-read",
    "failover-lost-lock",
    "get-then-del",
    "renew-narrows-half",
    "lost-call",
    "repeated-acquire",
    "cancelled-acquire",
    // A key that an operator takes away.
    "exercise-1-stale-renewal",
    // Work that is dropped in the middle.
    "exercise-3-shutdown",
    // Updates without a lock.
    "cas-low-contention",
    // A job queue in PostgreSQL.
    "jobs-postgres-pause",
    // Five Redis: partitions, and clocks that step, run fast or are slewed.
    "gc-pause-redlock",
    "redlock-clock-jump",
    "redlock-clock-rate",
    "clock-step-or-slew-slew",
    // etcd, and a leader that moves.
    "etcd-gc-pause",
    "etcd-leader-moves",
    // ZooKeeper.
    "gc-pause-zookeeper",
];

/// Returns the names of the snapshots and their texts; a schedule whose arms gave the same trace has one.
fn snapshots() -> Vec<(String, String)> {
    let mut snapshots = Vec::new();
    for name in READ {
        let runs: Vec<_> = case(name).runs().map(|(arm, report)| (arm, report.trace())).collect();
        match &runs[..] {
            [(_, one), (_, other)] if one == other => snapshots.push((name.to_owned(), one.clone())),
            runs => {
                snapshots.extend(runs.iter().map(|(arm, trace)| (format!("{name}-{arm}"), trace.clone())))
            }
        }
    }
    snapshots
}

#[test]
fn the_traces_match_their_snapshots() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, trace) in snapshots() {
            insta::assert_snapshot!(name, trace);
        }
    });
}

#[test]
fn no_snapshot_is_left_over() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/corpus/snapshots"));
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let kept = files.filter(|file| file.extension().is_some_and(|extension| extension == "snap"));
    let kept: BTreeSet<String> =
        kept.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    let wanted: BTreeSet<String> = snapshots().into_iter().map(|(name, _)| name).collect();
    let left_over: Vec<_> = kept.difference(&wanted).collect();
    assert!(left_over.is_empty(), "remove from {}: {left_over:?}", folder.display());
}

#[test]
fn the_snapshots_show_every_system_and_every_kind_of_fault() {
    let shown: BTreeSet<_> = READ.iter().flat_map(|name| kinds(&case(name).schedule)).collect();
    let missing: BTreeSet<_> =
        corpus().iter().flat_map(|case| kinds(&case.schedule)).filter(|kind| !shown.contains(kind)).collect();
    assert!(missing.is_empty(), "no schedule of READ has {missing:?}");
}

/// Returns the system of the schedule and the kinds of its faults, by their names in Rust.
fn kinds(schedule: &Schedule<Options>) -> Vec<String> {
    let fault = |text: String| text.split_whitespace().next().unwrap_or_default().to_owned();
    let faults = schedule.faults.iter().map(|one| fault(format!("{:?}", one.what)));
    faults.chain([format!("{:?}", schedule.options.system)]).collect()
}
