//! The results of exhaustive searches, which are kept in `sim/lab/results/exhaustive.json` and shown on the
//! page `docs/exhaustive.md`.
//!
//! [`Results`] is the file, and [`page`] makes the tables of the page. [`workloads`] and [`mistakes`] list
//! the searches, [`search`] and [`needed`] run one of them again.

pub mod page;
mod results;

use std::collections::BTreeSet;
use std::num::NonZeroU8;

use history::VerdictKind;
use resource::Fencing;

pub use results::{Cost, Mistake, Results, Searched, Workload};

use sim::Schedule;
use sim::explore::exhaust::{Demanding, ExhaustError, Needed, Scope, exhaust, faults_needed};

use crate::museum::{Museum, Mutant};
use crate::{Arm, Options, System, small, small_with_keys};

/// The largest number of faults with which a mistake of the museum is searched for.
pub const MISTAKE_FAULTS_MAX: usize = 1;

/// One key for each worker of a small workload.
pub const ONE: NonZeroU8 = NonZeroU8::MIN;

/// Two keys, which each worker of a small workload locks at once.
pub const TWO: NonZeroU8 = ONE.saturating_add(1);

/// The verdicts that a resource without fencing excuses, and that fencing promises.
const FENCED: [VerdictKind; 3] = [VerdictKind::StaleWrite, VerdictKind::LateWrite, VerdictKind::LostUpdate];

/// Returns the laboratory, with fencing or without. Without fencing, its promises are still demanded.
pub fn subject(fencing: Fencing) -> Demanding<Museum> {
    let arm = Arm::from(fencing);
    let demanded = if arm == Arm::Unfenced { BTreeSet::from(FENCED) } else { BTreeSet::new() };
    Demanding { subject: Museum::new(arm), demanded }
}

/// Returns the small workload on `system`, with this mistake of the museum.
pub fn with_mistake(system: System, mutant: Mutant) -> Schedule<Options> {
    let mut base = small(system);
    base.options.mutant = Some(mutant.name().to_owned());
    mutant.suit(&mut base.options);
    base
}

/// Lists the searches for one fault that the page shows: every system with fencing, with one key and with
/// two, and Redis without fencing.
pub fn workloads() -> impl Iterator<Item = Workload> {
    let fenced = |keys| System::of_locks().map(move |system| (system, Fencing::On, keys));
    fenced(ONE).chain([(System::REDIS, Fencing::Off, ONE)]).chain(fenced(TWO))
}

/// Runs all placements of at most one fault in the small workload.
///
/// # Errors
///
/// As [`exhaust`].
pub fn search(workload: Workload, threads: usize) -> Result<Searched, ExhaustError> {
    let (system, fencing, keys) = workload;
    let scope = Scope { threads, ..Scope::of(1) };
    let found = exhaust(&subject(fencing), &small_with_keys(system, keys), &scope, |_| true)?;
    Ok(Searched::of(workload, &found))
}

/// Lists the mistakes of the museum, each with the systems on which it can be made. The small workload is
/// one of a lock: leaves out systems without one.
pub fn mistakes() -> impl Iterator<Item = (Mutant, System)> {
    let all = Mutant::ALL.iter().flat_map(|mutant| mutant.systems().into_iter().map(move |on| (*mutant, on)));
    all.filter(|(_, system)| system.has_lock())
}

/// Finds the least number of faults that shows this mistake in the small workload with fencing, at most
/// [`MISTAKE_FAULTS_MAX`].
///
/// # Errors
///
/// As [`exhaust`].
pub fn needed(mutant: Mutant, system: System, threads: usize) -> Result<Needed<Options>, ExhaustError> {
    let scope = Scope { threads, ..Scope::of(MISTAKE_FAULTS_MAX) };
    faults_needed(&subject(Fencing::On), &with_mistake(system, mutant), &scope)
}
