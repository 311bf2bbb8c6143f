//! A failure schedule: the settings of one run of a subject, as data and as TOML.
//!
//! The seed, the limit, the network, the faults and the expectations are common to all subjects; the rest of
//! the file is the subject's own options. Reading is strict: an entry without effect is never ignored, but is
//! an error with its line.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;

use history::Span;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, ValueDeserializer};

use super::builder::Sim;
use super::core::CorePhase;
use super::expect::{Expect, Mismatch};
use super::rekey::Rekey;
use super::report::Report;
use crate::faults::{Fault, Faults, RawFault};
use crate::field_path::{FieldPath, Invalid, line_at};

/// A schedule file that can't be used. Prints as `file:line: problem`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The file can't be read.
    #[error("{file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The reason.
        source: io::Error,
    },
    /// The file is no TOML or no schedule, or the schedule contradicts itself.
    #[error("{file}:{line}: {problem}")]
    Invalid {
        /// The file, or the name under which its text was given.
        file: String,
        /// The line of the value at fault, from 1.
        line: usize,
        /// The problem, and the remedy if it is known.
        problem: String,
    },
}

impl ScheduleError {
    /// Returns the error for the file with this name and text.
    pub(super) fn of(file: &str, text: &str, error: &Invalid) -> Self {
        Self::Invalid { file: file.into(), line: error.path.line(text), problem: error.problem.clone() }
    }
}

/// The links between processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// The one-way latency of a segment on every link.
    pub latency: Latency,
}

/// A range of times, both ends included. Default 1 ms to 4 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// The shortest.
    pub min: Span,
    /// The longest.
    pub max: Span,
}

impl Default for Latency {
    fn default() -> Self {
        Self { min: Span::from_millis(1), max: Span::from_millis(4) }
    }
}

/// The settings of one run of a subject. The same schedule and the same code give the same run.
///
/// # Example
///
/// ```
/// # mod overlap { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/overlap.rs")); }
/// # use overlap::turns_by_clock;
/// let text = r#"
/// about = "a pause of a in its section lets b in"
/// [[fault]]
/// when = { process = "a", after = "inside" }
/// what = { pause = "a", for = "1s" }
/// "#;
/// let schedule = sim::sim::parse(&turns_by_clock, "pause.toml", text)?;
/// let report = sim::sim::run(&turns_by_clock, &schedule)?;
/// assert_eq!(report.findings[0].check, "one at a time");
/// assert_eq!(sim::sim::parse(&turns_by_clock, "again.toml", &schedule.to_toml())?, schedule);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule<O> {
    /// Its purpose, for a reader who has never seen it.
    pub about: String,
    /// The seed of all randomness in its runs: latencies, owner tokens, backoff. Default 0.
    pub seed: u64,
    /// Later seeds, in the order of time. Default none.
    pub rekey: Vec<Rekey>,
    /// The simulated time at which a run ends at the latest. Default 60 s.
    pub limit: Span,
    /// The links between processes.
    pub network: Network,
    /// The faults.
    pub faults: Vec<Fault>,
    /// The phase in which all faults end and some processes stay broken for good. Default: none, faults end
    /// by themselves.
    pub core: Option<CorePhase>,
    /// The expected outcome of its runs.
    pub expect: Expect,
    /// The subject's own part of the file.
    pub options: O,
}

/// The part of a schedule file that every subject has.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shared {
    #[serde(default)]
    about: String,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    rekey: Vec<Rekey>,
    #[serde(default = "default_limit")]
    limit: Span,
    #[serde(default)]
    network: Network,
    #[serde(default)]
    core: Option<CorePhase>,
    #[serde(default)]
    expect: Expect,
}

/// The keys of [`Shared`], and the key of the faults, which are read against a table.
const SHARED: [&str; 7] = ["about", "seed", "rekey", "limit", "network", "core", "expect"];
const FAULT: &str = "fault";

fn default_limit() -> Span {
    Span::from_secs(60)
}

impl<O> Schedule<O> {
    /// Returns a schedule with these options, seed 0, no faults, and defaults for all else.
    pub fn new(about: &str, options: O) -> Self {
        Self {
            about: about.to_owned(),
            seed: 0,
            rekey: Vec::new(),
            limit: default_limit(),
            network: Network::default(),
            faults: Vec::new(),
            core: None,
            expect: Expect::default(),
            options,
        }
    }

    /// Returns the schedule of a world that was built from these options: its seed, limit, network,
    /// faults and core phase.
    pub fn of(sim: &Sim, options: O) -> Self {
        Self {
            seed: sim.seed,
            rekey: sim.rekey.clone(),
            limit: Span(sim.limit),
            network: Network { latency: Latency { min: Span(sim.latency.0), max: Span(sim.latency.1) } },
            faults: sim.faults.clone(),
            core: sim.core.clone(),
            ..Self::new("", options)
        }
    }

    /// Sets the seeds, the limit, the network, the faults and the core phase of `sim` to those of the
    /// schedule.
    pub fn apply(&self, sim: &mut Sim) {
        let Latency { min, max } = self.network.latency;
        sim.with_seed(self.seed).limit(self.limit.duration()).latency(min.duration(), max.duration());
        sim.rekey.clone_from(&self.rekey);
        sim.faults.clone_from(&self.faults);
        sim.core.clone_from(&self.core);
    }

    /// Compares a run of the arm with the schedule's expectations; returns the differences. Returns `None` if
    /// the schedule expects nothing of the arm and all its faults struck.
    pub fn mismatches(&self, arm: &str, report: &Report) -> Option<Vec<Mismatch>> {
        let demanded = self.expect.of(arm).map(|demanded| demanded.mismatches(report));
        let Some(idle) = self.idle(report) else { return demanded };
        let mut mismatches = demanded.unwrap_or_default();
        mismatches.push(idle);
        Some(mismatches)
    }

    /// Returns a mismatch if some faults never struck: the run then does not show what the schedule
    /// describes.
    fn idle(&self, report: &Report) -> Option<Mismatch> {
        let faults = self.faults.iter().zip(&report.struck).enumerate();
        let idle = faults.filter(|(_, (_, has_struck))| !**has_struck);
        let name = |(number, (fault, _)): (usize, (&Fault, &bool))| {
            format!("fault[{number}] never did ({})", lines(fault).trim_end().replace('\n', ", "))
        };
        let found: Vec<String> = idle.map(name).collect();
        let expected = "each to strike".to_owned();
        (!found.is_empty()).then(|| Mismatch { what: "faults", expected, found: found.join("; ") })
    }

    /// Checks the parts common to all subjects: the later seeds, the limit, the network, the expectations,
    /// and the times of the core phase.
    ///
    /// # Errors
    ///
    /// [`Invalid`] for the first rule that it breaks.
    pub fn check_shared(&self, arms: &[&str]) -> Result<(), Invalid> {
        if let Some(at) = self.rekey.windows(2).position(|pair| pair[0].at >= pair[1].at) {
            let problem = "`rekey` is not in the order of time: sort it by `at`";
            return Err(FieldPath::top("rekey").index(at + 1).key("at").says(problem));
        }
        if self.limit.is_zero() {
            return Err(FieldPath::top("limit").says("`limit` is 0s: give it some time"));
        }
        let Latency { min, max } = self.network.latency;
        if min > max {
            let problem = format!("`latency` is empty: min = {min} is above max = {max}");
            return Err(FieldPath::top("network").key("latency").says(problem));
        }
        let known: BTreeSet<&str> = arms.iter().copied().collect();
        self.expect.check(&known)?;
        self.core.as_ref().map_or(Ok(()), |core| core.check_times(self.limit, &self.faults))
    }
}

impl<O: Serialize + DeserializeOwned> Schedule<O> {
    /// Reads a schedule from TOML text without checking it; [`parse`](super::parse) checks it. Its faults
    /// must be of the kinds in `known`. Errors call it `file`.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Invalid`] with the line at which the text is no TOML or no schedule.
    pub fn read(file: &str, text: &str, known: &Faults) -> Result<Self, ScheduleError> {
        let invalid = |error: &toml::de::Error, problem: String| {
            let offset = error.span().map_or(0, |span| span.start);
            ScheduleError::Invalid { file: file.into(), line: line_at(text, offset), problem }
        };
        let malformed = |error: toml::de::Error| invalid(&error, error.message().to_owned());
        // Each part of the file is read by itself, so that an error keeps its place.
        let table = DeTable::parse(text).map_err(malformed)?;
        let span = table.span();
        let (mut shared, mut own, mut raw) = (DeTable::new(), DeTable::new(), None);
        for (key, value) in table.into_inner() {
            match key.get_ref().as_ref() {
                FAULT => raw = Some(ValueDeserializer::from(value)),
                name if SHARED.contains(&name) => drop(shared.insert(key, value)),
                _ => drop(own.insert(key, value)),
            }
        }
        let own_keys: Vec<_> = own.keys().map(Spanned::span).collect();
        let part = |table| toml::de::Deserializer::from(Spanned::new(span.clone(), table));
        let Shared { about, seed, rekey, limit, network, core, expect } =
            Shared::deserialize(part(shared)).map_err(malformed)?;
        let options = O::deserialize(part(own)).map_err(|error| {
            let mut problem = error.message().to_owned();
            // An unknown key at the top of the file: the options name their own fields only.
            if error.span().is_some_and(|span| own_keys.contains(&span)) {
                let _ = write!(problem, "; every schedule has `{}`, `{FAULT}`", SHARED.join("`, `"));
            }
            invalid(&error, problem)
        })?;
        let raw = raw.map(Vec::<RawFault>::deserialize).transpose().map_err(malformed)?;
        let mut faults = Vec::new();
        for (number, fault) in raw.unwrap_or_default().into_iter().enumerate() {
            let path = FieldPath::top("fault").index(number);
            faults.push(fault.read(&path, known).map_err(|error| ScheduleError::of(file, text, &error))?);
        }
        Ok(Self { about, seed, rekey, limit, network, faults, core, expect, options })
    }

    /// Returns the schedule as TOML, laid out as a person would write it. [`parse`](super::parse) reads it
    /// back as an equal one.
    pub fn to_toml(&self) -> String {
        let options = written(toml::to_string(&self.options));
        let (values, tables) = options.split_at(first_table(&options));
        let mut text = String::new();
        field(&mut text, "about", &self.about);
        if self.seed != 0 {
            field(&mut text, "seed", &self.seed);
        }
        if !self.rekey.is_empty() {
            field(&mut text, "rekey", &self.rekey);
        }
        text.push_str(values.trim_end());
        if !values.trim_end().is_empty() {
            text.push('\n');
        }
        field(&mut text, "limit", &self.limit);
        if self.network != Network::default() {
            text.push_str("\n[network]\n");
            field(&mut text, "latency", &self.network.latency);
        }
        if !tables.is_empty() {
            let _ = write!(text, "\n{}", tables.trim_end());
            text.push('\n');
        }
        for fault in &self.faults {
            let _ = write!(text, "\n[[fault]]\n{}", lines(fault));
        }
        if let Some(core) = &self.core {
            let _ = write!(text, "\n[core]\n{}", written(toml::to_string(core)));
        }
        for (arm, outcome) in self.expect.iter() {
            let _ = write!(text, "\n[expect.{arm}]\n{}", written(toml::to_string(outcome)));
        }
        text
    }
}

/// Returns the two lines of a fault.
fn lines(fault: &Fault) -> String {
    let mut text = String::new();
    field(&mut text, "when", &fault.when);
    field(&mut text, "what", &&*fault.what);
    text
}

/// Returns the offset of the first table in a TOML text, or the text's end if it has none. All values after a
/// table's header belong to that table, so plain values must come before it.
fn first_table(text: &str) -> usize {
    let Ok(table) = DeTable::parse(text) else { return text.len() };
    let line_of = |key: &Spanned<_>| text[..key.span().start].rfind('\n').map_or(0, |newline| newline + 1);
    let headers = table.get_ref().keys().map(line_of).filter(|line| text[*line..].starts_with('['));
    headers.min().unwrap_or(text.len())
}

/// Appends a key and its value on one line.
fn field<T: Serialize + ?Sized>(text: &mut String, key: &str, value: &T) {
    let mut line = String::new();
    written(value.serialize(toml::ser::ValueSerializer::new(&mut line)));
    let _ = writeln!(text, "{key} = {line}");
}

/// Unwraps serialized TOML: a schedule has only strings, numbers, lists and tables, which TOML can express.
#[expect(
    clippy::expect_used,
    reason = "the schema makes it impossible, and no caller could do anything about it"
)]
fn written<T>(result: Result<T, toml::ser::Error>) -> T {
    result.expect("a schedule is TOML")
}
