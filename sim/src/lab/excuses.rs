//! The known limits: which verdicts a schedule's own choices explain.

use std::collections::BTreeSet;

use resource::audit::VerdictKind as Verdict;

use super::arm::Arm;
use super::options::Options;
use super::worker::{ReadMode, ReleaseMode};
use crate::sim::Schedule;

/// The verdicts that a run of the schedule may have without a promise being broken.
///
/// - `overlap`: always. Every lock that releases itself allows it under a pause, and no fence can prevent it.
/// - Without fencing, `stale_write`, `late_write` and `lost_update`: that is what fencing is for.
/// - `late_write` and `lost_update` with fencing, if a worker reads without claiming: write-only fencing has that hole.
/// - What its faults explain: [`Action::excuses`](crate::faults::Action::excuses). `token_regressed` where the counter may
///   be lost (the writes of the regressed grants are then refused; what was accepted stays safe), `stuck` where the clock of
///   a Redis server is set back or slowed.
/// - `foreign_release`, if a worker releases by GET and DEL.
pub fn excused(schedule: &Schedule<Options>, arm: Arm) -> BTreeSet<Verdict> {
    let mut excused = BTreeSet::from([Verdict::Overlap]);
    if arm == Arm::Unfenced {
        excused.extend([Verdict::StaleWrite, Verdict::LateWrite, Verdict::LostUpdate]);
    }
    if schedule.options.workers.iter().any(|worker| worker.read == ReadMode::Plain) {
        excused.extend([Verdict::LateWrite, Verdict::LostUpdate]);
    }
    excused.extend(schedule.faults.iter().flat_map(|fault| fault.what.excuses(schedule)));
    if schedule.options.workers.iter().any(|worker| worker.release == ReleaseMode::GetDel) {
        excused.insert(Verdict::ForeignRelease);
    }
    excused
}
