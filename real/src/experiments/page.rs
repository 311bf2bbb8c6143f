//! The pages of the results: that of all experiments, that of the long runs, and that of the comparison with
//! other libraries; and the tables of two other pages.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{ALL, ExperimentError, Registered, objectives, questions};
use crate::chaos::{self, ChaosPageError};
use crate::fidelity::{self, FidelityError};
use crate::lab::fleet::PERSISTENCE;
use crate::lab::{LabError, MeasuredError, OneMachine, keep_text};
use crate::peers::{PeersPageError, stored_page};

/// The names of the pages in their folder.
const PAGE: &str = "experiments.md";
const LONG_RUNS: &str = "chaos.md";
const PEERS: &str = "peers.md";

/// Pages with a table between two lines: the lab's questions, and the long comparisons with live servers.
const GUIDE: &str = "decide.md";
const FIDELITY: &str = "fidelity.md";
const BEGIN: &str = "<!-- `report` makes this table from the results -->\n";
const END: &str = "<!-- end -->\n";

/// The folder of the reports of the long runs, in that of the results.
const CHAOS: &str = "chaos";

/// The folder of the results of the long comparisons with live servers.
const COMPARED: &str = "fidelity";

/// The file of the results of the comparison with other libraries.
const COMPARISON: &str = "peers.json";

/// Why the page can't be made.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The results of an experiment are invalid.
    #[error("{}: {source}", .path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The error.
        source: Box<ExperimentError>,
    },
    /// The results don't belong on a page, or not on one with the others.
    #[error(transparent)]
    Measured(#[from] MeasuredError),
    /// A file can't be read or written.
    #[error(transparent)]
    File(#[from] LabError),
    /// The report of a long run is invalid.
    #[error(transparent)]
    Chaos(#[from] ChaosPageError),
    /// The results of the comparison are invalid.
    #[error(transparent)]
    Peers(#[from] PeersPageError),
    /// The results of the comparisons with live servers are invalid.
    #[error(transparent)]
    Fidelity(#[from] FidelityError),
    /// A page has no place for its table.
    #[error(
        "{}: there is no table between the lines {:?} and {:?}: put them where it belongs",
        .path.display(), BEGIN.trim(), END.trim()
    )]
    NoPlace {
        /// The file.
        path: PathBuf,
    },
    /// A figure can't be drawn.
    #[error("{0}")]
    Figure(String),
}

/// The pages and their figures: each file's name, relative to the page's folder, and its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    files: BTreeMap<String, String>,
    /// The tables of other pages, by the names of these.
    tables: BTreeMap<&'static str, String>,
}

impl Page {
    /// Makes the page of the experiments from the files `experiment-N.json` in the folder `results`, that of
    /// the long runs from the files in its folder `chaos`, that of the comparison from `peers.json`, and the
    /// table of the comparisons with live servers from the files in its folder `fidelity`.
    ///
    /// # Errors
    ///
    /// [`PageError`]. An experiment without results is no error: the page says that there are none. Without
    /// the folder, or the file, there is no page of long runs, or of the comparison.
    pub fn of(results: &Path) -> Result<Self, PageError> {
        let (mut files, mut machines) = (BTreeMap::new(), OneMachine::default());
        let mut chapters = BTreeMap::new();
        let mut text = head() + &objectives::section(results);
        for experiment in ALL {
            let path = results.join(format!("experiment-{}.json", experiment.number()));
            let record = match fs::read_to_string(&path) {
                Ok(record) => record,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    text += &missing(*experiment);
                    continue;
                }
                Err(source) => {
                    let help = "make it readable, or name another folder with --results";
                    return Err(LabError::File { path, source, help }.into());
                }
            };
            let chapter = experiment
                .chapter(&record)
                .map_err(|source| PageError::Record { path: path.clone(), source: Box::new(source) })?;
            machines.add(&path, &record)?;
            text += &chapter.markdown();
            for figure in &chapter.section.figures {
                files.insert(figure.file(), figure.svg().map_err(PageError::Figure)?);
            }
            chapters.insert(experiment.number(), chapter);
        }
        files.insert(PAGE.to_owned(), text);
        if let Some(text) = chaos::page(&results.join(CHAOS), &mut machines)? {
            files.insert(LONG_RUNS.to_owned(), text);
        }
        let comparison = results.join(COMPARISON);
        if let Some(text) = stored_page(&comparison)? {
            machines.add(&comparison, &fs::read_to_string(&comparison).unwrap_or_default())?;
            files.insert(PEERS.to_owned(), text);
        }
        let mut tables = BTreeMap::from([(GUIDE, questions::table(&chapters))]);
        if let Some(table) = fidelity::table(&results.join(COMPARED))? {
            tables.insert(FIDELITY, table);
        }
        Ok(Self { files, tables })
    }

    /// Writes the page into `folder`, and its tables into the other pages that are there; returns the files.
    ///
    /// # Errors
    ///
    /// [`PageError::File`] and [`PageError::NoPlace`].
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, PageError> {
        let write = |(name, text): (&String, &String)| {
            let path = folder.join(name);
            keep_text(text, &path)?;
            Ok(path)
        };
        let mut written: Vec<_> = self.files.iter().map(write).collect::<Result<_, PageError>>()?;
        for (name, table) in &self.tables {
            let path = folder.join(name);
            if let Ok(text) = fs::read_to_string(&path) {
                let text =
                    with_table(&text, table).ok_or_else(|| PageError::NoPlace { path: path.clone() })?;
                keep_text(&text, &path)?;
                written.push(path);
            }
        }
        Ok(written)
    }

    /// Returns the files in `folder` that differ from this page, and the other pages there whose tables do.
    pub fn differing(&self, folder: &Path) -> Vec<PathBuf> {
        let is_other = |(name, text): (&String, &String)| {
            let path = folder.join(name);
            let same = fs::read_to_string(&path).is_ok_and(|there| there == *text);
            (!same).then_some(path)
        };
        let mut differing: Vec<_> = self.files.iter().filter_map(is_other).collect();
        let has_other = |(name, table): (&&str, &String)| {
            let path = folder.join(name);
            let text = fs::read_to_string(&path).ok()?;
            (with_table(&text, table).as_ref() != Some(&text)).then_some(path)
        };
        differing.extend(self.tables.iter().filter_map(has_other));
        differing
    }
}

/// Returns a page with this table in its place; `None` if it has no place for it.
fn with_table(page: &str, table: &str) -> Option<String> {
    let (head, rest) = page.split_once(BEGIN)?;
    let (_, tail) = rest.split_once(END)?;
    Some(format!("{head}{BEGIN}\n{table}\n{END}{tail}"))
}

fn head() -> String {
    format!(
        "# The experiments on live servers

`cargo run --release -p fencepost-real -- report` makes this page from the raw results in `real/results/`, and `report --check`
compares the two. Each experiment is one command, and its configuration is a file in `real/experiments/`. A sentence with
a tick is an expectation that the numbers confirm. Where they do not, the page says so, and the command exits with 1.

Unless a chapter says otherwise, the servers are one Redis {}, five of them for Redlock, etcd with three
members, and one ZooKeeper. Each member of etcd, and ZooKeeper, syncs its log of writes to the disk before it answers.
They run on one machine with their clients, and speak over loopback. All results of this page and of
[the comparison](peers.md) are of the same machine, measured at a load average of at most 1, and of the same versions of
the servers: `report` refuses others.
",
        PERSISTENCE.words()
    )
}

fn missing(experiment: &dyn Registered) -> String {
    let (number, title, question) = (experiment.number(), experiment.title(), experiment.question());
    format!(
        "\n## {number}. {title}\n\n{question}\n\nNo results yet: \
         `cargo run --release -p fencepost-real -- experiment {number}`.\n"
    )
}
