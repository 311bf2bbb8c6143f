//! The commands, one file each. Each returns true if all was as expected.

pub(crate) mod advise;
pub(crate) mod compare;
pub(crate) mod corpus;
pub(crate) mod demo;
pub(crate) mod exhaust;
pub(crate) mod exhaust_table;
pub(crate) mod explore;
pub(crate) mod exports;
pub(crate) mod fencing;
pub(crate) mod gallery;
pub(crate) mod interrupt;
pub(crate) mod json;
pub(crate) mod merge;
pub(crate) mod museum;
pub(crate) mod picture;
pub(crate) mod probes;
mod progress;
pub(crate) mod replay;
pub(crate) mod shrink;
mod stopwatch;

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

pub(crate) use interrupt::interrupted;
use lab::System;
use sim::Strategy;

/// True if all was as expected; an error if the input is invalid.
pub(crate) type Outcome = Result<bool, Box<dyn Error>>;

/// Prints to standard output. A closed pipe (`| head`) is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Refuses results that are to be read and are not there: a page of them would be empty.
pub(crate) fn must_exist(results: &Path) -> Result<(), String> {
    match results.exists() {
        true => Ok(()),
        false => Err(format!("{}: no such file: name the results with --results", results.display())),
    }
}

/// Names a file that was written, on standard error: standard output may be JSON.
pub(crate) fn written(file: &Path) {
    note(&format!("written: {}", file.display()));
}

/// Prints a line on standard error. Ignores a standard error that can't be written, such as a file on a full
/// disk.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Describes the flag that names a system.
pub(crate) fn system_help() -> String {
    format!("Runs schedules of this system only: {}", alternatives(System::searched()))
}

/// Describes the flag that names a strategy; `default` says how faults are drawn without it.
pub(crate) fn strategy_help(default: &str) -> String {
    format!("Draws faults by this strategy only: {}. {default}", alternatives(Strategy::ALL))
}

/// Lists the names as in a sentence: `a, b or c`.
fn alternatives(names: impl IntoIterator<Item = impl Display>) -> String {
    let mut names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    let last = names.pop().unwrap_or_default();
    format!("{} or {last}", names.join(", "))
}

/// Width of a terminal, in columns.
const WIDTH: usize = 80;

/// Wraps `text` at spaces into lines of at most 80 columns, and ends it with a line feed. All lines but the
/// first begin with `indent` spaces. A word that is longer than a line gets a line of its own.
pub(crate) fn wrap(text: &str, indent: usize) -> String {
    let mut wrapped = String::new();
    let mut column = 0;
    for (number, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        // Break a line only if it holds a word.
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

/// Wraps each line of `text`, as [`wrap`] does, with an indent of two spaces.
pub(crate) fn wrap_lines(text: &str) -> String {
    text.lines().map(|line| wrap(line, 2)).collect()
}

/// Returns `fencing off` or `fencing on`.
pub(crate) fn arm_name(arm: lab::Arm) -> &'static str {
    match arm {
        lab::Arm::Unfenced => "fencing off",
        lab::Arm::Fenced => "fencing on",
    }
}
