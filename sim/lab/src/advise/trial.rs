//! Runs many sections under leases of one TTL, and counts the leases that are lost.

use std::ops::ControlFlow;
use std::sync::Mutex;

use history::{Event, Kind};
use sim::world::lock;
use sim::{Report, RunError, Schedule, Span, pool};

use super::measured::{Measured, Terms};
use super::section::{HOLDER, WAITER, crash, section};
use crate::{Arm, Options, run};

/// The number of sections whose holder crashes, for each TTL.
pub const CRASHES: u64 = 20;

/// The counts of the sections under leases of one TTL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trial {
    /// The TTL.
    pub ttl: Span,
    /// Number of sections that were entered.
    pub sections: u64,
    /// Number of sections whose lease was over before their end.
    pub lost: u64,
    /// Number of sections of which the resource refused the write, since the waiter had written: a part of
    /// the lost ones.
    pub refused: u64,
    /// The lowest seed of a lost one.
    pub first_lost: Option<u64>,
    /// The lowest seed of a refused one.
    pub first_refused: Option<u64>,
    /// The longest time from the crash of a holder to the grant of the waiter.
    pub blocked: Span,
}

/// Runs the sections of `sections` seeds from `first` on under leases of `ttl`, and [`CRASHES`] crashes, on
/// `threads` threads. Calls `go_on` after each section, and stops when it returns false: the counts then have
/// fewer.
///
/// # Errors
///
/// [`RunError`] if a run fails.
pub fn try_ttl(
    (measured, terms, ttl): (&Measured, &Terms, Span),
    (first, sections): (u64, u64),
    threads: usize,
    go_on: impl Fn() -> bool + Sync,
) -> Result<Trial, RunError> {
    let trial = Mutex::new(Trial { ttl, ..Trial::default() });
    let seeds = first..first.saturating_add(sections);
    pool::run(threads, seeds, |seed| -> Result<_, RunError> {
        let report = run(&section(measured, terms, ttl, seed), Arm::Fenced, seed)?;
        lock(&trial).add(seed, &report);
        Ok(if go_on() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    pool::run(threads, 0..CRASHES, |seed| -> Result<_, RunError> {
        let report = run(&crash(measured, terms, ttl, seed), Arm::Fenced, seed)?;
        let mut trial = lock(&trial);
        trial.blocked = trial.blocked.max(blocked(&report));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(trial.into_inner().unwrap_or_default())
}

/// Returns the schedule of the section of that seed, without the faults that did not strike in its run: a
/// file for `replay`.
///
/// # Errors
///
/// [`RunError`] if the run fails.
pub fn shows(
    measured: &Measured,
    terms: &Terms,
    ttl: Span,
    seed: u64,
) -> Result<Schedule<Options>, RunError> {
    let mut schedule = section(measured, terms, ttl, seed);
    let report = run(&schedule, Arm::Fenced, seed)?;
    let mut struck = report.struck.iter();
    schedule.faults.retain(|_| struck.next().is_some_and(|struck| *struck));
    Ok(schedule)
}

/// The end of the holder's section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Its write was accepted while it held the lease.
    Done,
    /// Its lease was over first.
    Lost,
    /// So it was, and its write was refused.
    Refused,
}

impl Trial {
    fn add(&mut self, seed: u64, report: &Report) {
        let Some(end) = end(&report.events) else { return };
        let lowest = |first: &mut Option<u64>| *first = Some(first.map_or(seed, |first| first.min(seed)));
        self.sections += 1;
        if end != End::Done {
            self.lost += 1;
            lowest(&mut self.first_lost);
        }
        if end == End::Refused {
            self.refused += 1;
            lowest(&mut self.first_refused);
        }
    }
}

/// Returns the end of the holder's section; `None` if it never entered it or never left it.
fn end(events: &[Event]) -> Option<End> {
    let mut expired = false;
    for event in events {
        match &event.kind {
            // The waiter's lease can't have begun before the holder's has ended.
            Kind::KeyExpired { .. } => expired = true,
            Kind::SectionLeft { outcome, .. } if event.process.as_str() == HOLDER => {
                return Some(match outcome.as_ref().map(|outcome| outcome.as_str()) {
                    Some("refused") => End::Refused,
                    Some("done") if !expired => End::Done,
                    _ => End::Lost,
                });
            }
            _ => {}
        }
    }
    None
}

/// Returns the time from the holder's crash to the waiter's grant; zero if there was no crash or no grant.
fn blocked(report: &Report) -> Span {
    let crash = |event: &&Event| matches!(event.kind, Kind::ProcessCrashed { .. });
    let Some(crash) = report.events.iter().find(crash) else { return Span::ZERO };
    let granted = report.events.iter().find(|event| {
        event.at >= crash.at
            && event.process.as_str() == WAITER
            && matches!(event.kind, Kind::LeaseAcquired { .. })
    });
    granted.map_or(Span::ZERO, |granted| Span::from_nanos(granted.at.0 - crash.at.0))
}
