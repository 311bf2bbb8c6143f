//! The commands, one file each. Each returns true if the outcome was as expected.

pub(crate) mod audit;
pub(crate) mod chaos;
pub(crate) mod clear;
pub(crate) mod contend;
pub(crate) mod experiment;
pub(crate) mod fencing;
pub(crate) mod fill;
mod guards;
pub(crate) mod inspect;
pub(crate) mod lock;
pub(crate) mod metrics;
pub(crate) mod peers;
mod progress;
pub(crate) mod raise;
pub(crate) mod report;
pub(crate) mod resource;
pub(crate) mod span;
pub(crate) mod state;
mod target;
mod tls;
pub(crate) mod up;
pub(crate) mod worker;

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::{Args, ValueEnum};
use real::logs;
use real::recording::{Recorder, Recording};
use real::stop::Stop;

/// True if the outcome was as expected; an error if the input is invalid.
pub(crate) type Outcome = Result<bool, Box<dyn Error>>;

/// The request to stop, of a command that ends well when it is asked to.
static STOP: OnceLock<Stop> = OnceLock::new();

/// Returns the request that the first Ctrl-C or SIGTERM makes. After it the program exits with
/// [`EXIT_CODE`](real::stop::EXIT_CODE), whatever the command returns, unless that is an error.
pub(crate) fn stop_on_signals() -> io::Result<Stop> {
    let stop = Stop::on_signals()?;
    Ok(STOP.get_or_init(|| stop).clone())
}

/// Returns true if the command was asked to stop.
pub(crate) fn interrupted() -> bool {
    STOP.get().is_some_and(Stop::is_asked)
}

/// Prints to standard output. A closed pipe (`| head`) is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Names a file that was written, on standard error: standard output may be JSON.
pub(crate) fn written(file: &Path) {
    note("written", file);
}

/// Names a file on standard error. Ignores a standard error that can't be written.
fn note(what: &str, file: &Path) {
    let _ = writeln!(io::stderr(), "{what}: {}", file.display());
}

/// The value of a flag that switches something on or off.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

impl Switch {
    pub(crate) const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

/// The process's name, and the file of its history.
#[derive(Args)]
pub(crate) struct Identity {
    /// The name of this process in the history and in owner tokens.
    #[arg(long, env = "DLOCK_NAME")]
    pub(crate) name: Option<String>,
    /// Writes every event to this file, one line of JSON each; `-` is the standard output. A file with
    /// content is refused: it would be the history of two runs.
    #[arg(long, env = "DLOCK_HISTORY", value_name = "FILE")]
    history: Option<PathBuf>,
}

impl Identity {
    pub(crate) fn name_or(&self, name: &str) -> String {
        self.name.clone().unwrap_or_else(|| name.to_owned())
    }

    /// Returns the file of the history, if it is one.
    pub(crate) fn history(&self) -> Option<&Path> {
        self.history.as_deref().filter(|path| path.as_os_str() != "-")
    }

    /// Starts the history, if one is asked for, and the log.
    pub(crate) fn record(&self, name: &str) -> Result<Option<Recording>, Box<dyn Error>> {
        let Some(path) = &self.history else {
            logs::install(None)?;
            return Ok(None);
        };
        match Recorder::open(name, path) {
            Ok((recorder, recording)) => {
                logs::install(Some(recorder))?;
                self.history().into_iter().for_each(|path| note("history", path));
                Ok(Some(recording))
            }
            Err(error) => Err(format!("--history {}: {error}", path.display()).into()),
        }
    }
}

/// Fails if an event could not be written: an incomplete history proves nothing.
pub(crate) fn finish(recording: Option<Recording>) -> Result<(), Box<dyn Error>> {
    match recording.and_then(|recording| recording.failure()) {
        Some(error) => {
            Err(format!("the history is incomplete: {error}; give a file on another disk to --history")
                .into())
        }
        None => Ok(()),
    }
}
