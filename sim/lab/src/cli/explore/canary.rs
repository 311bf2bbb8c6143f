//! Searches for a known mistake on the way: they show that the search would find one.

use lab::museum::{Museum, Mutant};
use lab::{Arm, System};
use sim::explore::fleet::Canary;
use sim::explore::{Portfolio, hunt};

use super::super::stopwatch::Stopwatch;

/// The known mistake: a release that deletes the lock of another holder.
const MISTAKE: Mutant = Mutant::BlindDel;

/// The most schedules of one search for it. It takes some ten.
const CAP: u64 = 2_000;

/// The time between two searches for it, in seconds.
pub(super) const EVERY: f64 = 3600.0;

/// Returns the record of the searches for the known mistake.
pub(super) fn new() -> Canary {
    Canary {
        mistake: MISTAKE.name().to_owned(),
        found: 0,
        missed: 0,
        schedules: 0,
        last: None,
        longest_gap: 0.0,
    }
}

/// Searches for the known mistake from the seed `first` on, and records whether it was found, and when after
/// `began`.
pub(super) fn sing(canary: &mut Canary, first: u64, began: Stopwatch) -> Result<(), sim::RunError> {
    let subject = Museum::new(Arm::Fenced).with(MISTAKE).drawing(System::REDIS);
    // Other seeds each time.
    let first = first.wrapping_add((canary.found + canary.missed).wrapping_mul(CAP));
    let hunt = hunt(&subject, &MISTAKE.signs(), first, CAP, &Portfolio::default())?;
    let now = began.elapsed().as_secs_f64();
    canary.schedules = hunt.schedules;
    canary.longest_gap = canary.longest_gap.max(now - canary.last.unwrap_or(0.0));
    if hunt.found.is_some() {
        canary.found += 1;
        canary.last = Some(now);
    } else {
        canary.missed += 1;
    }
    Ok(())
}
