//! The refusal of results that don't belong on one page: of a busy machine, of a debug build, of two
//! machines.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::lab::{LOAD_MAX, Machine};

/// Why results have no place on a page.
#[derive(Debug, thiserror::Error)]
pub enum MeasuredError {
    /// The file doesn't say where it was measured.
    #[error("{}: the machine and the versions are not named: {source}; measure it again", .path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The error.
        source: serde_json::Error,
    },
    /// The machine was busy.
    #[error(
        "{}: measured at a load average of {load}, and a page needs at most {LOAD_MAX}; measure it again on an \
         idle machine",
        .path.display()
    )]
    Busy {
        /// The file.
        path: PathBuf,
        /// The load average at the start.
        load: f64,
    },
    /// The program was not built for speed.
    #[error("{}: measured by a {build} build; measure it again with --release", .path.display())]
    Build {
        /// The file.
        path: PathBuf,
        /// The build profile.
        build: String,
    },
    /// Other results are of another machine.
    #[error(
        "{}: measured on another machine than {}: {machine}; not {first_machine}; measure both on one",
        .path.display(),
        .first.display()
    )]
    Other {
        /// The file.
        path: PathBuf,
        /// Its machine.
        machine: Box<Machine>,
        /// The first file of results.
        first: PathBuf,
        /// Its machine.
        first_machine: Box<Machine>,
    },
}

/// The part of a file of results that names the machine.
#[derive(Deserialize)]
struct Measured {
    machine: Machine,
}

/// The machine of the results read so far, and the file that was read first.
#[derive(Default)]
pub(super) struct OneMachine(Option<(PathBuf, Machine)>);

impl OneMachine {
    /// Adds the results `record` of the file `path`.
    ///
    /// # Errors
    ///
    /// [`MeasuredError`].
    pub(super) fn add(&mut self, path: &Path, record: &str) -> Result<(), MeasuredError> {
        let path = path.to_owned();
        let Measured { machine } = match serde_json::from_str(record) {
            Ok(measured) => measured,
            Err(source) => return Err(MeasuredError::Unknown { path, source }),
        };
        if machine.load_average > LOAD_MAX {
            return Err(MeasuredError::Busy { path, load: machine.load_average });
        }
        if machine.build != "release" {
            return Err(MeasuredError::Build { path, build: machine.build });
        }
        match &self.0 {
            None => self.0 = Some((path, machine)),
            Some((_, first)) if first.is(&machine) => {}
            Some((first, first_machine)) => {
                let (first, first_machine) = (first.clone(), Box::new(first_machine.clone()));
                return Err(MeasuredError::Other { path, machine: Box::new(machine), first, first_machine });
            }
        }
        Ok(())
    }
}
