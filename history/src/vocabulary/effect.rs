//! The effect of a fault, for programs to read. Its words for people are the `detail` of its events.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::name::Name;

/// The rate of a true clock, in local nanoseconds per billion true ones.
pub const TRUE_RATE: u64 = 1_000_000_000;

/// The effect of a fault. Its target is the process of its event, except for links, which name their ends.
///
/// # Example
///
/// ```
/// use history::{Effect, LinkFault};
///
/// let cut = Effect::links(LinkFault::Cut, [("a", "redis")]);
/// assert_eq!(cut.to_string(), r#"{"link":{"how":"cut","links":[["a","redis"]]}}"#);
/// assert!(!cut.is_instant());
/// assert!(Effect::links(LinkFault::Reset, [("a", "redis")]).is_instant());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Effect {
    /// The process stands still until the fault ends.
    Pause,
    /// The process is dead until it restarts.
    Down,
    /// Links do not carry messages as they should.
    Link {
        /// The error of the links.
        how: LinkFault,
        /// The sender and the receiver of each link.
        links: Box<[(Name, Name)]>,
    },
    /// The clocks of the process are wrong.
    Clock(ClockFault),
    /// The process does not find hosts by their names as it should. On the network: no process does.
    LookUps(LookUpFault),
    /// A server of several got another role.
    Role(RoleFault),
    /// The fault acts once, at the time of its event.
    Instant(InstantFault),
}

crate::names! {
    /// The error of a link.
    pub enum LinkFault as "fault of a link" {
        /// It holds all messages until the fault ends.
        Cut = "cut",
        /// Each message takes longer.
        Delay = "delay",
        /// Its connections break, once.
        Reset = "reset",
        /// It delivers a request twice.
        Repeat = "repeat",
    }
}

/// The error of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockFault {
    /// A single jump of the wall clock, in nanoseconds; a negative one goes back.
    StepNanos(i64),
    /// The rate of both clocks until the fault ends: their nanoseconds in a billion true ones.
    Rate(u64),
}

crate::names! {
    /// The error of lookups of names.
    pub enum LookUpFault as "fault of lookups" {
        /// Each takes longer.
        Slow = "slow",
        /// Each fails.
        Failing = "failing",
        /// An alias leads to the process that had it before.
        Stale = "stale",
    }
}

crate::names! {
    /// The new role of a server.
    pub enum RoleFault as "role of a server" {
        /// A replica takes the place of its primary.
        Promote = "promote",
        /// A member of a cluster leads it.
        Lead = "lead",
    }
}

crate::names! {
    /// A fault that acts once.
    pub enum InstantFault as "fault that acts once" {
        /// A server loses some of its data.
        Erase = "erase",
        /// A client drops a call that it waits for. It harms nobody else.
        Cancel = "cancel",
        /// Another effect, or none: the state of the run did not allow it.
        Other = "other",
    }
}

impl fmt::Display for Effect {
    /// Writes JSON, the text that a [`Record`](super::Record) reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Effect {
    /// Returns the effect on links, each from its sender to its receiver.
    pub fn links<'n>(how: LinkFault, links: impl IntoIterator<Item = (&'n str, &'n str)>) -> Self {
        let links = links.into_iter().map(|(from, to)| (Name::from(from), Name::from(to)));
        Self::Link { how, links: links.collect() }
    }

    /// Returns true if the fault acts once, and is never in force.
    pub const fn is_instant(&self) -> bool {
        match self {
            Self::Pause | Self::Down | Self::LookUps(_) | Self::Clock(ClockFault::Rate(_)) => false,
            Self::Link { how, .. } => matches!(how, LinkFault::Reset),
            Self::Clock(ClockFault::StepNanos(_)) | Self::Role(_) | Self::Instant(_) => true,
        }
    }
}
