//! The progress of a command, on standard error: a bar on a terminal, plain lines elsewhere.
#![allow(clippy::disallowed_methods, reason = "a command on live servers shows real time")]

use std::cell::Cell;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// The least time between two lines.
const EVERY: Duration = Duration::from_secs(10);

/// The number of locks that were made. Without a terminal it prints a line at the first change, then at most
/// one every 10 s, and one at the end.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// When the last line was printed; `None` before the first.
    printed: Cell<Option<Instant>>,
}

impl Progress {
    pub(crate) fn new(length: u64) -> Self {
        let bar = ProgressBar::new(length);
        let style = "{wide_bar} {human_pos}/{human_len} locks, {per_sec}, {eta} to go";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        Self { bar, printed: Cell::new(None) }
    }

    pub(crate) fn inc(&self, locks: u64) {
        self.bar.inc(locks);
        if self.bar.is_hidden() && self.printed.get().is_none_or(|printed| printed.elapsed() >= EVERY) {
            self.printed.set(Some(Instant::now()));
            self.print();
        }
    }

    /// Removes the bar, or prints the last line.
    pub(crate) fn finish(&self) {
        if self.bar.is_hidden() {
            self.print();
        }
        self.bar.finish_and_clear();
    }

    fn print(&self) {
        let line = format!("{}/{} locks\n", self.bar.position(), self.bar.length().unwrap_or_default());
        // Ignore a closed standard error.
        let _ = io::stderr().write_all(line.as_bytes());
    }
}
