//! Why a fault can't be made here, in one sentence that says what to do.

use std::io;
use std::path::PathBuf;

use crate::servers::ServerError;

/// A fault that can't be made, or not on this machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// A program that makes it is not on this machine.
    #[error("{what} need `{program}`, which is not installed: run `apt-get install {package}`")]
    Missing {
        /// What needs it.
        what: &'static str,
        /// The program.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// Only root may make it.
    #[error("network namespaces need root: run as root, or use the TCP proxy, which does not")]
    NotRoot,
    /// The program that makes it says no.
    #[error("`{command}` failed: {words}")]
    Failed {
        /// The command.
        command: String,
        /// What it said.
        words: String,
    },
    /// A file of the fault can't be used.
    #[error("{}: {source}; set TMPDIR to a directory that this user can write to", .path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The server that it is made on.
    #[error(transparent)]
    Server(#[from] ServerError),
}
