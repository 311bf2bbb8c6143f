//! The primitive that the contenders of a command use: a lock of one of the kinds of `dlock`, or what is
//! built on a lock.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use dlock::Options;
use history::Span;
use serde::{Serialize, Serializer};

use crate::systems::System;

/// The permits of a semaphore that names no number.
const PERMITS: u32 = 2;

/// The nested sections of a reentrant lock that names no number.
const DEPTH: u32 = 2;

/// The time between two ticks of a cron that names none.
const EVERY: Duration = Duration::from_secs(1);

/// The times between two ticks: a lease must be granted, and a tick committed, in between.
const PERIODS: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(3600);

/// The number of rounds of which one writes, under a lock for readers and a writer.
const ROUNDS: u64 = 3;

/// A primitive, as text: see [`Primitive::FORMS`].
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
    /// Readers together, or one writer: of three rounds two read.
    Readers,
    /// Several keys at once, each guarding a resource of its own.
    Several {
        /// The number of keys of a round: at least 2.
        keys: u32,
    },
    /// A mutex that its holder acquires again inside its section.
    Reentrant {
        /// The number of nested sections: at least 2.
        depth: u32,
    },
    /// One leader at a time, whom all contenders observe.
    Election,
    /// One computes, the others wait for its result.
    SingleFlight,
    /// Each tick of a schedule runs once.
    Cron {
        /// The time between two ticks.
        every: Duration,
    },
    /// A job queue, to which each round adds a job.
    Jobs,
}

impl Primitive {
    /// The texts that name a primitive.
    pub const FORMS: &str = "mutex, bounded:M (a mutex for which at most M wait, 1 to 10000), semaphore:N (2 to \
        1000 permits, 2 if it is left out), readers (of three rounds two read), several:K (2 to 16 keys at \
        once), reentrant:D (2 to 9 nested sections, 2 if it is left out), election, single-flight, cron:TIME \
        (a tick every 10ms to 1h, 1s if it is left out) or jobs (a queue, on Redis or PostgreSQL)";

    /// Sets the options of a lock that is this primitive.
    pub fn apply(self, options: &mut Options) {
        options.permits = match self {
            Self::Semaphore { permits } => permits,
            _ => 1,
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

    /// Returns whether a contender holds it until it releases it. The others are tasks, whose results, ticks
    /// or jobs a resource keeps.
    pub const fn is_held(self) -> bool {
        !matches!(self, Self::SingleFlight | Self::Cron { .. } | Self::Jobs)
    }

    /// Returns whether all its acquires demand a fencing token.
    pub const fn is_always_fenced(self) -> bool {
        !matches!(self, Self::Mutex | Self::Bounded { .. } | Self::Semaphore { .. } | Self::Readers)
    }

    /// Returns whether its worker checks its lease before it writes, if it is to: the others leave that to
    /// the resource.
    pub const fn checks_lease(self) -> bool {
        !matches!(self, Self::SingleFlight | Self::Jobs)
    }

    /// Returns whether `system` has it.
    ///
    /// # Errors
    ///
    /// The reason, if it has not.
    pub fn check(self, system: System) -> Result<(), String> {
        match (self, system) {
            (Self::Semaphore { .. } | Self::Bounded { .. } | Self::Readers, System::Redlock) => {
                Err(format!("redlock has no {self}: give --system redis, etcd or zookeeper"))
            }
            (Self::Jobs, System::Redlock | System::Etcd | System::Zookeeper) => {
                let system = system.as_str();
                Err(format!("{system} has no job queue: give --system redis, or use PostgreSQL (see --help)"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of keys of a round.
    pub const fn keys(self) -> u32 {
        match self {
            Self::Several { keys } => keys,
            _ => 1,
        }
    }

    /// Returns the name and the value after the colon.
    fn parts(self) -> (&'static str, Option<String>) {
        match self {
            Self::Mutex => ("mutex", None),
            Self::Bounded { waiters } => ("bounded", Some(waiters.to_string())),
            Self::Semaphore { permits } => ("semaphore", Some(permits.to_string())),
            Self::Readers => ("readers", None),
            Self::Several { keys } => ("several", Some(keys.to_string())),
            Self::Reentrant { depth } => ("reentrant", Some(depth.to_string())),
            Self::Election => ("election", None),
            Self::SingleFlight => ("single-flight", None),
            Self::Cron { every } => ("cron", Some(Span(every).to_string())),
            Self::Jobs => ("jobs", None),
        }
    }
}

impl fmt::Display for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            (name, None) => f.write_str(name),
            (name, Some(value)) => write!(f, "{name}:{value}"),
        }
    }
}

/// Parses the value after the colon: `otherwise` if there is none.
fn value<T: FromStr + PartialOrd>(
    text: Option<&str>,
    otherwise: Option<T>,
    valid: RangeInclusive<T>,
) -> Option<T> {
    match text {
        None => otherwise,
        Some(text) => text.parse().ok().filter(|value| valid.contains(value)),
    }
}

impl FromStr for Primitive {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, given) = text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value)));
        let alone = |primitive: Self| given.is_none().then_some(primitive);
        let primitive = match name {
            "mutex" => alone(Self::Mutex),
            "bounded" => value(given, None, 1..=10_000).map(|waiters| Self::Bounded { waiters }),
            "semaphore" => value(given, Some(PERMITS), 2..=1000).map(|permits| Self::Semaphore { permits }),
            "readers" => alone(Self::Readers),
            "several" => value(given, None, 2..=16).map(|keys| Self::Several { keys }),
            "reentrant" => value(given, Some(DEPTH), 2..=9).map(|depth| Self::Reentrant { depth }),
            "election" => alone(Self::Election),
            "single-flight" => alone(Self::SingleFlight),
            "cron" => value(given, Some(Span(EVERY)), Span(*PERIODS.start())..=Span(*PERIODS.end()))
                .map(|Span(every)| Self::Cron { every }),
            "jobs" => alone(Self::Jobs),
            _ => None,
        };
        primitive.ok_or_else(|| format!("unknown primitive `{text}`: give {}", Self::FORMS))
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
        for text in [
            "mutex",
            "bounded:5",
            "semaphore:7",
            "readers",
            "several:3",
            "reentrant:4",
            "election",
            "single-flight",
            "cron:200ms",
            "jobs",
        ] {
            assert_eq!(text.parse::<Primitive>().unwrap().to_string(), text);
        }
        for (text, whole) in [("semaphore", "semaphore:2"), ("reentrant", "reentrant:2"), ("cron", "cron:1s")]
        {
            assert_eq!(text.parse::<Primitive>().unwrap().to_string(), whole);
        }
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
            "several",
            "several:1",
            "several:17",
            "reentrant:1",
            "reentrant:10",
            "single-flight:2",
            "cron:0s",
            "cron:9ms",
            "cron:2h",
            "cron:1000",
            "jobs:3",
        ] {
            let error = text.parse::<Primitive>().unwrap_err();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }
}
