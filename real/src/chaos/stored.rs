//! The stored reports of long runs, as far as the page shows them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use history::VerdictKind;
use serde::Deserialize;

use super::report::{Count, Report, Since};
use crate::lab::{Machine, MeasuredError, OneMachine, Software};
use crate::record::Record;
use crate::tokens::Tokens;

/// Why the page can't be made.
#[derive(Debug, thiserror::Error)]
pub enum ChaosPageError {
    /// A file can't be read.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A file is no report of a long run.
    #[error("{}: no report of `real chaos`: {source}", .path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// The error.
        source: serde_json::Error,
    },
    /// A report does not belong on a page, or not on one with the others.
    #[error(transparent)]
    Measured(#[from] MeasuredError),
}

/// Reads the reports in `folder`, which must be of the machine of the results read before; `None` if there is
/// no folder.
///
/// # Errors
///
/// [`ChaosPageError`].
pub(super) fn read(folder: &Path, machines: &mut OneMachine) -> Result<Option<Vec<Stored>>, ChaosPageError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ChaosPageError::File { path, source }
    };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries.map_err(failed(folder))?,
    };
    let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(failed(folder))?;
    paths.sort();
    let mut runs: Vec<Stored> = Vec::new();
    for path in paths.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "json"))
    {
        let text = fs::read_to_string(&path).map_err(failed(&path))?;
        let run: Stored = match serde_json::from_str(&text) {
            Ok(run) => run,
            Err(source) => return Err(ChaosPageError::Report { path, source }),
        };
        machines.add(&path, &text)?;
        runs.push(run);
    }
    Ok(Some(runs))
}

/// The parts of a [`Report`] that are on the page.
#[derive(Debug, Deserialize)]
pub(super) struct Stored {
    pub(super) command: String,
    pub(super) machine: Machine,
    pub(super) software: Software,
    pub(super) configuration: StoredConfiguration,
    pub(super) faults: BTreeMap<String, u64>,
    pub(super) verdicts: BTreeMap<VerdictKind, Count>,
    pub(super) grants: u64,
    pub(super) tasks_done: u64,
    pub(super) writes_accepted: u64,
    pub(super) writes_refused: u64,
    pub(super) claims_refused: u64,
    pub(super) longest_unserved_ms: u64,
    pub(super) lasted_ms: u64,
    #[serde(default)]
    pub(super) commits_lost: u64,
    pub(super) since_data_lost: Option<Since>,
    pub(super) not_judged: Vec<StoredNotJudged>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StoredNotJudged {
    pub(super) kind: VerdictKind,
    pub(super) why: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct StoredConfiguration {
    /// `None` if there were no lock servers.
    pub(super) system: Option<String>,
    #[serde(default)]
    pub(super) record: Record,
    pub(super) fence: String,
    pub(super) primitive: String,
    #[serde(default)]
    pub(super) tokens: Tokens,
    pub(super) workers: u64,
    pub(super) raise: bool,
}

impl Stored {
    pub(super) fn count(&self, kind: VerdictKind) -> Count {
        self.verdicts.get(&kind).copied().unwrap_or_default()
    }

    pub(super) fn violations(&self) -> u64 {
        Report::violations_of(&self.verdicts) + self.commits_lost
    }

    pub(super) fn explained(&self) -> u64 {
        self.verdicts.values().map(|count| count.explained).sum()
    }

    pub(super) fn is_mutex(&self) -> bool {
        self.configuration.primitive == "mutex"
    }

    /// Returns the name of the system: `postgres` if there were no lock servers.
    pub(super) fn system_name(&self) -> &str {
        self.configuration.system.as_deref().unwrap_or(Record::Postgres.as_str())
    }

    /// Returns the system, and the record and the source of its tokens if they are not the default.
    pub(super) fn system(&self) -> String {
        let StoredConfiguration { system, record, tokens, .. } = &self.configuration;
        format!("{}{}{}", self.system_name(), record.note(system.is_some()), tokens.note())
    }

    pub(super) fn unserved(&self) -> String {
        if self.grants == 0 {
            // Jobs are claimed, not requested.
            return "–".to_owned();
        }
        format!("{:.1} s", self.longest_unserved_ms as f64 / 1e3)
    }
}
