//! What is done to a run, as events of its history, beside those of its processes.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use resource::audit::{Event, Kind, Name};

use super::fault::Fault;
use crate::clock::machine_time;

/// The history of the faults.
pub(super) struct Events {
    file: File,
    path: PathBuf,
}

impl Events {
    /// A new one at `path`.
    pub(super) fn new(path: PathBuf) -> io::Result<Self> {
        Ok(Self { file: File::create(&path)?, path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes that the fault numbered `number` in the plan has struck.
    pub(super) fn applied(&self, number: u64, fault: Fault) -> io::Result<()> {
        let (verb, detail) = (verb(fault), Name::from(fault.to_string().as_str()));
        self.note("chaos", Kind::FaultApplied { fault: number, verb, detail })
    }

    /// Notes that it is over.
    pub(super) fn healed(&self, number: u64, fault: Fault) -> io::Result<()> {
        let (verb, detail) = (verb(fault), Name::from(fault.to_string().as_str()));
        self.note("chaos", Kind::FaultHealed { fault: number, verb, detail })
    }

    /// That process was killed.
    pub(super) fn crashed(&self, process: &str) -> io::Result<()> {
        self.note(process, Kind::ProcessCrashed { detail: Some("killed".into()) })
    }

    /// A lock server was killed; `detail` says if its data is lost.
    pub(super) fn stopped(&self, server: &str, detail: &str) -> io::Result<()> {
        self.note(server, Kind::ServerStopped { detail: Some(detail.into()) })
    }

    /// A lock server came back.
    pub(super) fn started(&self, server: &str) -> io::Result<()> {
        self.note(server, Kind::ServerStarted { detail: None })
    }

    /// A replica took over.
    pub(super) fn promoted(&self, server: &str, detail: &str) -> io::Result<()> {
        self.note(server, Kind::ServerPromoted { detail: Some(detail.into()) })
    }

    fn note(&self, process: &str, kind: Kind) -> io::Result<()> {
        let event = Event { at: machine_time(), process: Name::from(process), kind };
        event.write_json(io::BufWriter::new(&self.file))
    }
}

/// What a fault does, in a word: the name of its kind.
fn verb(fault: Fault) -> Name {
    Name::from(fault.kind().name().as_str())
}
