//! Schedules: the files in `seeds/`, and those that a user writes.
//!
//! Input: a schedule as TOML.

use lab::Arm;
use lab::museum::Museum;

/// Asserts that a schedule that is accepted is written as one that reads the same.
pub fn run(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        round_trips(text);
    }
}

/// Reads a schedule and, if it is one, writes it and reads it again.
pub(crate) fn round_trips(text: &str) {
    let museum = Museum::new(Arm::Fenced);
    match sim::sim::parse(&museum, "input.toml", text) {
        Ok(schedule) => {
            let written = schedule.to_toml();
            match sim::sim::parse(&museum, "written.toml", &written) {
                Ok(again) => {
                    assert_eq!(again, schedule, "it is written as\n{written}");
                    // Actions are equal if they write the same fields: one that is never written shows here.
                    assert_eq!(format!("{again:?}"), format!("{schedule:?}"), "it is written as\n{written}");
                }
                Err(error) => panic!("it is written as a schedule that is refused: {error}\n{written}"),
            }
        }
        // Its line is one of the file.
        Err(error) => assert!(line_of(&error.to_string()) <= text.lines().count() + 1, "{error}"),
    }
}

/// Returns the line that an error names: `input.toml:LINE: problem`.
fn line_of(error: &str) -> usize {
    error.split(':').nth(1).and_then(|line| line.parse().ok()).unwrap_or(usize::MAX)
}
