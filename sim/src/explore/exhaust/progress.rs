//! The progress of a search in a file, so that the search can continue where it stopped.
//!
//! A file has two lines. The first one names the program and the search, and has a checksum of both and of
//! the second line, which is the progress. A search uses the counts only if all of that is right: a wrong
//! count would be a false claim.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use history::VerdictKind;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::breaks::Break;
use super::search::Part;
use crate::explore::{Cause, Violation};
use crate::faults::Faults;
use crate::{Schedule, Subject};

/// A progress file that can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgressError {
    /// It can't be read, or the program can't read its own file.
    #[error("can't read {}: {source}", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It can't be written. The search ends, with the violations found so far.
    #[error("{source}{found}")]
    Write {
        /// The reason.
        source: files::Error,
        /// The violations, with their schedules.
        found: Lost,
    },
    /// It is no progress of a search, was changed, or belongs to another search or program.
    #[error("{}: {problem}: name another file, or delete it to begin anew", .file.display())]
    Other {
        /// The file.
        file: PathBuf,
        /// The problem with the file.
        problem: String,
    },
}

/// The violations of a search that ends without a result.
#[derive(Clone, Debug, Default)]
pub struct Lost(Vec<String>);

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|found| write!(f, "\n\nviolation, NOT KEPT: {found}"))
    }
}

/// The parts of a search that are done, by the number of their first fault.
pub(super) type Done<O> = BTreeMap<usize, Part<O>>;

/// The first line of a progress file.
#[derive(Serialize, Deserialize)]
struct Head {
    /// The version and the hash of the program that has run the search.
    program: String,
    /// The hash of everything else that the result of the search depends on.
    search: String,
    /// The checksum of the program, the search and the second line.
    checksum: String,
}

impl Head {
    fn of(search: &str, done: &str) -> io::Result<Self> {
        let (program, search) = (program()?, search.to_owned());
        Ok(Self { checksum: checksum(&program, &search, done), program, search })
    }
}

fn checksum(program: &str, search: &str, done: &str) -> String {
    format!("{:032x}", xxh3_128(format!("{program}\n{search}\n{done}").as_bytes()))
}

/// Returns the version of this crate and the hash of the running program. With another lock, client or
/// simulator, a placement may break a promise that it kept before.
fn program() -> io::Result<String> {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    if let Some(program) = PROGRAM.get() {
        return Ok(program.clone());
    }
    // The file of the running program, even if it was replaced since.
    let own = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()? };
    let (mut file, mut hash) = (std::fs::File::open(own)?, Xxh3::new());
    let mut bytes = vec![0; 1 << 20];
    loop {
        match file.read(&mut bytes)? {
            0 => break,
            read => hash.update(&bytes[..read]),
        }
    }
    let program = format!("sim {} {:032x}", env!("CARGO_PKG_VERSION"), hash.digest128());
    Ok(PROGRAM.get_or_init(|| program).clone())
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
    let unread = |source| ProgressError::Read { file: file.to_owned(), source };
    let other = |problem: String| ProgressError::Other { file: file.to_owned(), problem };
    let text = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Done::new()),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => "no text".to_owned(),
        Err(source) => return Err(unread(source)),
        Ok(text) => text,
    };
    let (head, done) = text.split_once('\n').unwrap_or((&text, ""));
    let head: Head = serde_json::from_str(head)
        .map_err(|_| other("it is no progress of a search by this version".to_owned()))?;
    if head.checksum != checksum(&head.program, &head.search, done) {
        return Err(other(
            "it was changed or damaged since it was written, so its counts prove nothing".to_owned(),
        ));
    }
    if head.program != program().map_err(unread)? {
        let problem =
            format!("it was written by another program ({}), whose runs prove nothing here", head.program);
        return Err(other(problem));
    }
    if head.search != search {
        let problem = "it is the progress of another search (subject, faults, seed or version differ)";
        return Err(other(problem.to_owned()));
    }
    let saved: BTreeMap<usize, SavedPart> =
        serde_json::from_str(done).map_err(|error| other(error.to_string()))?;
    let known = subject.faults();
    let part = |(number, part): (usize, SavedPart)| Ok((number, part.read(subject.arm(), &known)?));
    saved.into_iter().map(part).collect::<Result<_, String>>().map_err(other)
}

/// Writes the parts that are done. Replaces the file in one step, so that it is never half written. If that
/// fails, the error has the violations of these parts and of those that were cut short.
pub(super) fn save<S: Subject>(
    file: &Path,
    search: &str,
    done: &Done<S::Options>,
    cut: &Done<S::Options>,
) -> Result<(), ProgressError> {
    let unread = |source| ProgressError::Read { file: file.to_owned(), source };
    let parts: BTreeMap<_, _> = done.iter().map(|(number, part)| (*number, SavedPart::of(part))).collect();
    let text = serde_json::to_string(&parts).map_err(|error| unread(error.into()))?;
    let head = Head::of(search, &text).map_err(unread)?;
    let head = serde_json::to_string(&head).map_err(|error| unread(error.into()))?;
    files::write(file, format!("{head}\n{text}")).map_err(|source| {
        let cut: Vec<SavedPart> = cut.values().map(SavedPart::of).collect();
        let found = parts.values().chain(&cut).flat_map(|part| &part.breaks);
        let found = found.map(|found| format!("{}\n\n{}", found.cause, found.schedule));
        ProgressError::Write { source, found: Lost(found.collect()) }
    })
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
