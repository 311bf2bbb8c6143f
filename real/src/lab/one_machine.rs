//! The refusal of results that don't belong on one page: of a busy machine, of a debug build, of two
//! machines, of two versions of a server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{LOAD_MAX, Machine, Software};

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
        "{}: measured at a load average of {load}, and a page needs at most {LOAD_MAX}; measure it again on \
         an idle machine",
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
    /// Other results are of another version of a server.
    #[error(
        "{}: measured on {server}, and {} on {first_server}; measure both on one version",
        .path.display(),
        .first.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The name of a server and its version.
        server: String,
        /// The first file of results that names this server.
        first: PathBuf,
        /// The same server with its version there.
        first_server: String,
    },
}

/// The part of a file of results that names the machine and the software.
#[derive(Deserialize)]
struct Measured {
    machine: Machine,
    software: Software,
}

/// The machine and the servers of the results read so far.
#[derive(Default)]
pub(crate) struct OneMachine {
    /// The machine, and the file that was read first.
    machine: Option<(PathBuf, Machine)>,
    /// The version of each server by its name, and the first file that names it.
    versions: BTreeMap<String, (PathBuf, String)>,
}

impl OneMachine {
    /// Adds the results `record` of the file `path`.
    ///
    /// # Errors
    ///
    /// [`MeasuredError`].
    pub(crate) fn add(&mut self, path: &Path, record: &str) -> Result<(), MeasuredError> {
        let path = path.to_owned();
        let Measured { machine, software } = match serde_json::from_str(record) {
            Ok(measured) => measured,
            Err(source) => return Err(MeasuredError::Unknown { path, source }),
        };
        self.add_versions(&path, &software)?;
        if machine.load_average > LOAD_MAX {
            return Err(MeasuredError::Busy { path, load: machine.load_average });
        }
        if machine.build != "release" {
            return Err(MeasuredError::Build { path, build: machine.build });
        }
        match &self.machine {
            None => self.machine = Some((path, machine)),
            Some((_, first)) if first.is(&machine) => {}
            Some((first, first_machine)) => {
                let (first, first_machine) = (first.clone(), Box::new(first_machine.clone()));
                return Err(MeasuredError::Other { path, machine: Box::new(machine), first, first_machine });
            }
        }
        Ok(())
    }

    /// Notes the versions of the servers. A server that one file lacks was not installed then, which is no
    /// difference.
    fn add_versions(&mut self, path: &Path, software: &Software) -> Result<(), MeasuredError> {
        for (name, version) in &software.servers {
            match self.versions.get(name) {
                None => drop(self.versions.insert(name.clone(), (path.to_owned(), version.clone()))),
                Some((_, first)) if first == version => {}
                Some((first, first_version)) => {
                    return Err(MeasuredError::Version {
                        path: path.to_owned(),
                        server: format!("{name} {version}"),
                        first: first.clone(),
                        first_server: format!("{name} {first_version}"),
                    });
                }
            }
        }
        Ok(())
    }
}
