//! The progress of a command, on standard error: a bar on a terminal, plain lines elsewhere.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::stopwatch::Stopwatch;

/// The least real time between two lines.
const EVERY: Duration = Duration::from_secs(10);

/// The progress of a command. Without a terminal it prints a line at the first change, then at most one
/// every 10 s, and one at the end.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// The things that are counted: `schedules`.
    unit: &'static str,
    /// When the last line was printed; `None` before the first.
    printed: Mutex<Option<Stopwatch>>,
}

impl Progress {
    /// Begins at 0 of `length`; the length is [`u64::MAX`] if it is not known.
    pub(crate) fn new(length: u64, unit: &'static str) -> Self {
        let bar = ProgressBar::new(length);
        if let Ok(style) = ProgressStyle::with_template(&format!("{{bar:30}} {{pos}}/{{len}} {unit}{{msg}}"))
        {
            bar.set_style(style);
        }
        Self { bar, unit, printed: Mutex::default() }
    }

    /// Sets the length.
    pub(crate) fn set_length(&self, length: u64) {
        self.bar.set_length(length);
    }

    /// Sets the number that is done, and what else there is to say.
    pub(crate) fn set(&self, done: u64, more: &str) {
        self.bar.set_position(done);
        self.bar.set_message(format!(", {more}"));
        self.print_if_due();
    }

    /// Adds one to the number that is done.
    pub(crate) fn inc(&self) {
        self.bar.inc(1);
        self.print_if_due();
    }

    /// Prints a line of its own.
    pub(crate) fn say(&self, line: &str) {
        self.bar.suspend(|| super::note(line));
    }

    /// Removes the bar, or prints the last line.
    pub(crate) fn finish(&self) {
        if self.bar.is_hidden() {
            self.print();
        }
        self.bar.finish_and_clear();
    }

    fn print_if_due(&self) {
        if !self.bar.is_hidden() {
            return;
        }
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        if is_due(printed.map(Stopwatch::elapsed)) {
            *printed = Some(Stopwatch::start());
            self.print();
        }
    }

    fn print(&self) {
        let line = line(self.bar.position(), self.bar.length(), self.unit, &self.bar.message());
        super::note(line.trim_end());
    }
}

/// Returns whether to print another line, so long after the last one.
fn is_due(since: Option<Duration>) -> bool {
    since.is_none_or(|since| since >= EVERY)
}

fn line(done: u64, length: Option<u64>, unit: &str, more: &str) -> String {
    match length.filter(|length| *length != u64::MAX) {
        Some(length) => format!("{done}/{length} {unit}{more}\n"),
        None => format!("{done} {unit}{more}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_change_is_printed_and_then_one_every_ten_seconds() {
        assert!(is_due(None));
        assert!(!is_due(Some(Duration::from_millis(9_999))));
        assert!(is_due(Some(Duration::from_secs(10))));
    }

    #[test]
    fn a_length_that_is_not_known_is_left_out() {
        assert_eq!(line(3, Some(9), "schedules", ", 0 violations"), "3/9 schedules, 0 violations\n");
        assert_eq!(line(3, Some(u64::MAX), "schedules", ""), "3 schedules\n");
    }
}
