//! The results of hunts, as they are kept in a file: a row for each mistake, system and strategy.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;

use lab::System;
use lab::museum::Mutant;
use serde::{Deserialize, Serialize};
use sim::explore::Hunt;

/// The name of the strategies in turns, beside those of single strategies.
pub(super) const DEFAULT: &str = "default";

/// The key of a row: no two rows have the same one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) mutant: String,
    pub(super) system: String,
    /// A strategy, or [`DEFAULT`].
    pub(super) strategy: String,
}

/// The origin of a row. Rows of different origins can't be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origin {
    /// The strategies with their numbers of turns.
    pub(super) shares: String,
    /// A number for the behaviour of the simulator: see [`program`](super::identity::program).
    pub(super) program: String,
}

/// The hunts for one mistake on one system by one strategy, or by all in turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) key: Key,
    #[serde(flatten)]
    pub(super) origin: Origin,
    /// The most schedules of one hunt.
    pub(super) cap: u64,
    /// The number of schedules of each hunt, in the order of their seeds.
    pub(super) schedules: Vec<u64>,
    /// The number of runs of each.
    pub(super) runs: Vec<u64>,
    /// The number of hunts that found the mistake, by the verdict or the check that showed it.
    pub(super) came: BTreeMap<String, u64>,
    /// The number of schedules on the way that broke something else, by what they broke first.
    pub(super) others: BTreeMap<String, u64>,
    /// The convicting schedules that convict the exhibit without its mistake, too: a mistake of the museum.
    pub(super) accused: Vec<String>,
    /// The processor time of all hunts, in seconds.
    pub(super) processor_seconds: f64,
    /// The number of faults in the shrunk schedule of the first hunt that found the mistake.
    pub(super) faults: Option<usize>,
}

/// All rows, in the order of the exhibits.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Results {
    pub(super) rows: Vec<Row>,
}

impl Key {
    pub(super) fn new(mutant: Mutant, system: System, strategy: &str) -> Self {
        Self { mutant: mutant.to_string(), system: system.to_string(), strategy: strategy.to_owned() }
    }

    /// Returns the place of the row in the file: that of its exhibit in the code, then by strategy.
    fn place(&self) -> (usize, usize, String) {
        let mutant = Mutant::ALL.iter().position(|mutant| mutant.name() == self.mutant);
        let system = System::all().position(|system| system.name() == self.system);
        (mutant.unwrap_or(usize::MAX), system.unwrap_or(usize::MAX), self.strategy.clone())
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on {}, {}", self.mutant, self.system, self.strategy)
    }
}

impl Row {
    /// Returns a row without hunts.
    pub(super) fn new(key: Key, origin: Origin, cap: u64) -> Self {
        Self {
            key,
            origin,
            cap,
            schedules: Vec::new(),
            runs: Vec::new(),
            came: BTreeMap::new(),
            others: BTreeMap::new(),
            accused: Vec::new(),
            processor_seconds: 0.0,
            faults: None,
        }
    }

    /// Adds a hunt.
    pub(super) fn add<O>(&mut self, hunt: &Hunt<O>) {
        self.schedules.push(hunt.schedules);
        self.runs.push(hunt.runs);
        if let Some((broken, _)) = &hunt.found {
            *self.came.entry(broken.to_string()).or_default() += 1;
        }
        for (broken, times) in &hunt.others {
            *self.others.entry(broken.to_string()).or_default() += times;
        }
    }

    /// Returns the number of hunts.
    pub(super) fn hunts(&self) -> u64 {
        self.schedules.len() as u64
    }

    /// Returns the number of hunts that found the mistake.
    pub(super) fn found(&self) -> u64 {
        self.came.values().sum()
    }

    /// Returns the processor time of a hunt, in seconds.
    pub(super) fn seconds_each(&self) -> f64 {
        self.processor_seconds / self.hunts().max(1) as f64
    }
}

/// Returns the median; of an even number of values, the larger of the two in the middle.
pub(super) fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

impl Results {
    /// Returns the program that measured most of the rows.
    pub(super) fn most_common_program(&self) -> Option<&String> {
        let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
        for row in &self.rows {
            *counts.entry(&row.origin.program).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(program, _)| program)
    }

    /// Reads the results in the file; none if there is no such file.
    ///
    /// # Errors
    ///
    /// A sentence that names the file and its fault, and says what to do.
    pub(super) fn load(path: &Path) -> Result<Self, String> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            text => text.map_err(|error| format!("{}: {error}", path.display()))?,
        };
        let rows = serde_json::from_str(&text).map_err(|error| {
            format!("{}: {error}; name another file with --results, or remove this one", path.display())
        })?;
        Ok(Self { rows })
    }

    /// Writes the file, which has a row on each line.
    ///
    /// # Errors
    ///
    /// [`files::Error`] if the file can't be written.
    pub(super) fn save(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let rows = self.rows.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        Ok(files::write(path, format!("[\n{}\n]\n", rows.join(",\n")))?)
    }

    pub(super) fn row(&self, key: &Key) -> Option<&Row> {
        self.rows.iter().find(|row| row.key == *key)
    }

    /// Puts the row in the place of the one with its key, if there is one.
    pub(super) fn put(&mut self, row: Row) {
        self.rows.retain(|other| other.key != row.key);
        self.rows.push(row);
        self.rows.sort_by_cached_key(|row| row.key.place());
    }

    /// Returns the rows of a strategy, or of all in turns.
    pub(super) fn by(&self, strategy: &str) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.key.strategy == strategy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(mutant: Mutant, strategy: &str, schedules: &[u64]) -> Row {
        let origin = Origin { shares: "uniform 1".to_owned(), program: "0".to_owned() };
        let mut row = Row::new(Key::new(mutant, System::REDIS, strategy), origin, 100);
        row.schedules = schedules.to_vec();
        row.runs = schedules.to_vec();
        row
    }

    #[test]
    fn a_row_takes_the_place_of_the_one_with_its_key_alone() {
        let mut results = Results::default();
        results.put(row(Mutant::TwoStep, DEFAULT, &[5]));
        results.put(row(Mutant::BlindDel, "aimed", &[6]));
        results.put(row(Mutant::BlindDel, DEFAULT, &[7]));
        results.put(row(Mutant::TwoStep, DEFAULT, &[8, 9]));
        let kept: Vec<_> = results.rows.iter().map(|row| (row.key.to_string(), row.hunts())).collect();
        let expected = [("blind-del on redis, aimed", 1), ("blind-del on redis, default", 1)];
        assert_eq!(kept[..2], expected.map(|(key, hunts)| (key.to_owned(), hunts)));
        assert_eq!(kept[2], ("two-step on redis, default".to_owned(), 2));
    }

    #[test]
    fn a_file_gives_back_what_was_saved() {
        let folder = std::env::temp_dir().join(format!("museum-results-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("museum.json");
        assert_eq!(Results::load(&file).unwrap(), Results::default());
        let mut results = Results::default();
        results.put(row(Mutant::TwoStep, DEFAULT, &[5, 3]));
        results.save(&file).unwrap();
        assert_eq!(Results::load(&file).unwrap(), results);
        std::fs::write(&file, "[{}]").unwrap();
        let refusal = Results::load(&file).unwrap_err();
        assert!(refusal.contains("museum.json") && refusal.contains("--results"), "{refusal}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[9, 1, 5]), 5);
        assert_eq!(median(&[1, 9]), 9);
        assert_eq!(median(&[]), 0);
    }
}
