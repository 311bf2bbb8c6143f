//! The counts of a search, and how it ended.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::capsule::Origin;
use super::json::{FleetError, json, read_json};
use crate::explore::Tally;

/// The name of a summary's file.
pub(super) const SUMMARY: &str = "summary.json";

/// The counts of a search so far, and how it ended. Its file is rewritten as the search goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The search.
    pub search: Origin,
    /// The number of threads.
    pub threads: usize,
    /// The time for which it has run, in seconds.
    pub seconds: f64,
    /// The number of schedules.
    pub schedules: u64,
    /// The number of runs with a violation.
    pub violations: u64,
    /// The number of runs with each verdict.
    pub verdicts: BTreeMap<String, u64>,
    /// The number of runs whose first violation has this cause.
    pub causes: BTreeMap<String, u64>,
    /// The probes that no run has met, apart from those that a kept schedule reaches.
    pub unmet: Vec<String>,
    /// The searches for a known mistake, if there are any.
    pub canary: Option<Canary>,
    /// The reason why the search ended; `None` while it runs, and if it was interrupted.
    pub ended: Option<String>,
    /// The problems of the search itself, such as a run without an end.
    pub problems: Vec<String>,
}

/// The searches for a known mistake in the course of a search. They show that the search would find one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Canary {
    /// The mistake of the museum.
    pub mistake: String,
    /// The number of searches that found it.
    pub found: u64,
    /// The number of searches that did not find it.
    pub missed: u64,
    /// The number of schedules that the last of these searches took.
    pub schedules: u64,
    /// The time of the last finding, in seconds since the start of the search.
    pub last: Option<f64>,
    /// The longest time without a finding so far, in seconds.
    pub longest_gap: f64,
}

impl Summary {
    /// Creates the summary of a search that begins.
    pub fn new(search: Origin, threads: usize) -> Self {
        Self {
            search,
            threads,
            seconds: 0.0,
            schedules: 0,
            violations: 0,
            verdicts: BTreeMap::new(),
            causes: BTreeMap::new(),
            unmet: Vec::new(),
            canary: None,
            ended: None,
            problems: Vec::new(),
        }
    }

    /// Copies the counts of the search after this number of seconds.
    pub fn update(&mut self, tally: &Tally, seconds: f64) {
        self.seconds = seconds;
        self.schedules = tally.schedules;
        self.violations = tally.violations;
        let verdicts = tally.verdicts.iter().map(|((arm, kind), count)| (format!("{kind}, {arm}"), *count));
        self.verdicts = verdicts.collect();
        let causes = tally.causes.iter().map(|((arm, cause), count)| (format!("{cause}, {arm}"), *count));
        self.causes = causes.collect();
        self.unmet = tally.probes.unmet().iter().map(|seen| seen.name.to_owned()).collect();
    }

    /// Writes it to its folder, which is created if need be.
    ///
    /// # Errors
    ///
    /// [`FleetError::Write`] if it can't be written.
    pub fn save(&self, folder: &Path) -> Result<(), FleetError> {
        let path = folder.join(SUMMARY);
        let text = json(&path, self)?;
        files::create_folder(folder)?;
        Ok(files::write(&path, text)?)
    }

    /// Keeps the summary that another search has left in the folder, if there is one, under another name:
    /// `summary.json.earlier`, `summary-2.json.earlier` and so on. Returns the new file. A summary of the
    /// same search stays where it is.
    ///
    /// # Errors
    ///
    /// [`FleetError::Write`] if it can't be written.
    pub fn keep_other(&self, folder: &Path) -> Result<Option<PathBuf>, FleetError> {
        let Ok(text) = std::fs::read_to_string(folder.join(SUMMARY)) else { return Ok(None) };
        if serde_json::from_str::<Self>(&text).is_ok_and(|other| other.search == self.search) {
            return Ok(None);
        }
        Ok(Some(files::keep(folder, "summary", "json.earlier", &text)?))
    }

    /// Reads it from its folder.
    ///
    /// # Errors
    ///
    /// [`FleetError`] if there is none, or if it has another format.
    pub fn read(folder: &Path) -> Result<Self, FleetError> {
        read_json(&folder.join(SUMMARY), "summary of a search")
    }
}
