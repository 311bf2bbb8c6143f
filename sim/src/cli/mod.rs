//! The commands, one file each. Each returns whether all was as expected.

pub(crate) mod compare;
pub(crate) mod corpus;
pub(crate) mod demo;
pub(crate) mod explore;
pub(crate) mod fencing;
pub(crate) mod init;
pub(crate) mod json;
pub(crate) mod probes;
pub(crate) mod replay;
mod stopwatch;

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

/// The columns of a terminal.
const WIDTH: usize = 80;

/// `text` on lines of at most 80 columns, broken at spaces; all lines but the first begin with `indent`
/// spaces. A word that is longer than a line stands alone on one. Ends with a line feed.
pub(crate) fn wrap(text: &str, indent: usize) -> String {
    let mut wrapped = String::new();
    let mut column = 0;
    for (number, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        // A line holds something before it is broken.
        if column > indent && column + 1 + length > WIDTH {
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(indent));
            column = indent;
        } else if number > 0 {
            wrapped.push(' ');
            column += 1;
        }
        wrapped.push_str(word);
        column += length;
    }
    wrapped.push('\n');
    wrapped
}

/// `fencing off` or `fencing on`.
pub(crate) fn arm_name(arm: sim::lab::Arm) -> &'static str {
    match arm {
        sim::lab::Arm::Unfenced => "fencing off",
        sim::lab::Arm::Fenced => "fencing on",
    }
}
