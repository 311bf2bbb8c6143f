//! The errors of faults. Each says what to do.

use std::io;
use std::path::PathBuf;

use crate::servers::ServerError;

/// Why a fault can't be made on this machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// A program that it needs is not installed.
    #[error("{what} need `{program}`, which is not installed: run `apt-get install {package}`")]
    Missing {
        /// The fault that needs it.
        what: &'static str,
        /// The program.
        program: &'static str,
        /// The Debian package that contains it.
        package: &'static str,
    },
    /// It needs root.
    #[error("network namespaces need root: run as root, or use the TCP proxy, which does not")]
    NotRoot,
    /// The program that makes the fault failed.
    #[error("`{command}` failed: {words}")]
    Failed {
        /// The command.
        command: String,
        /// The program's output.
        words: String,
    },
    /// A file of the fault can't be used.
    #[error("{}: {source}; set TMPDIR to a directory that this user can write to", .path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The server failed.
    #[error(transparent)]
    Server(#[from] ServerError),
}
