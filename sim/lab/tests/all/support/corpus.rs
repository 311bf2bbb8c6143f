//! The schedules in `seeds/`. Each is run once in the life of this program, however many tests read the run.

use std::path::Path;
use std::sync::{LazyLock, OnceLock};

use lab::museum::run;
use lab::{Arm, Options};
use sim::{Report, Schedule};

/// A schedule of `seeds/`, and its runs, each made on first use.
pub struct Case {
    pub name: String,
    pub schedule: Schedule<Options>,
    runs: [OnceLock<Report>; Arm::ALL.len()],
}

impl Case {
    /// Returns the run of `arm` with the schedule's own seed.
    pub fn run(&self, arm: Arm) -> &Report {
        let run = || run(&self.schedule, arm, self.schedule.seed).unwrap();
        self.runs[arm as usize].get_or_init(run)
    }

    /// Returns the runs of the arms for which the schedule has expectations.
    pub fn runs(&self) -> impl Iterator<Item = (Arm, &Report)> {
        Arm::of(&self.schedule.expect).map(|arm| (arm, self.run(arm)))
    }
}

/// Returns the schedules in `seeds/`, in the order of their names.
pub fn corpus() -> &'static [Case] {
    static CORPUS: LazyLock<Vec<Case>> = LazyLock::new(load);
    &CORPUS
}

/// Returns the schedule `seeds/{name}.toml`.
pub fn case(name: &str) -> &'static Case {
    corpus().iter().find(|case| case.name == name).unwrap_or_else(|| panic!("no seeds/{name}.toml"))
}

fn load() -> Vec<Case> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../seeds"));
    let schedules = lab::corpus::load(folder).unwrap_or_else(|error| panic!("{error}"));
    let case = |(name, schedule)| Case { name, schedule, runs: Default::default() };
    schedules.into_iter().map(case).collect()
}
