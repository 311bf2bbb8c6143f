//! What an experiment is: a question, a configuration, a run, and what its findings say.
//!
//! [`Experiment`] is written for each; [`Registered`] is the same for whoever knows only its number.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ExperimentError;
use super::configuration::{Settings, load};
use crate::lab::Machine;
use crate::report::{Chapter, Section};

/// An experiment of the lab.
pub trait Experiment: Sync {
    /// What it is run with: all that its file in `real/experiments/` says. Deny unknown fields.
    type Configuration: Serialize + DeserializeOwned;
    /// What it found, raw: all that its section of the report is made from.
    type Findings: Serialize + DeserializeOwned;

    /// Its number in the lab's list.
    const NUMBER: u32;
    /// Its name.
    const TITLE: &'static str;
    /// What it answers, as one question.
    const QUESTION: &'static str;
    /// The committed configuration, as TOML.
    const COMMITTED: &'static str;
    /// What to know before one reads the findings, as Markdown for the page: arguments, and no numbers.
    const BACKGROUND: &'static str = "";

    /// Carries it out, on servers of its own.
    ///
    /// # Errors
    ///
    /// [`ExperimentError`] if it could not be carried out; a result that was not expected is none.
    fn run(configuration: &Self::Configuration) -> Result<Self::Findings, ExperimentError>;

    /// What the findings say: expectations with whether each holds, tables, figures. Made from the findings alone, so that
    /// it can be made again from the file of the results.
    fn section(configuration: &Self::Configuration, findings: &Self::Findings) -> Section;
}

/// The file of an experiment's results.
#[derive(Serialize, Deserialize)]
struct Record<C, F> {
    experiment: u32,
    title: String,
    /// The command that gives such results.
    command: String,
    machine: Machine,
    configuration: C,
    as_expected: bool,
    findings: F,
}

/// A run that is over.
#[derive(Debug)]
pub struct Run {
    /// The file of its results: JSON.
    pub record: String,
    /// The same for people.
    pub chapter: Chapter,
}

/// An experiment by its number: what every [`Experiment`] is.
pub trait Registered: Sync {
    /// Its number in the lab's list.
    fn number(&self) -> u32;
    /// Its name.
    fn title(&self) -> &'static str;
    /// What it answers.
    fn question(&self) -> &'static str;
    /// Its committed configuration.
    fn committed(&self) -> &'static str;

    /// Carries it out with `settings`, as told by `command`.
    ///
    /// # Errors
    ///
    /// [`ExperimentError`].
    fn run(&self, settings: &Settings, command: String) -> Result<Run, ExperimentError>;

    /// What the file of its results, `record`, says.
    ///
    /// # Errors
    ///
    /// [`ExperimentError::Results`].
    fn chapter(&self, record: &str) -> Result<Chapter, ExperimentError>;
}

impl<E: Experiment> Registered for E {
    fn number(&self) -> u32 {
        E::NUMBER
    }

    fn title(&self) -> &'static str {
        E::TITLE
    }

    fn question(&self) -> &'static str {
        E::QUESTION
    }

    fn committed(&self) -> &'static str {
        E::COMMITTED
    }

    fn run(&self, settings: &Settings, command: String) -> Result<Run, ExperimentError> {
        let configuration = load::<E::Configuration>(E::NUMBER, E::COMMITTED, settings)?;
        let machine = Machine::this();
        let findings = E::run(&configuration)?;
        let as_expected = E::section(&configuration, &findings).as_expected();
        let title = E::TITLE.to_owned();
        let record =
            Record { experiment: E::NUMBER, title, command, machine, configuration, as_expected, findings };
        let failed = |source| ExperimentError::Results { number: E::NUMBER, source };
        let text = serde_json::to_string_pretty(&record).map_err(failed)? + "\n";
        Ok(Run { record: text, chapter: chapter::<E>(record) })
    }

    fn chapter(&self, record: &str) -> Result<Chapter, ExperimentError> {
        let record = serde_json::from_str(record)
            .map_err(|source| ExperimentError::Results { number: E::NUMBER, source })?;
        Ok(chapter::<E>(record))
    }
}

/// `as_expected` of the record is for other readers: here it is made anew from the findings.
fn chapter<E: Experiment>(record: Record<E::Configuration, E::Findings>) -> Chapter {
    let section = E::section(&record.configuration, &record.findings);
    Chapter {
        number: E::NUMBER,
        title: E::TITLE,
        question: E::QUESTION,
        background: E::BACKGROUND,
        command: record.command,
        // What was read as TOML can be written as such.
        configuration: toml::to_string(&record.configuration).unwrap_or_default(),
        machine: record.machine.to_string(),
        section,
    }
}
