//! The lengths of time that a search varies in a fault: those of its action, and that of its trigger.

use std::fmt;

use crate::faults::{Fault, Faults, Length, Trigger};
use crate::span::Span;

/// Lengths are varied in steps of a millisecond.
pub(super) const STEP: u64 = 1_000_000;

/// A length of a fault, by its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The length in this field of its action.
    Field(String),
    /// The length in its trigger: the time since the start of the run, or since its point.
    When,
}

/// A length of a fault, with its present value.
#[derive(Clone, Debug)]
pub(super) struct Dial {
    pub(super) part: Part,
    pub(super) length: Length,
}

impl Dial {
    /// Returns the least length that makes sense: an action must last some time.
    pub(super) fn least(&self) -> u64 {
        match self.part {
            Part::Field(_) => STEP,
            Part::When => 0,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(field) => f.write_str(field),
            Self::When => f.write_str("when"),
        }
    }
}

/// Returns the lengths of the fault, those of its action first.
pub(super) fn dials(fault: &Fault) -> Vec<Dial> {
    let fields = fault.what.lengths().into_iter();
    let mut dials: Vec<Dial> =
        fields.map(|(field, length)| Dial { part: Part::Field(field), length }).collect();
    dials.push(Dial { part: Part::When, length: Length::Span(fault.when.plus()) });
    dials
}

/// Returns the fault with `nanos` in place of the length; `None` if it can't have that length.
pub(super) fn turned(known: &Faults, fault: &Fault, dial: &Dial, nanos: u64) -> Option<Fault> {
    match &dial.part {
        Part::Field(field) => {
            let what = known.with_length(&*fault.what, field, dial.length.with_nanos(nanos))?;
            Some(Fault { when: fault.when.clone(), what })
        }
        Part::When => {
            let span = Span::from_nanos(nanos);
            let when = match &fault.when {
                Trigger::At(_) => Trigger::At(span),
                Trigger::After { process, point, nth, .. } => {
                    let (process, point) = (process.clone(), point.clone());
                    Trigger::After { process, point, nth: *nth, plus: span }
                }
            };
            Some(Fault { when, what: fault.what.clone() })
        }
    }
}

/// Returns the length closest to `fails` that works, in whole steps. `works` works, and `fails` does not.
pub(super) fn bisect(mut fails: u64, mut works: u64, mut does_work: impl FnMut(u64) -> bool) -> u64 {
    loop {
        let (low, high) = (fails.min(works), fails.max(works));
        let middle = (low + (high - low) / 2) / STEP * STEP;
        if middle <= low {
            return works;
        }
        if does_work(middle) {
            works = middle;
        } else {
            fails = middle;
        }
    }
}
