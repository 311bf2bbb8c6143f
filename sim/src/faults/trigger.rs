//! The trigger of a fault.

use serde::{Deserialize, Serialize};

use crate::span::Span;

/// The time or the point at which a fault strikes, once.
///
/// # Example
///
/// ```
/// use sim::Span;
/// use sim::faults::Trigger;
///
/// assert_eq!(Trigger::At(Span::from_secs(2)).plus(), Span::from_secs(2));
/// // Strikes when the reply has arrived, before the process can read it.
/// let trigger = Trigger::after("a", "receives from redis");
/// assert_eq!(trigger.plus(), Span::ZERO);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawTrigger", into = "RawTrigger")]
pub enum Trigger {
    /// At a simulated time, counted from the start of the run.
    At(Span),
    /// When a process has passed a point, before any other code of it runs.
    After {
        /// The process.
        process: String,
        /// The name of the point.
        point: String,
        /// The number of the passing, from 1.
        nth: u32,
        /// The time from the passing to the strike.
        plus: Span,
    },
}

impl Trigger {
    /// Creates a trigger at the first time that `process` passes `point`.
    pub fn after(process: &str, point: impl AsRef<str>) -> Self {
        Self::After { process: process.into(), point: point.as_ref().into(), nth: 1, plus: Span::ZERO }
    }

    /// Returns the time from the point, or from the start of the run, to the strike.
    pub fn plus(&self) -> Span {
        match self {
            Self::At(at) => *at,
            Self::After { plus, .. } => *plus,
        }
    }
}

/// [`Trigger`] as written in files: every field of both forms, each optional.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawTrigger {
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plus: Option<Span>,
}

impl TryFrom<RawTrigger> for Trigger {
    type Error = &'static str;

    fn try_from(raw: RawTrigger) -> Result<Self, &'static str> {
        match raw {
            RawTrigger { at: Some(at), process: None, after: None, nth: None, plus: None } => {
                Ok(Self::At(at))
            }
            RawTrigger { at: None, process: Some(process), after: Some(point), nth, plus } => {
                Ok(Self::After { process, point, nth: nth.unwrap_or(1), plus: plus.unwrap_or_default() })
            }
            RawTrigger { at: Some(_), .. } => Err("`at` excludes `process`, `after`, `nth` and `plus`"),
            RawTrigger { process: Some(_), .. } => {
                Err("`process` needs `after`: the point that it must have passed")
            }
            RawTrigger { after: Some(_), .. } => {
                Err("`after` needs `process`: the process that must have passed it")
            }
            _ => Err("`when` needs either `at`, or `process` and `after`"),
        }
    }
}

impl From<Trigger> for RawTrigger {
    fn from(trigger: Trigger) -> Self {
        match trigger {
            Trigger::At(at) => Self { at: Some(at), ..Self::default() },
            Trigger::After { process, point, nth, plus } => Self {
                at: None,
                process: Some(process),
                after: Some(point),
                nth: (nth != 1).then_some(nth),
                plus: (!plus.is_zero()).then_some(plus),
            },
        }
    }
}
