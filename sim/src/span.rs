//! Lengths of time as schedules write them, and the shift of a clock: `+10s` or `-30s`.

use std::fmt;
use std::str::FromStr;

use history::as_text;
pub use history::{Span, SpanError};

/// The shift of a clock: a [`Span`] with its sign, which must be written (`+10s` forwards, `-30s` back).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shift(i64);

/// A text that is no shift of a clock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShiftError {
    /// The part after the sign is no span of time.
    #[error(transparent)]
    Span(#[from] SpanError),
    /// More nanoseconds than fit into 63 bits.
    #[error("`{0}` is too long: a shift ends at 292 years")]
    TooLong(String),
    /// A shift without a sign.
    #[error("`{0}` has no sign: write +{0} to move the clock forwards, -{0} to move it back")]
    Unsigned(String),
}

impl Shift {
    /// Creates a shift of this many nanoseconds, forwards if positive.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Returns the shift in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
}

impl FromStr for Shift {
    type Err = ShiftError;

    fn from_str(text: &str) -> Result<Self, ShiftError> {
        let span: Span = text.strip_prefix(['+', '-']).unwrap_or(text).parse()?;
        let nanos = i64::try_from(span.as_nanos()).map_err(|_| ShiftError::TooLong(text.to_owned()))?;
        match text.as_bytes() {
            [b'+', ..] => Ok(Self(nanos)),
            [b'-', ..] => Ok(Self(-nanos)),
            _ => Err(ShiftError::Unsigned(text.to_owned())),
        }
    }
}

impl fmt::Display for Shift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { '-' } else { '+' };
        write!(f, "{sign}{}", Span::from_nanos(self.0.unsigned_abs()))
    }
}

as_text!(Shift, "a shift of a clock, such as \"+10s\" or \"-30s\"");
