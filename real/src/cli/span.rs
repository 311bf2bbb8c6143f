//! Parses durations on the command line: [`real::span`].

use std::time::Duration;

pub(crate) use real::span::parse;

/// The longest run: a week.
const RUN_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Parses the duration of a run, at most a week.
pub(crate) fn parse_run(text: &str) -> Result<Duration, String> {
    let lasts = parse(text)?;
    if lasts > RUN_MAX { Err("a run lasts at most a week, 168h".to_owned()) } else { Ok(lasts) }
}
