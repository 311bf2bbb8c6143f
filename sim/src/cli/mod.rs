//! The commands, one file each. Each returns whether all was as expected.

pub(crate) mod corpus;
pub(crate) mod demo;
pub(crate) mod explore;
pub(crate) mod json;
pub(crate) mod replay;

use std::error::Error;
use std::io::{self, Write};

/// Whether all was as expected, or why the input was bad.
pub(crate) type Outcome = Result<bool, Box<dyn Error>>;

/// Prints to standard output. A reader that has gone away (`| head`) is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// `fencing off` or `fencing on`.
pub(crate) fn arm_name(arm: sim::schedule::Arm) -> &'static str {
    match arm {
        sim::schedule::Arm::Unfenced => "fencing off",
        sim::schedule::Arm::Fenced => "fencing on",
    }
}
