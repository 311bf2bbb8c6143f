//! The schedules that a search found and shrunk, in `seeds/museum/`: each still shows its mistake, and
//! acquits its twin and the correct lock, worker and resource.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lab::Arm;
use lab::museum::{Museum, Mutant, load};
use sim::explore::violation;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../seeds/museum");

/// The schedule files, in alphabetical order.
fn files() -> Vec<PathBuf> {
    let files = std::fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().path());
    let is_schedule = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "toml");
    let mut files: Vec<PathBuf> = files.filter(is_schedule).collect();
    files.sort();
    files
}

/// Describes what is wrong with a file.
fn problem(path: &Path) -> Option<String> {
    let schedule = load(path).unwrap();
    let named = schedule.options.mutant.as_deref();
    let Some(mutant) = named.and_then(Mutant::named) else { return Some("names no mutant".to_owned()) };
    let expected = format!("{mutant}-{}", schedule.options.system);
    if path.file_stem().is_none_or(|stem| stem != expected.as_str()) {
        return Some(format!("should be called {expected}.toml"));
    }
    if schedule.faults.len() > 3 {
        return Some(format!("has {} faults, which is no shrunk schedule", schedule.faults.len()));
    }
    let museum = Museum::new(Arm::Fenced);
    let wrong = sim::sim::run(&museum, &schedule).unwrap();
    let convicted = violation(&museum, &schedule, &wrong);
    if !convicted.as_ref().is_some_and(|violation| mutant.is_convicted_by(violation)) {
        let found = convicted.map(|violation| (violation.broken, violation.findings));
        return Some(format!("does not convict {mutant} of its own mistake: {found:?}"));
    }
    let demanded = schedule.expect.of(Arm::Fenced.name())?;
    let mismatches = demanded.mismatches(&wrong);
    if !mismatches.is_empty() {
        return Some(format!("does not give what it demands: {mismatches:?}"));
    }
    let twin = museum.clone().twin();
    let twin_run = sim::sim::run(&twin, &schedule).unwrap();
    if let Some(accused) = violation(&twin, &schedule, &twin_run) {
        return Some(format!("accuses the twin: {:?} {:?}", accused.broken, accused.findings));
    }
    let mut correct = schedule.clone();
    correct.options.mutant = None;
    let correct_run = sim::sim::run(&museum, &correct).unwrap();
    let accused = violation(&museum, &correct, &correct_run)?;
    Some(format!("accuses the correct one: {:?} {:?}", accused.broken, accused.findings))
}

#[test]
fn every_kept_schedule_convicts_its_mistake_and_acquits_the_correct() {
    let problems: Vec<String> = files()
        .iter()
        .filter_map(|path| problem(path).map(|problem| format!("{}: {problem}", path.display())))
        .collect();
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn every_mistake_has_a_kept_schedule_on_each_of_its_systems() {
    let kept: BTreeSet<String> =
        files().iter().map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    let meant: BTreeSet<String> = Mutant::ALL
        .iter()
        .flat_map(|mutant| mutant.systems().into_iter().map(move |system| format!("{mutant}-{system}")))
        .collect();
    assert_eq!(kept, meant);
}
