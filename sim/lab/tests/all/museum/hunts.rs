//! The hunts that must convict each mutant.

use history::VerdictKind as Verdict;
use lab::museum::Mutant;
use lab::{Arm, Options};
use sim::Schedule;

/// How a mutant is found.
pub enum Hunt {
    /// Runs drawn schedules until one gives the verdict `shows` without an explanation. `seeds` schedules are
    /// enough with average luck.
    Drawn { shows: Verdict, seeds: u64 },
    /// Runs drawn schedules without excuses for an overlap, in which a holder is cut off, until one gives an
    /// overlap.
    CutOff { seeds: u64 },
    /// Runs this schedule with the seeds below `seeds`. One run must give the verdict `shows`, which the
    /// correct lock and resource never give.
    Aimed { schedule: Box<Schedule<Options>>, arm: Arm, shows: Verdict, seeds: u64 },
}

/// Returns the hunts that must convict `mutant`.
pub fn hunts(mutant: Mutant) -> Vec<Hunt> {
    let aimed_at =
        |schedule, arm, shows, seeds| Hunt::Aimed { schedule: Box::new(schedule), arm, shows, seeds };
    let drawn = |shows, seeds| Hunt::Drawn { shows, seeds };
    let known = |name: &str, shows| aimed_at(corpus(name), Arm::Fenced, shows, 1);
    match mutant {
        Mutant::SetnxThenPexpire => vec![drawn(Verdict::Stuck, 200)],
        Mutant::BlindDel => vec![drawn(Verdict::ForeignRelease, 200)],
        Mutant::CounterDeleted => vec![drawn(Verdict::TokenRegressed, 20)],
        Mutant::ForgetsOnRestart => {
            vec![drawn(Verdict::StaleWrite, 400), known("resource-restart", Verdict::StaleWrite)]
        }
        Mutant::AcceptsEqual => vec![
            drawn(Verdict::StaleWrite, 200),
            known("failover-lost-lock", Verdict::StaleWrite),
            known("ambiguous-put", Verdict::StaleWrite),
        ],
        Mutant::IgnoresVersion => vec![known("cas-high-contention", Verdict::LostUpdate)],
        Mutant::NoCleanup => vec![
            drawn(Verdict::Leaked, 1000),
            known("ambiguous-acquire-given-up", Verdict::Leaked),
            known("cancelled-acquire", Verdict::Leaked),
        ],
        Mutant::ValidityFromReply => {
            vec![Hunt::CutOff { seeds: 1000 }, drawn(Verdict::Unheld, 1000)]
        }
        Mutant::MarginAdded => {
            vec![Hunt::CutOff { seeds: 1000 }, drawn(Verdict::Unheld, 1000)]
        }
        Mutant::LateLoss | Mutant::RenewalLogged | Mutant::ValidityUnchecked => {
            vec![drawn(Verdict::Unheld, 1000)]
        }
        Mutant::LargestCount => vec![known("redlock-token", Verdict::TokenRegressed)],
        Mutant::CheckThenWrite => {
            vec![drawn(Verdict::StaleWrite, 400)]
        }
        // The table has a schedule for each.
        _ => Vec::new(),
    }
}

/// Returns the schedule `seeds/{name}.toml`.
fn corpus(name: &str) -> Schedule<Options> {
    crate::support::case(name).schedule.clone()
}
