//! The primitive that a command contends for: a mutex, with a limit of its waiters or without, a semaphore, a
//! lock for readers and a writer, or an election.

use std::fmt;
use std::str::FromStr;

use dlock::Options;
use serde::{Serialize, Serializer};

/// The permits of a semaphore that names no number.
const PERMITS: u32 = 2;

/// The number of rounds of which one writes, under a lock for readers and a writer.
const ROUNDS: u64 = 3;

/// A primitive, as text `mutex`, `bounded:M`, `semaphore` (of two permits), `semaphore:N`, `readers` or
/// `election`.
///
/// # Example
///
/// ```
/// use real::primitive::Primitive;
///
/// assert_eq!("semaphore:3".parse(), Ok(Primitive::Semaphore { permits: 3 }));
/// assert!("semaphore:0".parse::<Primitive>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Primitive {
    /// One holder at a time.
    #[default]
    Mutex,
    /// One holder at a time, and a limit of waiters.
    Bounded {
        /// The most that may wait: at least 1.
        waiters: u32,
    },
    /// Several holders at a time.
    Semaphore {
        /// Their number: at least 2.
        permits: u32,
    },
    /// One leader at a time, whom all contenders observe.
    Election,
    /// Readers together, or one writer: of three rounds two read.
    Readers,
}

impl Primitive {
    /// Sets the options of a lock that is this primitive.
    pub fn apply(self, options: &mut Options) {
        options.permits = match self {
            Self::Mutex | Self::Bounded { .. } | Self::Readers | Self::Election => 1,
            Self::Semaphore { permits } => permits,
        };
        options.readers = self == Self::Readers;
        options.waiters_max = match self {
            Self::Bounded { waiters } => Some(waiters),
            _ => None,
        };
    }

    /// Returns true if the round of this number, from 0, reads.
    pub fn reads(self, round: u64) -> bool {
        self == Self::Readers && !round.is_multiple_of(ROUNDS)
    }
}

impl fmt::Display for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mutex => f.write_str("mutex"),
            Self::Election => f.write_str("election"),
            Self::Readers => f.write_str("readers"),
            Self::Bounded { waiters } => write!(f, "bounded:{waiters}"),
            Self::Semaphore { permits } => write!(f, "semaphore:{permits}"),
        }
    }
}

impl FromStr for Primitive {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || {
            format!(
                "unknown primitive `{text}`: give mutex, readers, election, semaphore, semaphore:N with 2 to 1000 \
                 permits, or bounded:M with 1 to 10000 waiters"
            )
        };
        match text.split_once(':') {
            None if text == "mutex" => Ok(Self::Mutex),
            None if text == "election" => Ok(Self::Election),
            None if text == "readers" => Ok(Self::Readers),
            None if text == "semaphore" => Ok(Self::Semaphore { permits: PERMITS }),
            Some(("semaphore", number)) => match number.parse() {
                Ok(permits @ 2..=1000) => Ok(Self::Semaphore { permits }),
                _ => Err(unknown()),
            },
            Some(("bounded", number)) => match number.parse() {
                Ok(waiters @ 1..=10_000) => Ok(Self::Bounded { waiters }),
                _ => Err(unknown()),
            },
            _ => Err(unknown()),
        }
    }
}

impl Serialize for Primitive {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_primitive_is_read_as_it_is_written() {
        let (semaphore, bounded) = (Primitive::Semaphore { permits: 7 }, Primitive::Bounded { waiters: 5 });
        for primitive in [Primitive::Mutex, Primitive::Readers, Primitive::Election, semaphore, bounded] {
            assert_eq!(primitive.to_string().parse(), Ok(primitive));
        }
        assert_eq!("semaphore".parse(), Ok(Primitive::Semaphore { permits: 2 }));
    }

    #[test]
    fn of_three_rounds_two_read() {
        assert_eq!([0, 1, 2, 3].map(|round| Primitive::Readers.reads(round)), [false, true, true, false]);
        assert!(!Primitive::Mutex.reads(1));
    }

    #[test]
    fn what_is_no_primitive_is_refused_by_its_text() {
        for text in [
            "",
            "lock",
            "semaphore:",
            "semaphore:1",
            "semaphore:1001",
            "mutex:2",
            "semaphore:x",
            "election:2",
            "readers:2",
            "bounded",
            "bounded:0",
            "bounded:10001",
        ] {
            let error = text.parse::<Primitive>().unwrap_err();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }
}
