//! The source of a picture.

use std::collections::BTreeMap;

use history::text::Names;
use history::{Event, Message, Verdict};

/// A run: its history, and what else is known of it. A live run has a history alone.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The title, which distinguishes it from other runs, such as `fencing off`.
    pub title: &'a str,
    /// Its purpose, for a reader who has never seen it; may be empty.
    pub about: &'a str,
    /// The history, in the order of true time.
    pub events: &'a [Event],
    /// The names of locks and resources.
    pub names: &'a Names,
    /// The findings of the audit, the most important first.
    pub findings: &'a [Finding],
    /// The messages between processes; empty if they are not known.
    pub messages: &'a [Message],
    /// The roles of processes. Any other role is derived from the events of the process.
    pub roles: &'a BTreeMap<String, Role>,
}

/// A verdict and its explanation.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The verdict.
    pub verdict: Verdict,
    /// One sentence that says how it came about.
    pub sentence: String,
    /// True if the schedule itself explains it, so that it is no mistake of the code.
    pub is_excused: bool,
}

/// A schedule as its file shows it.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// Its name, such as its file.
    pub name: String,
    /// Its text, in TOML.
    pub text: String,
    /// The line of each fault in `text`, from 1, by the fault's number in the history.
    pub fault_lines: Vec<usize>,
}

impl Schedule {
    /// Returns the schedule with this name and text. Its faults are the tables `[[fault]]`, in order.
    pub fn new(name: &str, text: &str) -> Self {
        let lines = text.lines().enumerate();
        let faults = lines.filter(|(_, line)| line.trim_start().starts_with("[[fault]]"));
        let fault_lines = faults.map(|(number, _)| number + 1).collect();
        Self { name: name.to_owned(), text: text.to_owned(), fault_lines }
    }
}

/// The role of a process. Lanes have the order of these roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It acquires locks, and writes to the resource.
    Worker,
    /// No process, but the lane of the faults of links.
    Links,
    /// It stores locks.
    Server,
    /// It is protected by locks.
    Resource,
}

impl Role {
    /// Returns the role in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Links => "faults of links",
            Self::Server => "lock server",
            Self::Resource => "resource",
        }
    }
}
