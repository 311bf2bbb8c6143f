//! The core phase of random schedules, and the options with which its workers can show that they are served.

use sim::sim::draw_core;
use sim::{CorePhase, Draw, Schedule, Span};

use super::options::Options;

/// The time for which a worker of the core waits beyond the limit of the verdict `stuck`: the verdict comes
/// before it gives up.
const BEYOND: Span = Span::from_secs(5);

/// Draws a core phase for one schedule in four. It begins while the workers work, or one of them starts
/// during it.
pub(super) fn choose(schedule: &mut Schedule<Options>, from: &Draw) {
    let mut site = from.site("core");
    let (quorum, latest) =
        (schedule.options.system.get().quorum(&schedule.options), schedule.options.ttl.times(4));
    let quorums: Vec<_> = Some(quorum).into_iter().filter(|quorum| !quorum.is_empty()).collect();
    let clients: Vec<_> = schedule.options.workers.iter().map(|worker| worker.name.clone()).collect();
    let Some(core) = draw_core(&mut site, &quorums, &clients, latest) else { return };
    let options = &mut schedule.options;
    options.within = Some(options.within().plus(longest_ttl(options)));
    let deadline = bound(options).plus(longest_ttl(options)).plus(BEYOND);
    let mut inside: Vec<_> =
        options.workers.iter_mut().filter(|worker| !core.excludes(&worker.name)).collect();
    for worker in &mut inside {
        worker.deadline = worker.deadline.max(deadline);
    }
    let (starts_late, late) = (site.chance(0.5), site.below(inside.len().max(1) as u64) as usize);
    if let Some(worker) = inside.get_mut(late).filter(|_| starts_late) {
        worker.starts = core.at.plus(worker.starts);
    }
    schedule.core = Some(core);
}

/// Returns the latest end of the core phase's first wait, for the limit of a schedule.
pub(super) fn ends(core: &CorePhase, options: &Options) -> Span {
    core.at.plus(bound(options)).plus(longest_ttl(options)).plus(BEYOND)
}

/// Returns the longest time in which a worker of the core must be served.
fn bound(options: &Options) -> Span {
    let retry = options.longest_retry();
    options.within().plus(longest_ttl(options)).plus(retry.times(options.workers.len() as u64))
}

fn longest_ttl(options: &Options) -> Span {
    options.workers.iter().map(|worker| options.ttl_of(worker)).max().unwrap_or(options.ttl)
}
