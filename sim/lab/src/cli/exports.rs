//! Files that show a run to other programs: a packet capture, and a trace for Perfetto.

use std::error::Error;
use std::path::{Path, PathBuf};

use lab::Arm;
use lab::perfetto::{Shown, perfetto};
use sim::sim::Report;
use sim::trace::pcap::pcap;
use sim::{Sim, Span};

use super::written;

/// The files to write of a run.
#[derive(clap::Args)]
pub(crate) struct Exports {
    /// Writes all packets of the run to this file (pcapng), for Wireshark and tshark. If both arms run, the
    /// name of the arm is added to the name of the file.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Writes a trace of the run to this file, for ui.perfetto.dev: a group of tracks for each
    /// process, and its messages as flows. The arm is added as with --pcap.
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
}

impl Exports {
    /// Makes a run record all that the files need.
    pub(crate) fn prepare(&self, sim: &mut Sim) {
        if self.pcap.is_some() || self.perfetto.is_some() {
            sim.record_messages();
        }
    }

    /// Returns the files that [`Exports::write`] writes for these arms.
    pub(crate) fn files(&self, arms: &[Option<Arm>]) -> Vec<PathBuf> {
        let files = self.pcap.iter().chain(&self.perfetto);
        files.flat_map(|file| arms.iter().map(|arm| named(file, *arm))).collect()
    }

    /// Writes the files of a run. `arm` is the arm to be named, if there are several.
    pub(crate) fn write(&self, report: &Report, arm: Option<Arm>) -> Result<(), Box<dyn Error>> {
        if let (Some(file), Some(capture)) = (&self.pcap, &report.capture) {
            save(file, arm, &pcap(capture))?;
        }
        if let (Some(file), Some(capture)) = (&self.perfetto, &report.capture) {
            let shown = Shown {
                processes: &capture.processes,
                events: &report.events,
                names: &report.names,
                messages: &report.messages,
                end: Span(report.simulated).as_nanos(),
            };
            save(file, arm, &perfetto(&shown))?;
        }
        Ok(())
    }
}

fn save(file: &Path, arm: Option<Arm>, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let file = named(file, arm);
    files::write(&file, bytes)?;
    written(&file);
    Ok(())
}

fn named(file: &Path, arm: Option<Arm>) -> PathBuf {
    arm.map_or_else(|| file.to_owned(), |arm| of_arm(file, arm))
}

/// Returns the name of a file with that of an arm before its extension: `run-fenced.pcapng`.
fn of_arm(file: &Path, arm: Arm) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let mut name = format!("{stem}-{}", arm.name());
    if let Some(extension) = file.extension() {
        name = format!("{name}.{}", extension.to_string_lossy());
    }
    file.with_file_name(name)
}
