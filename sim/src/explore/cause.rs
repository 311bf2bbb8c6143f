//! The cause of a failed run: what two runs must have in common to show the same mistake.

use std::collections::BTreeSet;
use std::fmt;

use history::{EventName, Name, Verdict, VerdictKind};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::faults::Role;
use crate::sim::{Finding, Report, RunError, Schedule, Sim, Subject};

/// The cause of a failure: the broken promise, its key, the roles of the processes, and the event. Shrinking
/// keeps the cause, and failures with equal causes are duplicates.
///
/// It has no names of processes: processes that do the same are interchangeable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cause {
    /// The promise that was broken.
    pub broken: Broken,
    /// The lock or the resource, if the promise is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The processes that take part. If one harmed another, the one that did the harm comes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parties: Vec<Party>,
    /// The event that a correct guard would have refused; `None` if the failure is that something never
    /// happened.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_event",
        deserialize_with = "read_event"
    )]
    pub event: Option<EventName>,
}

/// The words of an `about` before the cause for which its schedule is kept.
const FOUND_AS: &str = "Found as ";

impl Cause {
    /// Returns whether `about` says that its schedule is kept for this cause.
    pub fn is_named_in(&self, about: &str) -> bool {
        about.ends_with(&self.named())
    }

    /// Returns `about` with this cause in place of the one that it names. A run may show several causes, and
    /// their order may change when the schedule shrinks.
    pub fn name_in(&self, about: &str) -> String {
        let before = about.rfind(FOUND_AS).map_or(about, |at| &about[..at]).trim_end();
        if before.is_empty() { self.named() } else { format!("{before} {}", self.named()) }
    }

    fn named(&self) -> String {
        format!("{FOUND_AS}{self}.")
    }
}

/// A promise that a run broke.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Broken {
    /// The audit gave this verdict.
    Verdict(VerdictKind),
    /// The check of this name did not hold.
    Check(String),
    /// Code in the world panicked, at this file and line.
    Panic(String),
    /// Code in the world made a call that would have left the simulation, at this file and line.
    Escape(String),
}

/// A process that takes part in a failure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Party {
    /// Its role; `None` if the history knows a name that the world does not.
    pub role: Option<Role>,
    /// Its task ([`Subject::task`]), if not all processes of its role have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Its number, from 1, among the parties with its role and task.
    pub number: usize,
}

/// The causes that one run shows, each once, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// The violations: causes that nothing in the schedule explains.
    pub violations: Vec<Cause>,
    /// The verdicts that the schedule itself [excuses](Subject::excused).
    pub excused: Vec<Cause>,
}

impl Causes {
    /// Finds the causes that a run of the schedule shows.
    pub fn of<S: Subject>(
        subject: &S,
        schedule: &Schedule<S::Options>,
        run: &Result<Report, RunError>,
    ) -> Self {
        match run {
            Ok(report) => Self::of_report(subject, schedule, report),
            Err(error) => {
                let panic = Self::of_panic(subject, schedule, error);
                Self { violations: panic.into_iter().collect(), excused: Vec::new() }
            }
        }
    }

    /// Returns the violation that the schedule's `about` names, or else the first.
    pub(in crate::explore) fn violation_of(self, about: &str) -> Option<Cause> {
        let named = self.violations.iter().position(|cause| cause.is_named_in(about));
        self.violations.into_iter().nth(named.unwrap_or(0))
    }

    /// Returns the cause of a run of the schedule that panicked; `None` for another error.
    pub(in crate::explore) fn of_panic<S: Subject>(
        subject: &S,
        schedule: &Schedule<S::Options>,
        error: &RunError,
    ) -> Option<Cause> {
        Cast::of(subject, schedule).of_panic(error)
    }

    /// Finds the causes that the report of a run of the schedule shows.
    pub fn of_report<S: Subject>(subject: &S, schedule: &Schedule<S::Options>, report: &Report) -> Self {
        if report.verdicts.is_empty() && report.findings.is_empty() {
            return Self::default();
        }
        Cast::of(subject, schedule).judge(report, &subject.excused(schedule))
    }
}

/// The processes of a world, for the parties of a cause.
struct Cast<'a, S: Subject> {
    subject: &'a S,
    schedule: &'a Schedule<S::Options>,
    sim: Sim,
}

impl<'a, S: Subject> Cast<'a, S> {
    fn of(subject: &'a S, schedule: &'a Schedule<S::Options>) -> Self {
        let mut sim = Sim::new(schedule.seed);
        // The run has shown that a world can be built of the options.
        let _ = subject.build(&schedule.options, &mut sim);
        Self { subject, schedule, sim }
    }

    fn judge(&self, report: &Report, excused: &BTreeSet<VerdictKind>) -> Causes {
        let mut causes = Causes::default();
        for verdict in &report.verdicts {
            let cause = self.of_verdict(Broken::Verdict(verdict.kind), verdict, report);
            let list =
                if excused.contains(&verdict.kind) { &mut causes.excused } else { &mut causes.violations };
            add(list, cause);
        }
        for finding in &report.findings {
            add(&mut causes.violations, self.of_finding(finding, report));
        }
        causes
    }

    fn of_verdict(&self, broken: Broken, verdict: &Verdict, report: &Report) -> Cause {
        let processes: Vec<&str> = verdict.processes.iter().map(Name::as_str).collect();
        Cause {
            broken,
            key: Some(report.names.key(&verdict.key).to_owned()),
            parties: self.parties(&processes),
            event: verdict.event.and_then(|event| report.events.get(event)).map(|event| event.kind.name()),
        }
    }

    fn of_finding(&self, finding: &Finding, report: &Report) -> Cause {
        let broken = Broken::Check(finding.check.clone());
        match verdict_of(finding, report) {
            Some(verdict) => self.of_verdict(broken, verdict, report),
            None => Cause { broken, key: None, parties: Vec::new(), event: None },
        }
    }

    fn of_panic(&self, error: &RunError) -> Option<Cause> {
        let (process, broken) = match error {
            RunError::Panicked { process, location, .. }
            | RunError::ForeignRuntime { process, location, .. } => {
                (process, Broken::Panic(location.clone()))
            }
            RunError::Escaped { process, location, .. } => (process, Broken::Escape(location.clone())),
            _ => return None,
        };
        let names = self.sim.names().iter().map(String::as_str);
        let speaker: Vec<&str> = names.filter(|name| *process == format!("process `{name}`")).collect();
        Some(Cause { broken, key: None, parties: self.parties(&speaker), event: None })
    }

    fn parties(&self, processes: &[&str]) -> Vec<Party> {
        let mut known: Vec<(&str, Party)> = Vec::new();
        for process in processes {
            if known.iter().any(|(name, _)| name == process) {
                continue;
            }
            let (role, task) = (self.sim.role(process), self.subject.task(&self.schedule.options, process));
            let is_alike = |(_, other): &&(&str, Party)| other.role == role && other.task == task;
            let number = 1 + known.iter().filter(is_alike).count();
            known.push((process, Party { role, task, number }));
        }
        let party = |process: &&str| known.iter().find(|(name, _)| name == process).map(|(_, party)| party);
        processes.iter().filter_map(party).cloned().collect()
    }
}

fn add(causes: &mut Vec<Cause>, cause: Cause) {
    if !causes.contains(&cause) {
        causes.push(cause);
    }
}

/// Returns the verdict that a check forbids and the run has.
fn verdict_of<'a>(finding: &Finding, report: &'a Report) -> Option<&'a Verdict> {
    report.verdicts.iter().find(|verdict| Some(verdict.kind) == finding.forbids)
}

/// Returns the verdict of `report` that has the cause, if the cause is about a verdict.
pub(super) fn verdict_with<'a, S: Subject>(
    cause: &Cause,
    subject: &S,
    schedule: &Schedule<S::Options>,
    report: &'a Report,
) -> Option<&'a Verdict> {
    let cast = Cast::of(subject, schedule);
    let is_meant = |verdict: &&Verdict| cast.of_verdict(cause.broken.clone(), verdict, report) == *cause;
    match &cause.broken {
        Broken::Verdict(kind) => {
            report.verdicts.iter().filter(|verdict| verdict.kind == *kind).find(is_meant)
        }
        Broken::Check(name) => {
            let finding = report.findings.iter().find(|finding| finding.check == *name)?;
            verdict_of(finding, report).filter(is_meant)
        }
        Broken::Panic(_) | Broken::Escape(_) => None,
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.broken.fmt(f)?;
        if let Some(key) = &self.key {
            write!(f, " on {key}")?;
        }
        let parties: Vec<String> = self.parties.iter().map(ToString::to_string).collect();
        if !parties.is_empty() {
            write!(f, ", {}", parties.join(" and "))?;
        }
        match self.event {
            Some(event) => write!(f, ", at {}", event.as_str()),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verdict(kind) => kind.fmt(f),
            Self::Check(name) => write!(f, "check `{name}`"),
            Self::Panic(location) => write!(f, "panic at {location}"),
            Self::Escape(location) => write!(f, "call out of the simulation at {location}"),
        }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role {
            Some(role) => role.fmt(f)?,
            None => f.write_str("somebody")?,
        }
        write!(f, " {}", self.number)?;
        match &self.task {
            Some(task) => write!(f, " ({task})"),
            None => Ok(()),
        }
    }
}

fn write_event<S: Serializer>(event: &Option<EventName>, serializer: S) -> Result<S::Ok, S::Error> {
    event.map(EventName::as_str).serialize(serializer)
}

fn read_event<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<EventName>, D::Error> {
    let Some(name) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let event = EventName::parse(&name);
    event.map(Some).ok_or_else(|| serde::de::Error::custom(format!("unknown event `{name}`")))
}
