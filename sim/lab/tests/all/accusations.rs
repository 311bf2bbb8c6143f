//! Schedules under which a correct lock was once convicted: for a request on a slow link, for one still in
//! flight, for a key on a replica that had not received the release or on a stopped primary, by a defect
//! of the simulated replica, for a token that a server gave twice after it had lost its counter, or for a
//! retry that came after the next write.

use std::path::Path;

use lab::museum::run;
use lab::{Arm, excused};

#[test]
fn correct_locks_are_acquitted() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/accusations"));
    let schedules = lab::corpus::load(folder).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(schedules.len(), 12);
    for (name, schedule) in schedules {
        let report = run(&schedule, Arm::Fenced, schedule.seed).unwrap();
        let excused = excused(&schedule, Arm::Fenced);
        let accused: Vec<_> =
            report.verdicts.iter().filter(|verdict| !excused.contains(&verdict.kind)).collect();
        assert!(accused.is_empty(), "{name}: {accused:?}");
        assert!(report.findings.is_empty(), "{name}: {:?}", report.findings);
        assert!(report.struck.iter().any(|struck| *struck), "{name}: no fault struck");
    }
}
