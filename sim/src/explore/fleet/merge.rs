//! One report of the folders of many searches.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::capsule::{Capsule, Origin};
use super::capsules::{Capsules, KEPT_MAX};
use super::json::FleetError;
use super::shard::Shard;
use super::summary::Summary;

/// The number of schedules from which an unmet probe is a problem.
pub const PROBED_MIN: u64 = 250_000;

/// The longest time without a finding of a known mistake, in seconds.
const GAP_MAX: f64 = 3.0 * 3600.0;

/// The searches of several folders, as one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Merged {
    /// The number of shards that were merged.
    pub shards: usize,
    /// The number of schedules.
    pub schedules: u64,
    /// The time of all threads, in seconds.
    pub core_seconds: f64,
    /// The number of schedules that one core runs in a day.
    pub schedules_per_core_day: f64,
    /// The number of runs with a violation.
    pub violations: u64,
    /// The number of runs with each verdict.
    pub verdicts: BTreeMap<String, u64>,
    /// The violations, by cause.
    pub causes: BTreeMap<String, Found>,
    /// The probes that no shard has met, apart from those that a kept schedule reaches.
    pub unmet: Vec<String>,
    /// The number of times that a known mistake was found.
    pub canaries: u64,
    /// The problems of the searches: shards that are missing, were interrupted or ran nothing, files that are
    /// damaged and were left out, a known mistake that was not found, probes that are unmet.
    pub problems: Vec<String>,
}

/// The violations of one cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The number of runs, if a summary has counted them.
    pub runs: u64,
    /// The capsules, at most [`KEPT_MAX`], the best one first.
    pub capsules: Vec<Capsule>,
}

/// Merges the folders of the shards of one search into one report. A damaged summary or capsule is left out,
/// and is a problem in the report.
///
/// # Errors
///
/// [`FleetError`] if a folder can't be read, or if the folders are not of different shards of one search.
pub fn merge(folders: &[PathBuf]) -> Result<Merged, FleetError> {
    let (begun, empty): (Vec<_>, Vec<_>) = folders.iter().partition(|folder| !is_empty(folder));
    let (mut summaries, mut damaged) = (Vec::new(), Vec::new());
    for folder in begun {
        match Summary::read(folder) {
            Ok(summary) => summaries.push((folder.clone(), summary)),
            Err(error) if folder.is_dir() => damaged.push((folder.clone(), error)),
            Err(error) => return Err(error),
        }
    }
    let (search, shards) = match (summaries.is_empty(), search_of(&damaged)?) {
        (true, Some(search)) => (search, BTreeSet::new()),
        (true, None) if !damaged.is_empty() => return Err(damaged.remove(0).1),
        _ => shards(&summaries)?,
    };
    let mut merged = Merged::of(summaries.iter().map(|(_, summary)| summary));
    merged.miss(&shards);
    let empty = empty.iter().map(|folder| format!("{}: is empty: its search never began", folder.display()));
    merged.problems.extend(empty);
    for (folder, summary) in &summaries {
        merged.judge(folder, summary);
        merged.take(folder, |capsule| capsule.search == summary.search)?;
    }
    for (folder, error) in &damaged {
        merged.problems.push(format!("{error}; its counts were left out"));
        merged.take(folder, |capsule| is_shard_of(&capsule.search, &search))?;
    }
    if merged.schedules >= PROBED_MIN && !merged.unmet.is_empty() {
        merged.problems.push(format!("probes that no run has met: {}", merged.unmet.join(", ")));
    }
    Ok(merged)
}

/// Returns true if the folder exists and is empty.
fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// Returns the search of the first capsule in folders with damaged summaries.
fn search_of(damaged: &[(PathBuf, FleetError)]) -> Result<Option<Origin>, FleetError> {
    for (folder, _) in damaged {
        if let Some(capsule) = Capsules::read_each(folder)?.into_iter().flatten().next() {
            return Ok(Some(capsule.search));
        }
    }
    Ok(None)
}

/// Returns true if two searches are the same, apart from their shards.
fn is_shard_of(search: &Origin, other: &Origin) -> bool {
    let mut search = search.clone();
    search.shard.clone_from(&other.shard);
    search == *other
}

/// Returns the search and its shards. The summaries must be of different shards of one search.
fn shards(summaries: &[(PathBuf, Summary)]) -> Result<(Origin, BTreeSet<Shard>), FleetError> {
    let Some((first_folder, first)) = summaries.first() else {
        return Err(FleetError::Merge("there is nothing to merge: give the folder of each shard".to_owned()));
    };
    let mut shards = BTreeMap::new();
    for (folder, summary) in summaries {
        if !is_shard_of(&summary.search, &first.search) {
            return Err(FleetError::Merge(format!(
                "{} and {} are of different searches: the version, the system, the strategy or the first seed \
                 differs; merge them one by one",
                first_folder.display(),
                folder.display()
            )));
        }
        let shard: Shard = summary.search.shard.parse().map_err(|error| FleetError::Content {
            path: folder.clone(),
            problem: format!("its summary has no shard: {error}"),
        })?;
        if let Some(other) = shards.insert(shard, folder) {
            let (other, folder) = (other.display(), folder.display());
            return Err(FleetError::Merge(format!(
                "{other} and {folder} are both shard {shard}: leave one out"
            )));
        }
    }
    Ok((first.search.clone(), shards.into_keys().collect()))
}

impl Merged {
    /// Adds up the counts.
    fn of<'a>(summaries: impl Iterator<Item = &'a Summary> + Clone) -> Self {
        let core_seconds: f64 =
            summaries.clone().map(|summary| summary.seconds * summary.threads as f64).sum();
        let schedules = summaries.clone().map(|summary| summary.schedules).sum();
        let (mut verdicts, mut causes) = (BTreeMap::new(), BTreeMap::new());
        for summary in summaries.clone() {
            for (verdict, count) in &summary.verdicts {
                *verdicts.entry(verdict.clone()).or_default() += count;
            }
            for (cause, count) in &summary.causes {
                let found = causes.entry(cause.clone()).or_insert(Found { runs: 0, capsules: Vec::new() });
                found.runs += count;
            }
        }
        let unmet = summaries.clone().map(|summary| summary.unmet.iter().cloned().collect::<BTreeSet<_>>());
        let unmet = unmet.reduce(|one, other| one.intersection(&other).cloned().collect());
        let canaries = summaries.clone().filter_map(|summary| summary.canary.as_ref());
        Self {
            shards: summaries.clone().count(),
            schedules,
            core_seconds,
            schedules_per_core_day: schedules as f64 / core_seconds.max(1e-9) * 86_400.0,
            violations: summaries.clone().map(|summary| summary.violations).sum(),
            verdicts,
            causes,
            unmet: unmet.unwrap_or_default().into_iter().collect(),
            canaries: canaries.map(|canary| canary.found).sum(),
            problems: Vec::new(),
        }
    }

    /// Notes shards that are missing.
    fn miss(&mut self, shards: &BTreeSet<Shard>) {
        let of = shards.iter().map(|shard| shard.of).max().unwrap_or(1);
        let expected = (1..=of).map(|number| Shard { number, of });
        let missing: Vec<String> =
            expected.filter(|shard| !shards.contains(shard)).map(|shard| shard.to_string()).collect();
        if !missing.is_empty() {
            self.problems.push(format!("shards that are missing: {}", missing.join(", ")));
        }
    }

    /// Notes the problems of one search.
    fn judge(&mut self, folder: &Path, summary: &Summary) {
        let folder = folder.display();
        if summary.ended.is_none() {
            self.problems.push(format!("{folder}: was interrupted; what it had found is in this report"));
        } else if summary.schedules == 0 {
            self.problems.push(format!("{folder}: ran no schedule"));
        }
        self.problems.extend(summary.problems.iter().map(|problem| format!("{folder}: {problem}")));
        let Some(canary) = &summary.canary else { return };
        let gap = canary.longest_gap.max(summary.seconds - canary.last.unwrap_or(0.0));
        if canary.missed > 0 || canary.found == 0 || gap > GAP_MAX {
            self.problems.push(format!(
                "{folder}: the known mistake `{}` was found {} times and missed {} times, and not for {gap:.0} \
                 s: the search may be blind",
                canary.mistake, canary.found, canary.missed
            ));
        }
    }

    /// Keeps the capsules of a folder that belong to the search, and notes the others and the damaged ones.
    fn take(&mut self, folder: &Path, is_of: impl Fn(&Capsule) -> bool) -> Result<(), FleetError> {
        for capsule in Capsules::read_each(folder)? {
            match capsule {
                Ok(capsule) if is_of(&capsule) => self.keep(capsule),
                Ok(capsule) => {
                    let (folder, name) = (folder.display(), capsule.name);
                    self.problems.push(format!("{folder}: {name} is of another search and was left out"));
                }
                Err(error) => self.problems.push(format!("{error}; it was left out")),
            }
        }
        Ok(())
    }

    /// Keeps a capsule, if it is one of the best of its cause.
    fn keep(&mut self, capsule: Capsule) {
        let cause = format!("{}, {}", capsule.cause, capsule.arm);
        let found = self.causes.entry(cause).or_insert(Found { runs: 0, capsules: Vec::new() });
        found.capsules.push(capsule);
        found.capsules.sort_by_key(Capsule::rank);
        found.capsules.truncate(KEPT_MAX);
    }

    /// Returns true if no search has found a violation or had a problem.
    pub fn is_clean(&self) -> bool {
        self.causes.is_empty() && self.problems.is_empty()
    }
}

impl fmt::Display for Merged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} schedules in {} shards, {:.1} core hours: {:.0} schedules a core and day",
            self.schedules,
            self.shards,
            self.core_seconds / 3600.0,
            self.schedules_per_core_day
        )?;
        for (verdict, count) in &self.verdicts {
            writeln!(f, "{verdict:<30}{count:>12}")?;
        }
        writeln!(f, "violations: {}, of {} causes", self.violations, self.causes.len())?;
        for (cause, found) in &self.causes {
            let mut text = format!("\n{cause}: {} runs", found.runs);
            for capsule in &found.capsules {
                let _ =
                    write!(text, "\n  {}: {} faults, seed {}", capsule.name, capsule.faults, capsule.seed);
            }
            writeln!(f, "{text}")?;
        }
        if self.canaries > 0 {
            writeln!(f, "known mistakes found on the way: {}", self.canaries)?;
        }
        self.problems.iter().try_for_each(|problem| writeln!(f, "problem: {problem}"))
    }
}
