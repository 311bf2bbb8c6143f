//! The audit says which event broke a rule and which events led there. The explanation, the page and the
//! terminal name these events and no others, and the faults that matter are among them.

use std::collections::BTreeSet;
use std::path::Path;

use history::{Effect, Kind, Verdict};
use lab::museum::Museum;
use lab::{Arm, Options};
use sim::explore::{Cause, Causes, picture};
use sim::faults::Fault;
use sim::{Report, Schedule};

/// The schedules of `seeds/` and of the museum, with their names.
fn schedules() -> Vec<(String, Schedule<Options>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../seeds");
    let files = [root.clone(), root.join("museum")]
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), lab::museum::load(path).unwrap())).collect()
}

/// Returns the runs with a verdict: the schedule's name, its arm and the report.
fn convicted() -> Vec<(String, Schedule<Options>, Arm, Report)> {
    let mut all = Vec::new();
    for (name, schedule) in schedules() {
        let run = |arm| (arm, sim::sim::run(&Museum::new(arm), &schedule).unwrap());
        let runs: Vec<_> = Arm::of(&schedule.expect).map(run).collect();
        let runs = runs.into_iter().filter(|(_, report)| !report.verdicts.is_empty());
        all.extend(runs.map(|(arm, report)| (name.clone(), schedule.clone(), arm, report)));
    }
    all
}

/// Returns the numbers of the events that an explanation of the verdict names.
fn named(verdict: &Verdict) -> Vec<usize> {
    verdict.because.iter().copied().chain(verdict.event).collect()
}

#[test]
fn the_explanation_the_page_and_the_terminal_name_the_events_of_the_audit() {
    let mut compared = 0;
    for (name, schedule, arm, report) in convicted() {
        let drawn = picture(&Museum::new(arm), &schedule, &report, "run");
        let lanes = picture::terminal(&drawn, false);
        for verdict in &report.verdicts {
            let number = |mark: &usize| drawn.marks[*mark].number;
            let is_same = |violation: &&picture::Violation| {
                let because: Vec<usize> = violation.because.iter().map(number).collect();
                violation.kind == verdict.kind
                    && violation.at == verdict.at
                    && violation.mark.as_ref().map(number) == verdict.event
                    && because == verdict.because
            };
            let found = drawn.violations.iter().find(is_same);
            let violation = found.unwrap_or_else(|| panic!("{name}, {arm:?}: the page lacks {verdict:?}"));
            let told = &violation.sentence[..violation.sentence.rfind("so ").unwrap()];
            let core = schedule.core.as_ref().map(|core| core.at.as_nanos());
            let is_told = |at: &usize| core.is_none_or(|core| report.events[*at].at.0 < core);
            let mut rest = told;
            for at in named(verdict).into_iter().filter(is_told) {
                let time = format!(" at {}", report.events[at].at);
                let place = rest.find(&time);
                let place = place.unwrap_or_else(|| panic!("{name}, {arm:?}: {time} is not in {told}"));
                rest = &rest[place + time.len()..];
            }
            if core.is_none() {
                let clauses = told.matches(" at ").count();
                assert_eq!(clauses, named(verdict).len(), "{name}, {arm:?}: {told}");
            }
            if let Some(event) = verdict.event {
                let time = format!("{:>8} ", report.events[event].at.to_string());
                let said = format!("✖ {}", verdict.kind);
                // An event is followed by its verdicts, each on a line of its own.
                let lines: Vec<&str> = lanes.lines().collect();
                // The rest of a long line, and the verdicts, follow without a time.
                let is_same_event =
                    |line: &&&str| !line.trim_start().starts_with(|c: char| c.is_ascii_digit());
                let is_marked = (0..lines.len()).filter(|at| lines[*at].starts_with(&time)).any(|at| {
                    lines[at + 1..].iter().take_while(is_same_event).any(|line| line.contains(&said))
                });
                assert!(is_marked, "{name}, {arm:?}: {said} at {time}\n{lanes}");
            }
            compared += 1;
        }
    }
    assert!(compared > 150, "{compared} verdicts");
}

/// Returns true if one of the events is that of the fault with this number.
fn has_fault(named: &[usize], report: &Report, number: usize, fault: &Fault) -> bool {
    named.iter().any(|at| {
        let event = &report.events[*at];
        match &event.kind {
            Kind::FaultApplied { fault: of, effect, .. } => {
                // A fault that ends another one has no event of its own.
                let ends = || *effect == Effect::Pause && fault.what.verb() == "resume";
                *of == number as u64 || (ends() && fault.what.processes() == [event.process.as_str()])
            }
            Kind::ProcessCrashed { .. } | Kind::ServerPromoted { .. } => {
                fault.what.processes().contains(&event.process.as_str())
            }
            _ => false,
        }
    })
}

/// The most pairs of a verdict and a fault that is among its events although the run has the verdict without
/// it: most are in schedules whose faults suffice for the verdict without each other.
const UNNEEDED_MAX: usize = 210;

#[test]
fn the_faults_that_matter_are_among_the_events_that_led_there() {
    let (mut named_of_all, mut unneeded, mut unnamed) = (0, 0, BTreeSet::new());
    for (name, schedule, arm, mut report) in convicted() {
        let subject = Museum::new(arm);
        report.findings.clear();
        let verdicts = std::mem::take(&mut report.verdicts);
        for (number, fault) in schedule.faults.iter().enumerate() {
            let mut without = schedule.clone();
            without.faults.remove(number);
            let run = sim::sim::run(&subject, &without);
            if run.is_err() {
                continue;
            }
            let left = all(Causes::of(&subject, &without, &run));
            for verdict in &verdicts {
                report.verdicts = vec![verdict.clone()];
                let own = all(Causes::of_report(&subject, &schedule, &report));
                // Without a fault that matters, the run has this cause no more.
                let matters = own.iter().any(|cause| !left.contains(cause));
                match (matters, has_fault(&named(verdict), &report, number, fault)) {
                    (true, true) => named_of_all += 1,
                    (true, false) => drop(unnamed.insert(name.clone())),
                    (false, true) => unneeded += 1,
                    (false, false) => {}
                }
            }
        }
    }
    assert!(named_of_all > 300, "{named_of_all} are named");
    assert_eq!(unnamed, BTreeSet::new());
    assert!(unneeded <= UNNEEDED_MAX, "{unneeded} faults are named and not needed");
}

fn all(causes: Causes) -> Vec<Cause> {
    [causes.violations, causes.excused].concat()
}
