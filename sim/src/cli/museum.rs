//! `museum`: how many random schedules it takes until each mistake is found, and whether a correct lock is
//! accused in as many.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use sim::explore::{Portfolio, RUNS_MAX, explore, hunts, shrink};
use sim::lab::{Arm, System};
use sim::museum::{Museum, Mutant};

use super::explore::cores;
use super::stopwatch::Stopwatch;
use super::{Outcome, print, wrap};

/// How the museum is searched.
pub(crate) struct Plan {
    /// This mistake only, if it is given.
    pub(crate) mutant: Option<Mutant>,
    /// The number of hunts for each mistake on each system, with different seeds.
    pub(crate) hunts: u64,
    /// The most schedules of one hunt.
    pub(crate) cap: u64,
    /// The strategies of all hunts.
    pub(crate) portfolio: Portfolio,
    /// The number of threads; `None` for one each core.
    pub(crate) threads: Option<usize>,
    /// The folder for the shrunk schedules.
    pub(crate) out: PathBuf,
}

/// The hunts for one mistake on one system. Prints as a line.
struct Row {
    mutant: Mutant,
    system: System,
    hunts: u64,
    found: u64,
    /// The median number of schedules; a hunt that found nothing counts as the cap.
    median: u64,
    seconds: f64,
    /// The number of faults in the shrunk schedule of the first hunt that found the mistake.
    faults: Option<usize>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mutant, system, hunts, found, median, seconds, faults } = self;
        let (name, system, found) = (mutant.name(), system.to_string(), format!("{found}/{hunts}"));
        let faults = faults.map_or_else(|| "-".to_owned(), |faults| faults.to_string());
        let number = mutant.number();
        writeln!(f, "{number:<4} {name:<23}{system:<10}{found:>8}{median:>10}{seconds:>10.1}{faults:>8}")
    }
}

/// Hunts each mistake of the museum. Returns false if a hunt did not find its mistake, or if a correct lock
/// is accused.
pub(crate) fn museum(plan: &Plan) -> Outcome {
    if plan.hunts == 0 || plan.cap == 0 {
        return Err("--hunts and --cap must be at least 1".into());
    }
    let head = format!(
        "{} hunts of at most {} random schedules with fencing on for each mistake. The median counts a hunt \
         that found nothing as {}.",
        plan.hunts, plan.cap, plan.cap
    );
    print(&wrap(&head, 0))?;
    print(&format!(
        "\n{:<4} {:<23}{:<10}{:>8}{:>10}{:>10}{:>8}\n",
        "", "mistake", "system", "found", "median", "seconds", "faults"
    ))?;
    let (mut all_found, mut longest) = (true, BTreeMap::new());
    for mutant in mutants(plan) {
        for system in mutant.systems() {
            let row = row(plan, mutant, system)?;
            all_found &= row.found == row.hunts;
            let schedules: &mut u64 = longest.entry(system).or_default();
            *schedules = row.median.saturating_mul(plan.hunts).max(*schedules);
            print(&row.to_string())?;
        }
    }
    print(&format!("shrunk schedules: {}\n", plan.out.display()))?;
    let mut acquitted = true;
    for (system, schedules) in longest {
        acquitted &= acquits(plan, system, schedules)?;
    }
    Ok(all_found && acquitted)
}

/// Returns the mistakes that a verdict convicts.
fn mutants(plan: &Plan) -> impl Iterator<Item = Mutant> {
    let is_meant = |mutant: &Mutant| plan.mutant.is_none_or(|only| only == *mutant);
    Mutant::ALL.iter().copied().filter(is_meant).filter(|mutant| !mutant.shows().is_empty())
}

fn row(plan: &Plan, mutant: Mutant, system: System) -> Result<Row, Box<dyn Error>> {
    let began = Stopwatch::start();
    let subject = Museum::new(Arm::Fenced).with(mutant).drawing(system);
    let ended = hunts(&subject, plan.hunts, plan.cap, &plan.portfolio, cores(plan.threads))?;
    let seconds = began.elapsed().as_secs_f64();
    let found = ended.iter().filter(|hunt| hunt.violation.is_some()).count() as u64;
    let mut schedules: Vec<u64> = ended.iter().map(|hunt| hunt.schedules).collect();
    schedules.sort_unstable();
    let median = schedules.get(schedules.len() / 2).copied().unwrap_or(plan.cap);
    let first = ended.iter().find_map(|hunt| hunt.violation.as_ref());
    let shrunk = first.map(|violation| {
        let mut schedule = shrink(&subject, &violation.schedule, &violation.cause, RUNS_MAX).schedule;
        schedule.about = format!("{} Found as {}.", mutant.mistake(), violation.cause);
        save(&plan.out, &format!("{mutant}-{system}.toml"), &schedule.to_toml())?;
        Ok::<_, String>(schedule.faults.len())
    });
    Ok(Row { mutant, system, hunts: plan.hunts, found, median, seconds, faults: shrunk.transpose()? })
}

/// Runs that many schedules of the correct lock on the system. Returns false if one accuses it.
fn acquits(plan: &Plan, system: System, schedules: u64) -> Outcome {
    // Without a mistake, and judged by the same checks.
    let correct = Museum::new(Arm::Fenced).drawing(system);
    let tally = explore(&[correct], 0..schedules, &plan.portfolio, cores(plan.threads), |_| true)?.tally;
    print(&format!("correct on {system}: {} schedules, {} violations\n", tally.schedules, tally.violations))?;
    Ok(tally.violations == 0)
}

/// Saves a schedule in the folder, which is created if need be.
fn save(folder: &Path, name: &str, schedule: &str) -> Result<(), String> {
    let failed =
        |error: std::io::Error| format!("{}: {error}; choose another folder with --out", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    std::fs::write(folder.join(name), schedule).map_err(failed)
}
