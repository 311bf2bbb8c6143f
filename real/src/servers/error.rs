//! Why a server does not run, in one sentence that says what to do.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A server could not be started, or is not what it should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The program is not on this machine.
    #[error("`{program}` is not installed: run `apt-get install {package}`")]
    Missing {
        /// The program, or the file that it needs.
        program: String,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// The operating system did not start the program.
    #[error("`{program}` could not be started: {source}; check its permissions and the limits of this user")]
    Spawn {
        /// The program.
        program: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process listens on the port.
    #[error("port {port} is taken: stop the process that has it, or give port 0 to pick a free one")]
    PortTaken {
        /// The port.
        port: u16,
    },
    /// The server ended by itself.
    #[error("{name} died ({status}): mend what its last words complain of, and try again:\n{log}")]
    Died {
        /// Which one.
        name: String,
        /// Its exit status.
        status: String,
        /// The last lines of it.
        log: String,
    },
    /// The server runs, and is not ready.
    #[error(
        "{name} was not ready after {waited:?}: give it a faster disk or less company; its last words:\n{log}"
    )]
    Silent {
        /// Which one.
        name: String,
        /// How long it was waited for.
        waited: Duration,
        /// The last lines of it.
        log: String,
    },
    /// A server refused an order that it must follow, such as one to form a cluster.
    #[error("{name} refused `{order}`: {answer}; its last words:\n{log}")]
    Refused {
        /// Which one.
        name: String,
        /// What it was told.
        order: String,
        /// What it answered.
        answer: String,
        /// The last lines of its log.
        log: String,
    },
    /// The temporary directory, or a file in it, can't be used.
    #[error("{}: {source}; set TMPDIR to a directory that this user can write to", .path.display())]
    Directory {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A server program needs another user, and this machine lacks it.
    #[error(
        "PostgreSQL does not run as root and there is no user `postgres`: run `apt-get install postgresql`, or run as another user"
    )]
    NoUser,
}
