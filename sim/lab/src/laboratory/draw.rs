//! Draws random schedules: first all options, then the faults, each from a site of its own.
//!
//! Drawn schedules search for mistakes of the library and of the resource, so their workers make none: none
//! releases by GET and DEL. The steps that a worker may leave out (the check, the fenced read, the renewal)
//! are drawn.

use sim::entropy::{Entropy, Site};
use sim::faults::{Class, FaultDraw, Faults};
use sim::sim::{Latency, Network};
use sim::{Draw, Schedule, Span, Step};

use super::core;
use super::options::{self, Options};
use super::scene::LabScene;
use super::servers::{Persistence, Redis, Resource, Store};
use super::system::System;
use super::validate::validate;
use super::wide::widen;
use super::worker::{ReadMode, ReleaseMode, Worker};

/// The share of drawn schedules whose system has no lock.
const WITHOUT_LOCK: f64 = 0.04;

/// Longest time of a handover: the longest backoff of the library (2 s), and the requests.
const HANDOVER: Span = Span::from_secs(3);

/// Longest wait of a waiter that no lease and no fault blocks: a request without an answer, then a handover.
const SERVED: Span = Span::from_secs(5);

/// Longest time of a write and its retries.
const WRITES: Span = Span::from_secs(10);

/// Draws the schedule of `seed`, for a system that is drawn, too: see [`draw_for`].
pub fn draw(seed: u64) -> Schedule<Options> {
    draw_for(system(seed), seed)
}

/// Draws the system of the schedule of `seed`.
pub(super) fn system(seed: u64) -> System {
    let entropy = Entropy::new(seed);
    let has_lock = !entropy.site("draw: without a lock").chance(WITHOUT_LOCK);
    let drawn = System::searched().filter(|system| system.has_lock() == has_lock);
    let weighed: Vec<System> = drawn.flat_map(|system| vec![system; system.get().weight()]).collect();
    entropy.site("draw: system").one_of(&weighed)
}

/// Draws the schedule of `seed` for `system` by the uniform strategy: 2 to 4 workers and up to 4 faults. All
/// its runs have the same seed. It expects nothing, so both arms are run. [`validate`] accepts it.
///
/// Every fault heals by itself, and `limit` leaves time for all of them and for the workers to finish.
pub fn draw_for(system: System, seed: u64) -> Schedule<Options> {
    let from = Draw::new(seed);
    with_faults(plain(system, &from), &from, &Faults::default(), &|_| Vec::new())
}

/// Draws the options of the schedule of `seed` for `system`, as [`draw_from`] does.
pub(super) fn options_for(system: System, seed: u64, tls: bool) -> Options {
    wide(system, &Draw::new(seed), tls).options
}

fn plain(system: System, from: &Draw) -> Schedule<Options> {
    let mut schedule = draw_options(system, &mut from.site("options"));
    schedule.about = from.about();
    schedule.seed = from.seed();
    schedule
}

fn wide(system: System, from: &Draw, tls: bool) -> Schedule<Options> {
    let mut schedule = plain(system, from);
    widen(&mut schedule, from, tls);
    schedule
}

/// Draws a schedule of a search by the strategy of `from`: with the rarer options and faults ([`widen`],
/// [`Faults::widely`]), and in some cases with a core phase ([`core::choose`]). `steps` runs a schedule
/// without faults. `tls` is true if lock servers may be over TLS.
pub(super) fn draw_from(
    system: System,
    from: &Draw,
    tls: bool,
    steps: &dyn Fn(&Schedule<Options>) -> Vec<Step>,
) -> Schedule<Options> {
    let mut schedule = wide(system, from, tls);
    core::choose(&mut schedule, from);
    with_faults(schedule, from, &Faults::default().widely(), steps)
}

/// Adds faults of the kinds in `known` by the strategy of `from`.
fn with_faults(
    mut schedule: Schedule<Options>,
    from: &Draw,
    known: &Faults,
    steps: &dyn Fn(&Schedule<Options>) -> Vec<Step>,
) -> Schedule<Options> {
    let faults = from.faults(known, &LabScene(&schedule), &|| {
        let limit = long_enough(&schedule);
        steps(&Schedule { limit, ..schedule.clone() })
    });
    for fault in faults {
        schedule.faults.push(fault);
        // Leave out an invalid fault, such as a second promotion. This changes no other fault.
        if validate(&schedule).is_err() {
            schedule.faults.pop();
        }
    }
    schedule.limit = long_enough(&schedule);
    schedule
}

/// Draws the schedule of `seed` for `system` as [`draw_for`] does, but with one fault of `class` and no
/// other. Returns `None` if the system can't have such a fault.
pub fn draw_class(system: System, class: &Class, seed: u64) -> Option<Schedule<Options>> {
    if !system.has_class(class) {
        return None;
    }
    let entropy = Entropy::new(seed);
    let mut schedule = draw_options(system, &mut entropy.site("draw: options"));
    schedule.about = format!("{class} on {system}, drawn from seed {seed}");
    schedule.seed = seed;
    system.get().deploy_for(class.needs, &mut schedule.options);
    for worker in &mut schedule.options.workers {
        // A dropped acquire is a fault of its own.
        worker.cancel_at.clear();
    }
    let mut site = entropy.site(&format!("draw: {class}"));
    schedule.faults = (class.draw)(&mut FaultDraw { scene: &LabScene(&schedule), site: &mut site });
    schedule.limit = long_enough(&schedule);
    Some(schedule)
}

/// Draws a span from `min` to `max` in whole milliseconds, which are easy to read.
fn span(site: &mut Site, min: Span, max: Span) -> Span {
    let millis = |span: Span| span.as_nanos() / 1_000_000;
    Span::from_millis(site.range_nanos(millis(min), millis(max)))
}

fn draw_options(system: System, site: &mut Site) -> Schedule<Options> {
    let ttl = Span::from_millis(site.one_of(system.get().ttls_millis()));
    let workers = 2 + site.below(3);
    let two_keys = site.chance(0.15);
    let mut schedule = options::schedule("", system, ttl, Vec::new());
    schedule.network = draw_network(site);
    let redis = draw_redis(site);
    system.get().draw(site, redis, &mut schedule.options);
    schedule.options.resource = Resource { store: site.one_of(&[Store::Memory, Store::Redb]) };
    if two_keys {
        schedule.options.keys.push("orders:43".into());
    }
    for name in ["a", "b", "c", "d"].into_iter().take(workers as usize) {
        let worker = draw_worker(site, name, &schedule);
        schedule.options.workers.push(worker);
    }
    schedule.options.within = Some(SERVED);
    system.get().suit(&mut schedule.options, site);
    schedule
}

fn draw_network(site: &mut Site) -> Network {
    let min = Span::from_nanos(site.range_nanos(2, 20) * 100_000);
    let max = min.plus(span(site, Span::from_millis(1), Span::from_millis(20)));
    Network { latency: Latency { min, max } }
}

fn draw_redis(site: &mut Site) -> Redis {
    let persistence = site.one_of(Persistence::ALL);
    Redis { persistence, replica: site.chance(0.25), ..Redis::default() }
}

fn draw_worker(site: &mut Site, name: &str, schedule: &Schedule<Options>) -> Worker {
    let ttl = schedule.options.ttl;
    // The longest work: far within the lease, up to its end, or beyond it.
    let longest = site.one_of(&[Span::from_millis(50), ttl, ttl.times(2)]);
    let key = site.one_of(&[0, schedule.options.keys.len() - 1]);
    Worker {
        name: name.into(),
        starts: span(site, Span::ZERO, Span::from_millis(500)),
        rounds: 1 + site.below(3) as u32,
        key: schedule.options.keys.get(key).filter(|_| key > 0).cloned(),
        think: site.one_of(&[Span::ZERO, Span::from_millis(5), Span::from_millis(200)]),
        deadline: span(site, ttl, Span::from_secs(20)),
        work: span(site, Span::from_millis(1), longest),
        check: site.chance(0.7),
        read: site.one_of(ReadMode::ALL),
        renew: site.chance(0.3),
        release: if site.chance(0.1) { ReleaseMode::None } else { ReleaseMode::Script },
        writes: if site.chance(0.2) { 2 } else { 1 },
        retry_put: site.chance(0.8),
        cancel_at: draw_cancels(site),
        ..Worker::default()
    }
}

/// Draws, for one worker in ten, the await point at which its first acquire is dropped.
fn draw_cancels(site: &mut Site) -> Vec<u32> {
    let (cancels, pending) = (site.chance(0.1), 1 + site.below(6) as u32);
    if cancels { vec![pending] } else { Vec::new() }
}

/// Returns the longest wait of a waiter: an unfair lock may serve all rounds of all others first.
fn long_service(schedule: &Schedule<Options>) -> Span {
    schedule.options.workers.iter().fold(HANDOVER, |sum, worker| {
        let held = schedule.options.ttl.plus(worker.work).plus(HANDOVER);
        sum.plus(held.times(u64::from(worker.rounds) * works(schedule, worker)))
    })
}

/// Returns a time at which the slowest worker is done, even if every fault has delayed it, and the last lease
/// has ended.
pub(super) fn long_enough(schedule: &Schedule<Options>) -> Span {
    let busy = schedule.options.workers.iter().map(|worker| {
        let wait = match () {
            () if worker.fires() => schedule.options.cron.every,
            // The wait for the answers of the queue and of the resource.
            () if worker.runs_jobs() => worker.deadline.times(3),
            () => Span::ZERO,
        };
        let work = worker.work.plus(WRITES).times(works(schedule, worker));
        let round = worker.deadline.plus(work).plus(worker.think).plus(wait);
        worker.starts.plus(round.times(u64::from(worker.rounds)))
    });
    let faults = schedule.faults.iter().fold(Span::ZERO, |sum, fault| {
        sum.plus(fault.when.plus()).plus(fault.what.heals_after(&LabScene(schedule)).unwrap_or_default())
    });
    let phase = schedule.core.as_ref().map(|core| core::ends(core, &schedule.options));
    let served = faults.plus(long_service(schedule)).plus(phase.unwrap_or_default());
    let end = busy.max().unwrap_or_default().plus(served).plus(schedule.options.ttl);
    Span::from_secs(end.as_nanos().div_ceil(1_000_000_000))
}

/// Returns the most pieces of work of one round of the worker.
fn works(schedule: &Schedule<Options>, worker: &Worker) -> u64 {
    schedule.options.works_of(worker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_does_not_depend_on_the_others() {
        let mut several = 0;
        for seed in 0..200 {
            let (from, schedule) = (Draw::new(seed), draw_for(System::REDIS, seed));
            let options = Schedule { faults: Vec::new(), ..schedule.clone() };
            // All faults that can be drawn. Those of the schedule are among them, in order.
            let draw = |number| {
                Faults::default().draw(&LabScene(&options), &mut from.site(&format!("fault {number}")))
            };
            let faults: Vec<_> = (1..=4).filter_map(draw).collect();
            several += usize::from(schedule.faults.len() > 1);
            assert_ne!(faults[0], faults[1], "seed {seed}");
            let mut drawn = faults.iter();
            assert!(schedule.faults.iter().all(|fault| drawn.any(|other| other == fault)), "seed {seed}");
        }
        assert!(several > 50, "only {several} schedules have several faults");
    }
}
