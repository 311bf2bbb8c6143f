//! The progress of a search in a file, so that it can go on where it stopped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use resource::audit::VerdictKind;
use serde::{Deserialize, Serialize};

use super::breaks::Break;
use super::search::Part;
use crate::explore::{Cause, Violation};
use crate::faults::Faults;
use crate::{Schedule, Subject};

/// A progress file that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ProgressError {
    /// It can't be read or written.
    #[error("{}: {source}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// It is no progress of a search, or of another one.
    #[error("{}: {problem}: name another file, or delete it to begin anew", .file.display())]
    Other {
        /// The file.
        file: PathBuf,
        /// What is wrong with the file.
        problem: String,
    },
}

/// The parts of a search that are done, by the number of their first fault.
pub(super) type Done<O> = BTreeMap<usize, Part<O>>;

/// A progress file.
#[derive(Serialize, Deserialize)]
struct Saved {
    /// The hash of all that the result of the search depends on.
    search: String,
    done: BTreeMap<usize, SavedPart>,
}

#[derive(Serialize, Deserialize)]
struct SavedPart {
    runs: u64,
    refused: u64,
    breaks: Vec<SavedBreak>,
}

#[derive(Serialize, Deserialize)]
struct SavedBreak {
    faults: usize,
    cause: String,
    broken: Vec<VerdictKind>,
    findings: Vec<String>,
    violation: Cause,
    schedule: String,
}

/// Reads the parts that are done; none if there is no such file.
pub(super) fn load<S: Subject>(
    subject: &S,
    file: &Path,
    search: &str,
) -> Result<Done<S::Options>, ProgressError> {
    let other = |problem: String| ProgressError::Other { file: file.to_owned(), problem };
    let text = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Done::new()),
        Err(source) => return Err(ProgressError::File { file: file.to_owned(), source }),
        Ok(text) => text,
    };
    let saved: Saved = serde_json::from_str(&text).map_err(|error| other(error.to_string()))?;
    if saved.search != search {
        let problem = "it is the progress of another search (subject, faults, seed or version differ)";
        return Err(other(problem.to_owned()));
    }
    let known = subject.faults();
    let part = |(number, part): (usize, SavedPart)| Ok((number, part.read(subject.arm(), &known)?));
    saved.done.into_iter().map(part).collect::<Result<_, String>>().map_err(other)
}

/// Writes the parts that are done. Replaces the file in one step, so that it is never half written.
pub(super) fn save<S: Subject>(
    file: &Path,
    search: &str,
    done: &Done<S::Options>,
) -> Result<(), ProgressError> {
    let failed = |source| ProgressError::File { file: file.to_owned(), source };
    let done = done.iter().map(|(number, part)| (*number, SavedPart::of(part))).collect();
    let text = serde_json::to_vec(&Saved { search: search.to_owned(), done });
    let text = text.map_err(|error| failed(error.into()))?;
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    std::fs::write(&name, text).map_err(failed)?;
    std::fs::rename(&name, file).map_err(failed)
}

impl SavedPart {
    fn of<O: Clone + Serialize + serde::de::DeserializeOwned>(part: &Part<O>) -> Self {
        let saved = |found: &Break<O>| SavedBreak {
            faults: found.faults,
            cause: found.cause.clone(),
            broken: found.violation.broken.iter().copied().collect(),
            findings: found.violation.findings.clone(),
            violation: found.violation.cause.clone(),
            schedule: found.violation.schedule.to_toml(),
        };
        let Part { runs, refused, .. } = *part;
        Self { runs, refused, breaks: part.breaks.iter().map(saved).collect() }
    }

    fn read<O>(self, arm: &'static str, known: &Faults) -> Result<Part<O>, String>
    where
        O: Clone + Serialize + serde::de::DeserializeOwned,
    {
        let Self { runs, refused, breaks } = self;
        let mut part = Part { runs, refused, ..Part::default() };
        for SavedBreak { faults, cause, broken, findings, violation, schedule } in breaks {
            let schedule = Schedule::read(&cause, &schedule, known).map_err(|error| error.to_string())?;
            let broken = broken.into_iter().collect();
            let violation =
                Violation { arm, broken, findings, cause: violation, drawn_from: schedule.seed, schedule };
            part.breaks.add(Break { faults, cause, violation });
        }
        Ok(part)
    }
}
