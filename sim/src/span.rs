//! Lengths of time as schedules write them: `500ms`, `1.5s`, and `+10s` or `-30s` for a clock that is moved.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use history::as_text;

/// The units, the largest first, each with its length in nanoseconds.
const UNITS: [(&str, u64); 5] =
    [("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// A length of simulated time, exact to the nanosecond, at most 584 years.
///
/// Written as a number and a unit without a space: `m`, `s`, `ms`, `us` or `ns`. A fraction is taken if it is
/// a whole number of nanoseconds (`1.5s`). Printed so that it reads back as the same span.
///
/// # Example
///
/// ```
/// use sim::Span;
///
/// let span: Span = "1.5s".parse()?;
/// assert_eq!(span, Span::from_millis(1500));
/// assert_eq!(span.to_string(), "1.5s");
/// # Ok::<(), sim::SpanError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

/// The shift of a clock: a [`Span`] with its sign, which must be written (`+10s` forwards, `-30s` back).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shift(i64);

/// A text that is not a length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// Not a number and a unit.
    #[error(
        "`{0}` is no span of time: write a number and a unit (m, s, ms, us, ns), such as 500ms, 1.5s or 1m"
    )]
    Malformed(String),
    /// Below zero.
    #[error("`{0}` is negative: a span of time counts from zero up")]
    Negative(String),
    /// More nanoseconds than fit into 64 bits.
    #[error("`{0}` is too long: a span of time ends at 584 years, a shift at 292")]
    TooLong(String),
    /// A fraction of a nanosecond.
    #[error("`{0}` is finer than a nanosecond")]
    TooFine(String),
    /// A shift without a sign.
    #[error("`{0}` has no sign: write +{0} to move the clock forwards, -{0} to move it back")]
    Unsigned(String),
}

impl Span {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Creates a span of this many nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Creates a span of this many milliseconds; it saturates.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Creates a span of this many seconds; it saturates.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Returns the span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the span as the standard library's type.
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// Returns whether the span is zero.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// Returns the span times `factor`; it saturates.
    pub const fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// Returns the sum of both spans; it saturates.
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
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

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        span.duration()
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        if text.starts_with('-') {
            return Err(SpanError::Negative(text.into()));
        }
        parsed_nanos(text).map(Self)
    }
}

impl FromStr for Shift {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let (sign, rest) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(rest), _) => (1, rest),
            (_, Some(rest)) => (-1, rest),
            _ => {
                return Err(
                    parsed_nanos(text).map_or_else(|error| error, |_| SpanError::Unsigned(text.into()))
                );
            }
        };
        let nanos = parsed_nanos(rest).map_err(|error| error.about(text))?;
        let nanos = i64::try_from(nanos).map_err(|_| SpanError::TooLong(text.into()))?;
        Ok(Self(sign * nanos))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minute = UNITS[0].1;
        // Fractions of a minute are hard to read: whole minutes only.
        let whole_minutes = self.0 >= minute && self.0.is_multiple_of(minute);
        let units = if whole_minutes { &UNITS[..] } else { &UNITS[1..] };
        let (unit, length) = units.iter().find(|(_, length)| self.0 >= *length).unwrap_or(&("s", 1));
        write!(f, "{}", self.0 / length)?;
        let rest = self.0 % length;
        if rest > 0 {
            let digits = length.ilog10() as usize;
            let fraction = format!("{rest:0digits$}");
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        f.write_str(unit)
    }
}

impl fmt::Display for Shift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { '-' } else { '+' };
        write!(f, "{sign}{}", Span(self.0.unsigned_abs()))
    }
}

as_text!(Span, "a span of time, such as \"500ms\", \"1.5s\" or \"1m\"");
as_text!(Shift, "a shift of a clock, such as \"+10s\" or \"-30s\"");

impl SpanError {
    /// Returns the same error about the whole text rather than the part after the sign.
    fn about(self, text: &str) -> Self {
        match self {
            Self::Malformed(_) | Self::Unsigned(_) => Self::Malformed(text.into()),
            Self::Negative(_) => Self::Negative(text.into()),
            Self::TooLong(_) => Self::TooLong(text.into()),
            Self::TooFine(_) => Self::TooFine(text.into()),
        }
    }
}

/// Parses `digits[.digits]unit` into nanoseconds, exactly.
fn parsed_nanos(text: &str) -> Result<u64, SpanError> {
    let malformed = || SpanError::Malformed(text.into());
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(malformed)?;
    let (number, unit) = text.split_at(unit_at);
    let (_, length) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(malformed)?;
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    if !is_digits(whole) || !fraction.is_none_or(is_digits) {
        return Err(malformed());
    }
    let too_long = || SpanError::TooLong(text.into());
    let whole: u64 = whole.parse().map_err(|_| too_long())?;
    let rest =
        fraction_nanos(fraction.unwrap_or("0"), *length).ok_or_else(|| SpanError::TooFine(text.into()))?;
    whole.checked_mul(*length).and_then(|nanos| nanos.checked_add(rest)).ok_or_else(too_long)
}

/// Returns the nanoseconds of the decimal fraction `0.digits` of a unit, or `None` if they are not whole.
fn fraction_nanos(digits: &str, length: u64) -> Option<u64> {
    let digits = digits.trim_end_matches('0');
    // A minute has 6·10¹⁰ nanoseconds: more than 11 digits are never a whole number of them.
    let scale = 10_u64.checked_pow(u32::try_from(digits.len()).ok().filter(|len| *len <= 11)?)?;
    let numerator = u128::from(digits.parse::<u64>().unwrap_or(0)) * u128::from(length);
    let whole = numerator.is_multiple_of(u128::from(scale));
    whole.then(|| (numerator / u128::from(scale)) as u64)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the nanoseconds of a duration; [`u64::MAX`] if there are more.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
