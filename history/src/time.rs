//! Lengths of time as text.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A length of time in files and on the command line, such as `500ms`, `1.5s` or `1m`. It is read by
/// [`humantime`] and printed with one unit, so that it reads back as the same length.
///
/// # Example
///
/// ```
/// use history::Span;
///
/// let span: Span = "1.5s".parse()?;
/// assert_eq!(span, Span::from_millis(1500));
/// assert_eq!(span.to_string(), "1.5s");
/// # Ok::<(), history::SpanError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub Duration);

/// A text that is not a length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no span of time ({problem}): write a number and a unit, such as 500ms, 1.5s or 1m")]
pub struct SpanError {
    text: String,
    problem: String,
}

impl Span {
    /// Zero.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// Creates a span of this many nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(Duration::from_nanos(nanos))
    }

    /// Creates a span of this many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// Creates a span of this many seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }

    /// Returns the span in nanoseconds; it saturates at 584 years.
    pub const fn as_nanos(self) -> u64 {
        let nanos = self.0.as_nanos();
        if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
    }

    /// Returns the span as the standard library's type.
    pub const fn duration(self) -> Duration {
        self.0
    }

    /// Returns true if the span is zero.
    pub const fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// Returns the span times `factor`; it saturates at 584 years.
    pub const fn times(self, factor: u64) -> Self {
        Self::from_nanos(self.as_nanos().saturating_mul(factor))
    }

    /// Returns the sum of both spans; it saturates.
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let error = |problem| SpanError { text: text.to_owned(), problem };
        let span = humantime::parse_duration(text).map_err(|problem| error(problem.to_string()))?;
        if span > Duration::from_nanos(u64::MAX) {
            return Err(error("it ends at 584 years".to_owned()));
        }
        Ok(Self(span))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        match self.0.subsec_nanos() {
            0 if seconds > 0 && seconds.is_multiple_of(60) => f.pad(&format!("{}m", seconds / 60)),
            0 => f.pad(&format!("{seconds}s")),
            _ => f.pad(&format!("{:?}", self.0).replace('µ', "u")),
        }
    }
}

crate::as_text!(Span, "a span of time, such as \"500ms\", \"1.5s\" or \"1m\"");

/// Formats a duration in the largest unit in which it is whole, for traces: `2s`, `500ms`. Microseconds are
/// the smallest unit.
pub fn in_whole_units(nanos: u64) -> String {
    match nanos {
        nanos if nanos.is_multiple_of(1_000_000_000) => format!("{}s", nanos / 1_000_000_000),
        nanos if nanos.is_multiple_of(1_000_000) => format!("{}ms", nanos / 1_000_000),
        nanos => format!("{}us", nanos / 1000),
    }
}
