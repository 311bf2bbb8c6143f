//! The frame of an experiment: its question, configuration, run and findings.
//!
//! Each experiment implements [`Experiment`]; [`Registered`] is the same without the types, for use by
//! number.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ExperimentError;
use super::configuration::{Settings, load};
use crate::lab::{Machine, Software};
use crate::report::{Chapter, Section};

/// An experiment of the lab.
pub trait Experiment: Sync {
    /// The configuration, as read from its file in `real/experiments/`. Deny unknown fields.
    type Configuration: Serialize + DeserializeOwned;
    /// The raw findings, from which its section of the report is made.
    type Findings: Serialize + DeserializeOwned;

    /// Its number in the lab's list.
    const NUMBER: u32;
    /// Its name.
    const TITLE: &'static str;
    /// Its question, in one sentence.
    const QUESTION: &'static str;
    /// The committed configuration, as TOML.
    const COMMITTED: &'static str;
    /// An introduction to the findings, as Markdown for the page: arguments, without figures.
    const BACKGROUND: &'static str = "";

    /// Runs it on servers of its own.
    ///
    /// # Errors
    ///
    /// [`ExperimentError`] if it could not be carried out. An unexpected result is not an error.
    fn run(configuration: &Self::Configuration) -> Result<Self::Findings, ExperimentError>;

    /// Makes its section of the report: expectations and whether each holds, tables, figures. It uses the
    /// findings alone, so that the report can be made again from the file of the results.
    fn section(configuration: &Self::Configuration, findings: &Self::Findings) -> Section;
}

/// The file of an experiment's results.
#[derive(Serialize, Deserialize)]
struct Record<C, F> {
    experiment: u32,
    title: String,
    /// The command that repeats the run.
    command: String,
    machine: Machine,
    software: Software,
    configuration: C,
    as_expected: bool,
    findings: F,
}

/// A finished run.
#[derive(Debug)]
pub struct Run {
    /// The contents of its results file: JSON.
    pub record: String,
    /// The same as a chapter of the report.
    pub chapter: Chapter,
}

/// An [`Experiment`] without its types, for use by number.
pub trait Registered: Sync {
    /// Its number in the lab's list.
    fn number(&self) -> u32;
    /// Its name.
    fn title(&self) -> &'static str;
    /// Its question.
    fn question(&self) -> &'static str;
    /// Its committed configuration.
    fn committed(&self) -> &'static str;

    /// Runs it with `settings`; `command` is recorded in the results.
    ///
    /// # Errors
    ///
    /// [`ExperimentError`].
    fn run(&self, settings: &Settings, command: String) -> Result<Run, ExperimentError>;

    /// Makes the chapter from the results file `record`.
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
        let (machine, software) = (Machine::this(), Software::this());
        let findings = E::run(&configuration)?;
        let as_expected = E::section(&configuration, &findings).as_expected();
        let title = E::TITLE.to_owned();
        let experiment = E::NUMBER;
        let record =
            Record { experiment, title, command, machine, software, configuration, as_expected, findings };
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

/// Ignores `as_expected` of the record, which is for other readers: it is computed from the findings.
fn chapter<E: Experiment>(record: Record<E::Configuration, E::Findings>) -> Chapter {
    let section = E::section(&record.configuration, &record.findings);
    Chapter {
        number: E::NUMBER,
        title: E::TITLE,
        question: E::QUESTION,
        background: E::BACKGROUND,
        command: record.command,
        // A configuration read from TOML can be written as TOML.
        configuration: toml::to_string(&record.configuration).unwrap_or_default(),
        machine: record.machine.to_string(),
        software: record.software.to_string(),
        section,
    }
}
