//! The marks of single-flight workers in the history, and the check that judges them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use history::{Event, Kind, Name};
use sim::{Check, Evidence};

use super::options::RESOURCE;

/// A step of a single-flight worker, which it marks as a point with this text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlightMark {
    /// A call begins; it accepts values with a token above this one.
    Begins(u64),
    /// The call computes, under the lease with this token.
    Computes(u64),
    /// The computation failed.
    Fails(u64),
    /// The call returned the result with this token.
    Returns(u64),
}

impl fmt::Display for FlightMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begins(token) => write!(f, "flight above {token}"),
            Self::Computes(token) => write!(f, "flight computes {token}"),
            Self::Fails(token) => write!(f, "flight fails {token}"),
            Self::Returns(token) => write!(f, "flight returns {token}"),
        }
    }
}

impl FromStr for FlightMark {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (what, token) = text.rsplit_once(' ').ok_or(())?;
        let token = token.parse().map_err(|_| ())?;
        match what {
            "flight above" => Ok(Self::Begins(token)),
            "flight computes" => Ok(Self::Computes(token)),
            "flight fails" => Ok(Self::Fails(token)),
            "flight returns" => Ok(Self::Returns(token)),
            _ => Err(()),
        }
    }
}

/// Returns the check of single-flight workers. It fails if a call computes although a value that it accepts
/// had been stored before its lease was granted: it did not look again under the lock. It also fails if a
/// call returns a result that the resource never accepted.
///
/// A crash of the resource clears the notes: its store may have forgotten results.
pub(crate) fn one_flight() -> impl Check {
    |evidence: &Evidence<'_>| {
        let mut flights = Flights::default();
        evidence.events.iter().find_map(|event| flights.observe(event)).map_or(Ok(()), Err)
    }
}

#[derive(Default)]
struct Flights<'e> {
    /// The token of the value that each key has.
    values: BTreeMap<&'e Name, u64>,
    /// The tokens whose results were accepted.
    accepted: BTreeSet<u64>,
    /// The tokens whose computations failed.
    failed: BTreeSet<u64>,
    /// What each key had when a process was granted its lease: by process, with the token of the grant.
    at_grant: BTreeMap<&'e Name, (u64, u64)>,
    /// The token above which each process accepts values.
    above: BTreeMap<&'e Name, u64>,
    is_lossy: bool,
}

impl<'e> Flights<'e> {
    /// Notes the event, and returns the problem with it.
    fn observe(&mut self, event: &'e Event) -> Option<String> {
        let process = &event.process;
        match &event.kind {
            Kind::LeaseAcquired { key, token, .. } => {
                let value = self.values.get(key).copied().unwrap_or_default();
                self.at_grant.insert(process, (*token, value));
            }
            Kind::WriteAccepted { key, token, .. } => {
                self.accepted.insert(*token);
                if !self.failed.contains(token) {
                    self.values.insert(key, *token);
                }
            }
            Kind::ProcessCrashed { .. } if process.as_str() == RESOURCE => {
                self.values.clear();
                self.at_grant.clear();
                self.is_lossy = true;
            }
            Kind::PointPassed { step } => return self.mark(event, step.as_str().parse().ok()?),
            _ => {}
        }
        None
    }

    fn mark(&mut self, event: &'e Event, mark: FlightMark) -> Option<String> {
        let (at, process) = (event.at, &event.process);
        match mark {
            FlightMark::Begins(above) => {
                self.above.insert(process, above);
            }
            FlightMark::Fails(token) => {
                self.failed.insert(token);
            }
            FlightMark::Computes(token) => {
                let above = self.above.get(process).copied().unwrap_or_default();
                let found = self.at_grant.get(process).filter(|(granted, _)| *granted == token);
                let (_, value) = found.filter(|(_, value)| *value > above)?;
                return Some(format!(
                    "at {at} {process} computed with token {token}, although the value with token {value} was \
                     stored before its lease was granted, and it accepts those above {above}"
                ));
            }
            FlightMark::Returns(token) if !self.is_lossy && !self.accepted.contains(&token) => {
                return Some(format!(
                    "at {at} {process} returned a result with token {token}, which the resource never accepted"
                ));
            }
            FlightMark::Returns(_) => {}
        }
        None
    }
}
