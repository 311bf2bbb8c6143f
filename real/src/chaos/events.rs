//! Records the faults of a run as events of its history, beside the events of its processes.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use history::{Effect, Event, Kind, Name};

use super::fault::Fault;
use crate::clock::machine_time;

/// The history of the faults.
pub(super) struct Events {
    file: File,
    path: PathBuf,
}

impl Events {
    /// Creates the history at `path`.
    pub(super) fn new(path: PathBuf) -> io::Result<Self> {
        Ok(Self { file: File::create(&path)?, path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Records that the plan's fault `number` strikes `process`.
    pub(super) fn applied(
        &self,
        number: u64,
        fault: Fault,
        (process, effect): &(String, Effect),
    ) -> io::Result<()> {
        let effect = effect.clone();
        let (verb, detail) = (verb(fault), Name::from(fault.to_string().as_str()));
        // The time of its end is not known: a run that falls behind heals later.
        self.note(process, Kind::FaultApplied { fault: number, verb, effect, until: None, detail })
    }

    /// Records that the fault of `process` is healed.
    pub(super) fn healed(
        &self,
        number: u64,
        fault: Fault,
        (process, effect): &(String, Effect),
    ) -> io::Result<()> {
        let effect = effect.clone();
        let detail = Name::from(format!("over: {fault}").as_str());
        self.note(process, Kind::FaultHealed { fault: number, verb: verb(fault), effect, detail })
    }

    /// Records that a process was killed.
    pub(super) fn crashed(&self, process: &str) -> io::Result<()> {
        self.note(process, Kind::ProcessCrashed { detail: Some("killed".into()) })
    }

    /// Records that a lock server was killed; `detail` says whether its data is lost.
    pub(super) fn stopped(&self, server: &str, detail: &str) -> io::Result<()> {
        self.note(server, Kind::ServerStopped { detail: Some(detail.into()) })
    }

    /// Records that a lock server restarted.
    pub(super) fn started(&self, server: &str) -> io::Result<()> {
        self.note(server, Kind::ServerStarted { detail: None })
    }

    /// Records that a replica was promoted.
    pub(super) fn promoted(&self, server: &str, detail: &str) -> io::Result<()> {
        self.note(server, Kind::ServerPromoted { detail: Some(detail.into()) })
    }

    fn note(&self, process: &str, kind: Kind) -> io::Result<()> {
        let detail = match &kind {
            Kind::FaultApplied { detail, .. } | Kind::FaultHealed { detail, .. } => Some(detail),
            Kind::ProcessCrashed { detail }
            | Kind::ServerStopped { detail }
            | Kind::ServerStarted { detail }
            | Kind::ServerPromoted { detail } => detail.as_ref(),
            _ => None,
        };
        let (name, detail) = (kind.name().as_str(), detail.map(Name::as_str));
        tracing::info!(target: "fault", event = name, process, detail);
        let event = Event { at: machine_time(), process: Name::from(process), kind };
        event.write_json(io::BufWriter::new(&self.file))
    }
}

/// Returns the verb of the fault in the history: the name of its kind.
fn verb(fault: Fault) -> Name {
    Name::from(fault.kind().name().as_str())
}
