//! Every schedule in `seeds/` gives the verdicts that it demands, and all its faults strike.

use crate::support::corpus;

#[test]
fn every_schedule_gives_the_verdicts_that_it_demands() {
    let mut problems = Vec::new();
    for case in corpus() {
        let (name, schedule) = (&case.name, &case.schedule);
        assert!(!schedule.expect.is_empty(), "seeds/{name}.toml demands nothing");
        for (arm, report) in case.runs() {
            let demanded = schedule.expect.of(arm.name()).unwrap();
            for mismatch in demanded.mismatches(report) {
                problems.push(format!(
                    "{name}, {arm}: {mismatch}\n{}\
                     replay it: cargo run --release -- replay seeds/{name}.toml\n",
                    report.trace()
                ));
            }
        }
    }
    assert!(problems.is_empty(), "{} schedules disagree:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn every_fault_of_the_corpus_strikes() {
    // A fault at a point that is never passed does nothing, and no other test notices.
    let mut missed = Vec::new();
    for case in corpus() {
        let struck: Vec<_> = case.runs().map(|(_, report)| report.faults_struck()).collect();
        if struck.iter().any(|struck| *struck != case.schedule.faults.len()) {
            missed.push(format!("{}: {struck:?} of {}", case.name, case.schedule.faults.len()));
        }
    }
    assert!(missed.is_empty(), "faults that never struck: {missed:?}");
}
