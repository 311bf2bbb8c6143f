//! The times of a schedule.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

/// A tick of a schedule: its scheduled time in milliseconds of Unix time, which is also its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

impl Tick {
    /// Returns the tick of this time, in milliseconds of Unix time.
    pub const fn new(unix_ms: u64) -> Self {
        Self(unix_ms)
    }

    /// Returns its time, in milliseconds of Unix time.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The times at which a cron fires, the same on all of its machines. [`Every`] is one. Implement it for the
/// expressions of a cron crate to use these.
pub trait Schedule: Send + Sync {
    /// Returns the last tick at or before `unix_ms`, in milliseconds of Unix time; `None` if there is none.
    fn last(&self, unix_ms: u64) -> Option<Tick>;

    /// Returns the first tick after `unix_ms`, in milliseconds of Unix time; `None` if there is none.
    fn next(&self, unix_ms: u64) -> Option<Tick>;
}

/// A tick every so often: at `offset`, `offset + period`, … after the beginning of Unix time.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use fence::cron::{Every, Schedule, Tick};
///
/// // Every hour, at five past.
/// let hourly = Every::new(Duration::from_secs(3600), Duration::from_secs(300))?;
/// assert_eq!(hourly.last(3_600_000), Some(Tick::new(300_000)));
/// assert_eq!(hourly.next(3_600_000), Some(Tick::new(3_900_000)));
/// # Ok::<(), fence::cron::EveryError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every {
    period_ms: NonZeroU64,
    offset_ms: u64,
}

/// A period or an offset that makes no schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EveryError {
    /// The period is not in whole milliseconds, or is zero.
    #[error("the period {0:?} must be a whole number of milliseconds, 1 at least")]
    Period(Duration),
    /// The offset is not in whole milliseconds, or is not below the period.
    #[error("the offset {offset:?} must be a whole number of milliseconds below the period {period:?}")]
    Offset {
        /// The offset.
        offset: Duration,
        /// The period.
        period: Duration,
    },
}

impl Every {
    /// Creates a schedule of that period, whose ticks are `offset` after the multiples of the period.
    ///
    /// # Errors
    ///
    /// [`EveryError`] names the value that makes no schedule.
    pub fn new(period: Duration, offset: Duration) -> Result<Self, EveryError> {
        let period_ms = whole_ms(period).and_then(NonZeroU64::new).ok_or(EveryError::Period(period))?;
        let offset_ms = whole_ms(offset).filter(|offset| *offset < period_ms.get());
        let offset_ms = offset_ms.ok_or(EveryError::Offset { offset, period })?;
        Ok(Self { period_ms, offset_ms })
    }
}

/// Returns the duration in milliseconds, if these are whole.
fn whole_ms(duration: Duration) -> Option<u64> {
    let is_whole = duration.subsec_nanos().is_multiple_of(1_000_000);
    u64::try_from(duration.as_millis()).ok().filter(|_| is_whole)
}

impl Schedule for Every {
    fn last(&self, unix_ms: u64) -> Option<Tick> {
        let since = unix_ms.checked_sub(self.offset_ms)?;
        Some(Tick(unix_ms - since % self.period_ms))
    }

    fn next(&self, unix_ms: u64) -> Option<Tick> {
        match self.last(unix_ms) {
            Some(Tick(last)) => last.checked_add(self.period_ms.get()).map(Tick),
            None => Some(Tick(self.offset_ms)),
        }
    }
}
