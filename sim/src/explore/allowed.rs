//! The known limits: which verdicts a schedule's own choices explain.

use std::collections::BTreeSet;

use dlock::DriftMargin;

use crate::schedule::{Arm, Part, Persistence, ReadMode, ReleaseMode, Schedule, Span, Verdict, What};

/// The verdicts that a run of the schedule may have without a promise being broken.
///
/// - `overlap`: always. Every lock that releases itself allows it under a pause, and no fence can prevent it.
/// - Without fencing, `stale_write`, `late_write` and `lost_update`: that is what fencing is for.
/// - `late_write` and `lost_update` with fencing, if a worker reads without claiming: write-only fencing has
///   that hole.
/// - `token_regressed` where the counter may be lost: no persistence that outlives the crash, a lagging
///   replica, an eviction. The writes of the regressed grants are then refused; what was accepted stays safe.
/// - `stuck` where the clock of a Redis server is set back or slowed: a key that nobody releases lives by
///   that clock.
/// - `foreign_release`, if a worker releases by GET and DEL.
/// - `two_valid` and `unheld` where a server may lose the lock that it had granted, as above, or may end it
///   early by a clock that is set forward, or where clocks run apart by more than the drift margin. No pause
///   and no network excuses them.
/// - `leaked` where a replica that takes over may not have heard that the lock was released.
pub fn allowed(schedule: &Schedule, arm: Arm) -> BTreeSet<Verdict> {
    let mut allowed = BTreeSet::from([Verdict::Overlap]);
    if arm == Arm::Unfenced {
        allowed.extend([Verdict::StaleWrite, Verdict::LateWrite, Verdict::LostUpdate]);
    }
    if schedule.workers.iter().any(|worker| worker.read == ReadMode::Plain) {
        allowed.extend([Verdict::LateWrite, Verdict::LostUpdate]);
    }
    if schedule.faults.iter().any(|fault| may_lose(schedule, &fault.what, Part::Fence)) {
        allowed.insert(Verdict::TokenRegressed);
    }
    let loses_locks = schedule.faults.iter().any(|fault| may_lose(schedule, &fault.what, Part::Owner));
    if loses_locks || sets_a_server_forward(schedule) || clocks_run_apart(schedule) {
        allowed.extend([Verdict::TwoValid, Verdict::Unheld]);
    }
    if schedule.faults.iter().any(|fault| matches!(fault.what, What::Promote { .. })) {
        allowed.insert(Verdict::Leaked);
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

/// Whether the wall clock of a Redis server is set forward: it then ends leases early.
fn sets_a_server_forward(schedule: &Schedule) -> bool {
    let is_redis = |process: &String| schedule.cluster().is_none() && schedule.servers().contains(process);
    schedule.faults.iter().any(|fault| match &fault.what {
        What::Step { process, by } => is_redis(process) && by.as_nanos() > 0,
        _ => false,
    })
}

/// Whether some holder's clock may lag behind some server's by more than the drift margin of a lease covers.
fn clocks_run_apart(schedule: &Schedule) -> bool {
    let (mut slowest, mut fastest) = (1.0_f64, 1.0_f64);
    for fault in &schedule.faults {
        let (process, rate) = match &fault.what {
            What::Rate { process, factor, .. } => (process, *factor),
            What::Slew { process, by, over } => {
                (process, 1.0 + by.as_nanos() as f64 / over.as_nanos().max(1) as f64)
            }
            _ => continue,
        };
        if schedule.worker(process).is_some() {
            slowest = slowest.min(rate);
        } else if schedule.servers().contains(process) {
            fastest = fastest.max(rate);
        }
    }
    schedule.workers.iter().any(|worker| {
        let ttl = schedule.ttl_of(worker).duration();
        let margin = schedule.drift_margin.map_or(DriftMargin::default().of(ttl), Span::duration);
        let trusted = ttl.saturating_sub(margin).as_secs_f64();
        trusted / slowest > ttl.as_secs_f64() / fastest
    })
}

/// Whether the fault may take from a lock server what it has acknowledged, of this part of the lock's data.
fn may_lose(schedule: &Schedule, what: &What, part: Part) -> bool {
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
        What::Evict { part: evicted, .. } => evicted.is_none_or(|evicted| evicted == part),
        _ => false,
    }
}
