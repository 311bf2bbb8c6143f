//! Snaps the times of faults to points that the run passes. A fault right after a point shows why it strikes
//! there; a time does not.

use history::Event;

use super::Shrinking;
use crate::faults::{Fault, Trigger};
use crate::sim::{Subject, point};
use crate::span::Span;

/// The number of points before the strike that are tried: of the fault's own processes, and again of any.
const POINTS_MAX: usize = 3;

/// Snaps every fault that strikes at a time, or some time after a point.
pub(super) fn to_points<S: Subject>(shrinking: &mut Shrinking<'_, S>) {
    for number in 0..shrinking.best.faults.len() {
        count_less(shrinking, number);
        let Some(fault) = shrinking.best.faults.get(number).cloned() else { return };
        let mut triggers = at_once(&fault.when);
        if !fault.when.plus().is_zero() || matches!(fault.when, Trigger::At(_)) {
            let events = shrinking.run.iter().flat_map(|report| near(&fault, &report.events));
            triggers.extend(events);
        }
        triggers
            .into_iter()
            .any(|when| shrinking.offer_fault(number, Fault { when, what: fault.what.clone() }));
    }
}

/// Aims the fault at an earlier passing of its point.
fn count_less<S: Subject>(shrinking: &mut Shrinking<'_, S>, number: usize) {
    while let Some(fault) = shrinking.best.faults.get(number).cloned() {
        let Trigger::After { process, point, nth, plus } = fault.when else { return };
        let earlier = if nth > 2 { vec![1, nth - 1] } else { (1..nth).collect() };
        let is_taken = earlier.into_iter().any(|nth| {
            let when = Trigger::After { process: process.clone(), point: point.clone(), nth, plus };
            shrinking.offer_fault(number, Fault { when, what: fault.what.clone() })
        });
        if !is_taken {
            return;
        }
    }
}

/// Returns the trigger without its delay, if it has one.
fn at_once(when: &Trigger) -> Vec<Trigger> {
    match when {
        Trigger::After { process, point, nth, plus } if !plus.is_zero() => {
            let (process, point) = (process.clone(), point.clone());
            vec![Trigger::After { process, point, nth: *nth, plus: Span::ZERO }]
        }
        _ => Vec::new(),
    }
}

/// Returns triggers at the points around the time at which the fault strikes: the last ones before it, then
/// the first ones after it, of its own processes and then of all.
fn near(fault: &Fault, events: &[Event]) -> Vec<Trigger> {
    let Some(strike) = strikes_at(&fault.when, events) else { return Vec::new() };
    let own = fault.what.processes();
    let points = || (0..events.len()).filter(|number| point::of(&events[*number].kind).is_some());
    let is_own = |number: &usize| own.contains(&events[*number].process.as_str());
    let is_before = |number: &usize| events[*number].at.0 <= strike;
    let last = |points: &mut dyn DoubleEndedIterator<Item = usize>| -> Vec<usize> {
        points.rev().take(POINTS_MAX).collect()
    };
    let mut chosen = last(&mut points().filter(is_before).filter(is_own));
    chosen.extend(points().filter(|number| !is_before(number)).filter(is_own).take(1));
    chosen.extend(last(&mut points().filter(is_before)));
    chosen.extend(points().filter(|number| !is_before(number)).take(1));
    chosen.into_iter().map(|number| at_point(events, number)).collect()
}

/// Returns the trigger at the point that the event with this number passes.
fn at_point(events: &[Event], number: usize) -> Trigger {
    let (event, name) = (&events[number], |event: &Event| point::of(&event.kind).map(str::to_owned));
    let point = name(event);
    let is_same = |other: &&Event| other.process == event.process && name(other) == point;
    let nth = events[..=number].iter().filter(is_same).count();
    Trigger::After {
        process: event.process.to_string(),
        point: point.unwrap_or_default(),
        nth: u32::try_from(nth).unwrap_or(u32::MAX),
        plus: Span::ZERO,
    }
}

/// Returns the time at which the trigger fires, if the history tells.
fn strikes_at(when: &Trigger, events: &[Event]) -> Option<u64> {
    match when {
        Trigger::At(at) => Some(at.as_nanos()),
        Trigger::After { process, point, nth, plus } => {
            let passes = |event: &&Event| {
                event.process.as_str() == process && point::of(&event.kind) == Some(point.as_str())
            };
            let nth = usize::try_from(*nth).ok()?.checked_sub(1)?;
            events.iter().filter(passes).nth(nth).map(|event| event.at.0 + plus.as_nanos())
        }
    }
}
