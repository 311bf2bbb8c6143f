//! The reasons why a call ends without cargo's run.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

/// The exit code of cargo for its own errors, and of this command for its.
pub(crate) const FAILED: u8 = 101;

/// A reason why a call ends early.
#[derive(Debug)]
pub(crate) enum Error {
    /// An error of this command: what happened, with the bad value, and what to do.
    Message(String),
    /// Cargo has failed and printed why; this is its exit code.
    Cargo(ExitCode),
}

impl Error {
    /// Returns a function that makes an error of `action`, such as `can't read`, on the file `path`.
    pub(crate) fn at<E: Display>(action: &str, path: &Path) -> impl Fn(E) -> Self {
        let start = format!("{action} {}", path.display());
        move |error| Self::Message(format!("{start}: {error}"))
    }
}

impl From<files::Error> for Error {
    fn from(error: files::Error) -> Self {
        Self::Message(error.to_string())
    }
}
