//! The known limits: which verdicts a schedule's own choices explain.

use std::collections::BTreeSet;

use crate::schedule::{Arm, Part, Persistence, ReadMode, ReleaseMode, Schedule, Verdict, What};

/// The verdicts that a run of the schedule may have without a promise being broken.
///
/// - `overlap`: always. Every lock that releases itself allows it under a pause, and no fence can prevent it.
/// - Without fencing, `stale_write`, `late_write` and `lost_update`: that is what fencing is for.
/// - `late_write` and `lost_update` with fencing, if a worker reads without claiming: write-only fencing has that hole.
/// - `token_regressed` where the counter may be lost: no persistence that outlives the crash, a lagging replica, an eviction.
///   The writes of the regressed grants are then refused; what was accepted stays safe.
/// - `stuck` where the clock of a Redis server is set back or slowed: a key that nobody releases lives by that clock.
/// - `foreign_release`, if a worker releases by GET and DEL.
pub fn allowed(schedule: &Schedule, arm: Arm) -> BTreeSet<Verdict> {
    let mut allowed = BTreeSet::from([Verdict::Overlap]);
    if arm == Arm::Unfenced {
        allowed.extend([Verdict::StaleWrite, Verdict::LateWrite, Verdict::LostUpdate]);
    }
    if schedule.workers.iter().any(|worker| worker.read == ReadMode::Plain) {
        allowed.extend([Verdict::LateWrite, Verdict::LostUpdate]);
    }
    if schedule.faults.iter().any(|fault| may_lose_the_counter(schedule, &fault.what)) {
        allowed.insert(Verdict::TokenRegressed);
    }
    if schedule.faults.iter().any(|fault| may_prolong_keys(schedule, &fault.what)) {
        allowed.insert(Verdict::Stuck);
    }
    if schedule.workers.iter().any(|worker| worker.release == ReleaseMode::GetDel) {
        allowed.insert(Verdict::ForeignRelease);
    }
    allowed
}

/// Whether the fault may make a key live longer than its time to live. Redis expires keys by its wall clock.
fn may_prolong_keys(schedule: &Schedule, what: &What) -> bool {
    let is_redis = |process: &String| schedule.cluster().is_none() && schedule.servers().contains(process);
    match what {
        What::Step { process, by } | What::Slew { process, by, .. } => is_redis(process) && by.as_nanos() < 0,
        What::Rate { process, factor, .. } => is_redis(process) && *factor < 1.0,
        _ => false,
    }
}

/// Whether the fault may take from a lock server what it has acknowledged.
fn may_lose_the_counter(schedule: &Schedule, what: &What) -> bool {
    if schedule.cluster().is_some() {
        // A majority keeps what was acknowledged.
        return false;
    }
    match what {
        What::Crash { process, power_loss, .. } if schedule.servers().contains(process) => {
            match schedule.redis.persistence {
                Persistence::None => true,
                Persistence::EverySec => *power_loss,
                Persistence::Always => false,
            }
        }
        What::Stop { process, .. } => {
            schedule.servers().contains(process) && schedule.redis.persistence == Persistence::None
        }
        What::Promote { .. } => true,
        What::Evict { part, .. } => *part != Some(Part::Owner),
        _ => false,
    }
}
