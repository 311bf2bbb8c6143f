//! The result of a run, as its process sends it to the program.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use dlock_runtime::ProbeKind;
use history::text::Names;
use history::{History, Name, Verdict};
use serde::{Deserialize, Deserializer, Serialize};

use crate::probes::{self, Probes};
use crate::sim::check::Finding;
use crate::sim::error::RunError;
use crate::sim::report::{Report, Served};
use crate::sim::steps::Step;
use crate::world::escape::Outside;
use crate::world::probes::{Count, Failed, Hit, Hits, Own};

/// A text of the program's own. (Of a field of the type `&str`, serde borrows.)
type Static = &'static str;

#[derive(Serialize, Deserialize)]
enum Sent {
    Report(Box<SentReport>),
    Error(#[serde(with = "SentError")] RunError),
    /// The run did not begin, for a reason of the machine.
    Machine(String),
}

/// A [`Report`] without messages.
#[derive(Serialize, Deserialize)]
struct SentReport {
    seed: u64,
    verdicts: Vec<Verdict>,
    findings: Vec<Finding>,
    hash: u64,
    /// Lines of JSON.
    events: String,
    names: Vec<String>,
    servers: Vec<Name>,
    simulated: Duration,
    commands: u64,
    sections: BTreeSet<String>,
    look_ups: BTreeSet<(String, String)>,
    served: Vec<Served>,
    struck: Vec<bool>,
    steps: Vec<Step>,
    probes: SentProbes,
}

#[derive(Serialize, Deserialize)]
struct SentProbes {
    log: Vec<Hit>,
    /// By their numbers among those that the program declares.
    declared: Vec<(usize, Count)>,
    /// Name, kind, file, line and count.
    own: Vec<(String, u8, String, u32, Count)>,
    failed: Vec<Failed>,
}

/// The errors of code in a run.
#[derive(Serialize, Deserialize)]
#[serde(remote = "RunError")]
enum SentError {
    #[serde(skip)]
    Invalid(crate::field_path::Invalid),
    #[serde(skip)]
    Thread(io::Error),
    Panicked {
        seed: u64,
        process: String,
        location: String,
        message: String,
        trace: String,
    },
    ForeignRuntime {
        seed: u64,
        process: String,
        location: String,
        trace: String,
    },
    Escaped {
        seed: u64,
        process: String,
        location: String,
        #[serde(deserialize_with = "kept")]
        call: Static,
        #[serde(with = "SentOutside")]
        outside: Outside,
        trace: String,
    },
    Stalled {
        seed: u64,
        process: String,
        location: String,
        turns: u64,
        trace: String,
    },
    Hung {
        seed: u64,
        limit: Duration,
        process: String,
        location: String,
    },
    StdTime,
    Differs {
        seed: u64,
        difference: String,
    },
    Unfinished {
        seed: u64,
        limit: Duration,
        trace: String,
    },
    Vocabulary(String),
    Unrecorded,
    Died {
        seed: u64,
        end: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Outside")]
enum SentOutside {
    Network,
    Lookup,
    File,
    Thread,
    Program,
    Sleep,
    Unsupported {
        #[serde(deserialize_with = "kept")]
        instead: Static,
    },
}

/// The kinds of probes, by their numbers.
const KINDS: [ProbeKind; 4] =
    [ProbeKind::Sometimes, ProbeKind::Always, ProbeKind::Reached, ProbeKind::Closest];

/// Returns the result as bytes.
pub(super) fn write(result: Result<Report, RunError>) -> Vec<u8> {
    let sent = match result {
        Ok(report) => Sent::Report(Box::new(SentReport::of(&report))),
        Err(error @ (RunError::Invalid(_) | RunError::Thread(_))) => Sent::Machine(error.to_string()),
        Err(error) => Sent::Error(error),
    };
    // Texts and numbers can be written.
    serde_json::to_vec(&sent).unwrap_or_default()
}

/// Returns the result that these bytes hold; `None` if they are no whole result.
pub(super) fn read(bytes: &[u8]) -> Option<Result<Report, RunError>> {
    match serde_json::from_slice(bytes).ok()? {
        Sent::Report(report) => report.report().map(Ok),
        Sent::Error(error) => Some(Err(error)),
        Sent::Machine(problem) => Some(Err(io::Error::other(problem).into())),
    }
}

impl SentReport {
    fn of(report: &Report) -> Self {
        let mut events = Vec::new();
        for event in &report.events {
            // A vector takes all.
            let _ = event.write_json(&mut events);
        }
        Self {
            seed: report.seed,
            verdicts: report.verdicts.clone(),
            findings: report.findings.clone(),
            hash: report.hash,
            events: String::from_utf8_lossy(&events).into_owned(),
            names: report.names.iter().map(|(_, name)| name.to_owned()).collect(),
            servers: report.servers.clone(),
            simulated: report.simulated,
            commands: report.commands,
            sections: report.sections.clone(),
            look_ups: report.look_ups.clone(),
            served: report.served.clone(),
            struck: report.struck.clone(),
            steps: report.steps.clone(),
            probes: SentProbes::of(report.probes.hits()),
        }
    }

    fn report(self) -> Option<Report> {
        Some(Report {
            seed: self.seed,
            verdicts: self.verdicts,
            findings: self.findings,
            hash: self.hash,
            events: History::parse_json_lines(self.events.as_bytes()).ok()?.events,
            names: Names::new(self.names.iter().map(String::as_str)),
            servers: self.servers,
            simulated: self.simulated,
            commands: self.commands,
            sections: self.sections,
            look_ups: self.look_ups,
            served: self.served,
            struck: self.struck,
            steps: self.steps,
            messages: Vec::new(),
            capture: None,
            probes: Probes::new(self.probes.hits()?),
        })
    }
}

impl SentProbes {
    fn of(hits: &Hits) -> Self {
        let number = |kind: ProbeKind| KINDS.iter().position(|known| *known == kind).unwrap_or_default();
        let declared = hits.declared.iter().filter_map(|(probe, count)| {
            let place = probes::declared().position(|known| std::ptr::eq(known, *probe))?;
            Some((place, *count))
        });
        let own = hits.own.iter().map(|((name, kind), own)| {
            let (file, line) = own.place;
            (name.clone(), number(*kind) as u8, file.to_owned(), line, own.count)
        });
        Self {
            log: hits.log.clone(),
            declared: declared.collect(),
            own: own.collect(),
            failed: hits.failed.clone(),
        }
    }

    fn hits(self) -> Option<Hits> {
        let probes: Vec<_> = probes::declared().collect();
        let declared = self.declared.into_iter().map(|(place, count)| Some((*probes.get(place)?, count)));
        let mut own = BTreeMap::new();
        for (name, kind, file, line, count) in self.own {
            let kind = *KINDS.get(usize::from(kind))?;
            own.insert((name, kind), Own { place: (keep(file), line), count });
        }
        Some(Hits { log: self.log, declared: declared.collect::<Option<_>>()?, own, failed: self.failed })
    }
}

/// Keeps a text for the rest of the program. Each is kept once: there are as many as the program contains.
fn keep(text: String) -> &'static str {
    static KEPT: std::sync::Mutex<BTreeSet<&'static str>> = std::sync::Mutex::new(BTreeSet::new());
    let mut kept = crate::world::lock(&KEPT);
    if let Some(known) = kept.get(text.as_str()) {
        return known;
    }
    let text: &'static str = Box::leak(text.into_boxed_str());
    kept.insert(text);
    text
}

fn kept<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Static, D::Error> {
    String::deserialize(deserializer).map(keep)
}
