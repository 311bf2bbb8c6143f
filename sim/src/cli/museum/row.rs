//! A line of the table: the hunts for one mistake on one system.

use std::fmt;

use sim::explore::Hunt;
use sim::lab::System;
use sim::museum::Mutant;

/// The hunts for one mistake on one system. Prints as a line.
pub(super) struct Row {
    pub(super) mutant: Mutant,
    pub(super) system: System,
    pub(super) hunted: Hunted,
    /// The time that the hunts took, in real seconds.
    pub(super) seconds: f64,
    /// The schedule of the first hunt that found the mistake, shrunk.
    pub(super) shrunk: Option<Smallest>,
    /// The hunts by the uniform strategy alone.
    pub(super) uniform: Option<Hunted>,
}

/// A shrunk schedule.
pub(super) struct Smallest {
    /// The number of its faults.
    pub(super) faults: usize,
    /// Its file.
    pub(super) file: String,
    /// The number of runs that shrinking took.
    pub(super) runs: u32,
    /// The time that this took, in real seconds.
    pub(super) seconds: f64,
}

/// The outcome of some hunts with different seeds.
pub(super) struct Hunted {
    pub(super) hunts: u64,
    /// Number of hunts that found the mistake.
    pub(super) found: u64,
    /// The median number of schedules; a hunt that found nothing counts with all that it ran.
    pub(super) median: u64,
}

impl Hunted {
    pub(super) fn of<O>(hunts: &[Hunt<O>]) -> Self {
        let mut schedules: Vec<u64> = hunts.iter().map(|hunt| hunt.schedules).collect();
        schedules.sort_unstable();
        Self {
            hunts: hunts.len() as u64,
            found: hunts.iter().filter(|hunt| hunt.violation.is_some()).count() as u64,
            median: schedules.get(schedules.len() / 2).copied().unwrap_or_default(),
        }
    }

    /// Returns the found ones of all, such as `49/50`.
    pub(super) fn share(&self) -> String {
        format!("{}/{}", self.found, self.hunts)
    }
}

/// Returns the head of the table.
pub(super) fn head() -> String {
    let mistake = format!("{:<5}{:<23}{:<10}", "", "mistake", "system");
    format!(
        "{:<38}{:>6}{:>7}{:>7}{:>7}{:>15}\n{mistake}{:>6}{:>7}{:>7}{:>7}{:>7}{:>8}\n",
        "", "", "", "", "", "uniform alone", "found", "median", "secs", "faults", "found", "median"
    )
}

/// Says how large the shrunk schedules are, and what shrinking them took.
pub(super) fn shrinking(rows: &[Row]) -> String {
    let shrunk: Vec<&Smallest> = rows.iter().filter_map(|row| row.shrunk.as_ref()).collect();
    let faults = shrunk.iter().map(|shrunk| shrunk.faults).max().unwrap_or_default();
    let runs = shrunk.iter().map(|shrunk| shrunk.runs).max().unwrap_or_default();
    let seconds = shrunk.iter().map(|shrunk| shrunk.seconds).fold(0.0, f64::max);
    format!(
        "{} schedules shrunk: at most {faults} faults are left, after at most {runs} runs and {seconds:.1} s",
        shrunk.len()
    )
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mutant, hunted, seconds, .. } = self;
        let (number, name, system) = (mutant.number(), mutant.name(), self.system.to_string());
        let shrunk = self.shrunk.as_ref();
        let faults = shrunk.map_or_else(|| "-".to_owned(), |shrunk| shrunk.faults.to_string());
        let (found, median) = self.uniform.as_ref().map_or_else(
            || ("-".to_owned(), "-".to_owned()),
            |uniform| (uniform.share(), uniform.median.to_string()),
        );
        writeln!(
            f,
            "{number:<5}{name:<23}{system:<10}{:>6}{:>7}{seconds:>7.1}{faults:>7}{found:>7}{median:>8}",
            hunted.share(),
            hunted.median
        )
    }
}
