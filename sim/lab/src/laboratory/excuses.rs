//! The known limits: the verdicts that a schedule's options and faults explain.

use std::collections::BTreeSet;
use std::time::Duration;

use dlock::DriftMargin;
use history::VerdictKind as Verdict;
use sim::faults::{Action, Fault, Promote, Scene};
use sim::{Schedule, Span};

use super::arm::Arm;
use super::options::{Options, RESOURCE};
use super::scene::LabScene;
use super::servers::Store;
use super::worker::{ReadMode, ReleaseMode, Worker};

/// Returns the verdicts that are no violation in a run of the schedule.
///
/// - `overlap`: always. Every lock whose leases expire allows it under a pause, and fencing can't prevent it.
///   Nothing excuses `after_release`: it is the client's own mistake.
/// - `stale_write`, `late_write`, `lost_update`, `ran_twice`, `task_lost` and `old_result` without fencing,
///   which exists to prevent them.
/// - `late_write` and `lost_update` with fencing, if a worker reads without claiming: fencing of writes alone
///   does not prevent them.
/// - The same verdicts, if a resource that keeps its tokens in memory is restarted. A search draws no such
///   fault, but shrinking could come to one.
/// - The verdicts that its faults explain, and the crashes of servers outside its core:
///   [`Action::excuses`](sim::faults::Action::excuses).
///   `token_regressed` if the counter may be lost (the writes of the regressed grants are then refused;
///   accepted writes stay safe). `stuck` if the clock of a Redis server is set back or slowed. `two_valid`
///   and `unheld` if a server may lose a lock that it has granted, or end it early after its clock is set
///   forward. `leaked` if a promoted replica may not have received the release, or if an acquire may be
///   delivered again after it. No pause and no other fault of the network excuses these.
/// - `stale_write` and `late_write`, if the counter of a semaphore may be lost: a token that is given again
///   may be that of a permit beside the highest, and the resource can't tell the two apart.
/// - `task_lost`, if the server of a job queue may lose writes: it loses the jobs that these have stored.
/// - `stuck` and `idle`, if a lock server may return to a state from before a release, and so keeps the key
///   for a TTL that is longer than a waiter may wait.
/// - `unfair` and `crowded`, if a Redis may lose its queue so.
/// - `two_valid` and `unheld`, if clocks run apart by more than the drift margin.
/// - `foreign_release`, if a worker releases by GET and DEL.
pub fn excused(schedule: &Schedule<Options>, arm: Arm) -> BTreeSet<Verdict> {
    let scene = LabScene(schedule);
    let mut excused = BTreeSet::from([Verdict::Overlap]);
    if arm == Arm::Unfenced {
        excused.extend(UNFENCED);
    }
    if schedule.options.workers.iter().any(|worker| worker.read == ReadMode::Plain) {
        excused.extend([Verdict::LateWrite, Verdict::LostUpdate]);
    }
    let restarts = |fault: &Fault| fault.what.ends().is_some_and(|(process, _)| process == RESOURCE);
    if schedule.options.resource.store == Store::Memory && schedule.faults.iter().any(restarts) {
        excused.extend(UNFENCED);
    }
    excused.extend(schedule.faults.iter().flat_map(|fault| fault.what.excuses(&scene)));
    if schedule.options.permits.is_some() && excused.contains(&Verdict::TokenRegressed) {
        excused.extend([Verdict::StaleWrite, Verdict::LateWrite]);
    }
    let runs_jobs = schedule.options.workers.iter().any(Worker::runs_jobs);
    if runs_jobs && excused.contains(&Verdict::TokenRegressed) {
        excused.insert(Verdict::TaskLost);
    }
    if falls_back(&scene) && longest_ttl(schedule) > SHORT {
        excused.extend([Verdict::Stuck, Verdict::Idle]);
    }
    if falls_back(&scene) && schedule.options.waiters_max.is_some() {
        excused.extend([Verdict::Unfair, Verdict::Crowded]);
    }
    let outside = schedule.core.iter().flat_map(|core| core.crashes());
    excused.extend(outside.flat_map(|crash| crash.excuses(&scene)));
    if clocks_run_apart(schedule) {
        excused.extend([Verdict::TwoValid, Verdict::Unheld]);
    }
    if schedule.options.workers.iter().any(|worker| worker.release == ReleaseMode::GetDel) {
        excused.insert(Verdict::ForeignRelease);
    }
    excused
}

/// The verdicts on writes, tasks and results that a resource without fencing, or without its memory, allows.
const UNFENCED: [Verdict; 6] = [
    Verdict::StaleWrite,
    Verdict::LateWrite,
    Verdict::LostUpdate,
    Verdict::RanTwice,
    Verdict::TaskLost,
    Verdict::OldResult,
];

/// The longest TTL that ends before a waiter counts as stuck, or a lock as idle.
const SHORT: Duration = Duration::from_secs(4);

/// Returns true if a release that a lock server has carried out may be undone: the server is killed before it
/// has stored the release, or its replica is promoted.
fn falls_back(scene: &LabScene<'_>) -> bool {
    let ends_server = |what: &dyn Action| what.ends().is_some_and(|(name, _)| scene.expires_keys(name));
    let is_meant = |what: &dyn Action| what.downcast_ref::<Promote>().is_some() || ends_server(what);
    scene.faults.iter().any(|fault| is_meant(&*fault.what))
}

fn longest_ttl(schedule: &Schedule<Options>) -> Duration {
    let options = &schedule.options;
    options.workers.iter().map(|worker| options.ttl_of(worker).duration()).max().unwrap_or_default()
}

/// Returns true if a holder's clock may lag behind a server's by more than a lease's drift margin covers.
fn clocks_run_apart(schedule: &Schedule<Options>) -> bool {
    let options = &schedule.options;
    let (mut slowest, mut fastest) = (1.0_f64, 1.0_f64);
    for fault in &schedule.faults {
        let Some((process, rate)) = fault.what.clock_rate() else { continue };
        if options.worker(process).is_some() {
            slowest = slowest.min(rate);
        } else if options.servers().iter().any(|server| server == process) {
            fastest = fastest.max(rate);
        }
    }
    options.workers.iter().any(|worker| {
        let ttl = options.ttl_of(worker).duration();
        let margin = options.drift_margin.map_or(DriftMargin::default().of(ttl), Span::duration);
        let trusted = ttl.saturating_sub(margin).as_secs_f64();
        trusted / slowest > ttl.as_secs_f64() / fastest
    })
}
