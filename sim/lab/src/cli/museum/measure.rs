//! Hunts one mistake on one system, and has every schedule that convicts it acquit the exhibit without it.

use std::error::Error;
use std::path::Path;

use lab::museum::{Museum, Mutant};
use lab::{Arm, Options, System};
use sim::explore::{Hunt, Portfolio, RUNS_MAX, Shrunk, Violation, hunts, shrink, violation};
use sim::{RunError, Schedule};

use super::results::Row;
use super::save;
use crate::cli::stopwatch::processor_time;

/// One exhibit on one system, and how it is hunted.
pub(super) struct Target<'a> {
    pub(super) mutant: Mutant,
    pub(super) system: System,
    pub(super) portfolio: &'a Portfolio,
    pub(super) threads: usize,
}

impl Target<'_> {
    fn museum(&self) -> Museum {
        Museum::new(Arm::Fenced).with(self.mutant).drawing(self.system)
    }

    /// Adds hunts to the row until there are `count`, or until `stop` returns true.
    pub(super) fn hunt(
        &self,
        row: &mut Row,
        count: u64,
        stop: impl Fn() -> bool + Sync,
    ) -> Result<Vec<Hunt<Options>>, RunError> {
        let (numbers, began) = (row.hunts()..count, processor_time());
        let signs = self.mutant.signs();
        let ended = hunts(&self.museum(), &signs, numbers, row.cap, self.portfolio, self.threads, stop)?;
        row.processor_seconds += processor_time().saturating_sub(began).as_secs_f64();
        for hunt in &ended {
            row.add(hunt);
            if let Some((_, violation)) = &hunt.found
                && let Some(problem) = self.accused(&violation.schedule)?
            {
                row.accused.push(format!("{}: {problem}", violation.schedule.about));
            }
        }
        Ok(ended)
    }

    /// Runs the schedule with the exhibit without its mistake. Returns what that breaks, if anything.
    fn accused(&self, schedule: &Schedule<Options>) -> Result<Option<String>, RunError> {
        let twin = self.museum().twin();
        let report = sim::sim::run(&twin, schedule)?;
        let accused = violation(&twin, schedule, &report);
        Ok(accused.map(|violation| format!("without its mistake {}", violation.cause)))
    }

    /// Shrinks the schedule that convicts the mistake, and writes it to the folder. Returns the number of its
    /// faults.
    pub(super) fn shrink(&self, found: &Violation<Options>, folder: &Path) -> Result<usize, Box<dyn Error>> {
        let Shrunk { mut schedule, .. } = shrink(&self.museum(), &found.schedule, &found.cause, RUNS_MAX);
        schedule.about = format!("{} Found as {}.", self.mutant.mistake(), found.cause);
        save(folder, &format!("{}-{}.toml", self.mutant, self.system), &schedule.to_toml())?;
        Ok(schedule.faults.len())
    }
}
