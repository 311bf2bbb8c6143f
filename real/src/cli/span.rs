//! Parses durations on the command line.

use std::time::Duration;

use history::{Span, SpanError};

/// The longest run: a week.
const RUN_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Parses a duration, as schedules write it.
pub(crate) fn parse(text: &str) -> Result<Duration, SpanError> {
    text.parse().map(|Span(duration)| duration)
}

/// Parses the duration of a run, at most a week.
pub(crate) fn parse_run(text: &str) -> Result<Duration, String> {
    let lasts = parse(text).map_err(|error| error.to_string())?;
    if lasts > RUN_MAX { Err("a run lasts at most a week, 168h".to_owned()) } else { Ok(lasts) }
}
