//! Random schedules: every option is drawn first, then the faults, each from a site of its own.
//!
//! Drawn schedules look for faults of the library and of the resource, so workers make no mistake of their
//! own: none releases by GET and DEL. What they may leave undone (the check, the fenced read, the renewal)
//! is drawn.

use crate::entropy::{Entropy, Site};
use crate::faults::Faults;

use super::fault_class::FaultClass;
use super::options::{self, Options};
use super::servers::{Persistence, Redis, Resource, Store};
use super::system::System;
use super::worker::{ReadMode, ReleaseMode, Worker};
use crate::faults::Fault;
use crate::sim::{Latency, Network, Schedule};
use crate::span::Span;

/// The most faults of a drawn schedule.
const FAULTS_MAX: u64 = 4;

/// How long a worker may need for a handover at most: the longest backoff of the library (2 s), and the
/// requests.
const HANDOVER: Span = Span::from_secs(3);

/// How long a waiter may wait once no lease and no fault stands in its way: a handover, and an answer that
/// is waited for in vain before it.
const SERVED: Span = Span::from_secs(5);

/// What a write and its retries may take.
const WRITES: Span = Span::from_secs(10);

/// The schedule number `seed`, of whichever system: see [`draw_for`].
pub fn draw(seed: u64) -> Schedule<Options> {
    let weighed = System::ALL.iter().flat_map(|system| vec![*system; system.get().weight()]);
    let weighed: Vec<System> = weighed.collect();
    draw_for(one_of(&mut Entropy::new(seed).site("draw: system"), &weighed), seed)
}

/// The schedule of `system` number `seed`: 2 to 4 workers, up to 4 faults, always one that
/// [`Schedule::validate`] accepts. Its own seed is `seed`, too. It expects nothing, so both arms are run.
///
/// Every fault heals by itself, and `limit` leaves time for all of them and for the workers to finish.
pub fn draw_for(system: System, seed: u64) -> Schedule<Options> {
    let entropy = Entropy::new(seed);
    let mut schedule = draw_options(system, &mut entropy.site("draw: options"));
    schedule.about = format!("drawn from seed {seed}");
    schedule.seed = seed;
    let count = entropy.site("draw: faults").below(FAULTS_MAX + 1);
    for number in 1..=count {
        let Some(fault) = numbered_fault(&schedule, &entropy, number) else { continue };
        schedule.faults.push(fault);
        // A second promotion, say: left out, which moves no other fault.
        if schedule.validate().is_err() {
            schedule.faults.pop();
        }
    }
    schedule.limit = long_enough(&schedule);
    schedule
}

/// The schedule of `system` number `seed` in which one fault of `class` strikes, if the system can have
/// one: as [`draw_for`], and otherwise undisturbed.
pub fn draw_class(system: System, class: FaultClass, seed: u64) -> Option<Schedule<Options>> {
    let entropy = Entropy::new(seed);
    let mut schedule = draw_options(system, &mut entropy.site("draw: options"));
    schedule.about = format!("{class} on {system}, drawn from seed {seed}");
    schedule.seed = seed;
    schedule.options.redis.replica = class == FaultClass::Failover && class.applies_to(system);
    for worker in &mut schedule.options.workers {
        // A drop is a fault of its own.
        worker.cancel_at.clear();
    }
    let mut site = entropy.site(&format!("draw: {class}"));
    schedule.faults = class.draw(&schedule, &mut site)?;
    schedule.limit = long_enough(&schedule);
    Some(schedule)
}

/// One of `choices`, which must not be empty.
fn one_of<T: Copy>(site: &mut Site, choices: &[T]) -> T {
    choices[site.below(choices.len() as u64) as usize]
}

/// A span between two, in whole milliseconds, since people read it.
fn span(site: &mut Site, min: Span, max: Span) -> Span {
    let millis = |span: Span| span.as_nanos() / 1_000_000;
    Span::from_millis(site.range_nanos(millis(min), millis(max)))
}

/// Each from a site of its own, and from the options: no fault knows of another.
fn numbered_fault(schedule: &Schedule<Options>, entropy: &Entropy, number: u64) -> Option<Fault> {
    Faults::default().draw(schedule, &mut entropy.site(&format!("draw: fault {number}")))
}

fn draw_options(system: System, site: &mut Site) -> Schedule<Options> {
    let ttl = Span::from_millis(one_of(site, system.get().ttls_millis()));
    let workers = 2 + site.below(3);
    let two_keys = site.chance(0.15);
    let mut schedule = options::schedule("", system, ttl, Vec::new());
    schedule.network = draw_network(site);
    let redis = draw_redis(site);
    system.get().draw(site, redis, &mut schedule.options);
    schedule.options.resource = Resource { store: one_of(site, &[Store::Memory, Store::Redb]) };
    if two_keys {
        schedule.options.keys.push("orders:43".into());
    }
    for name in ["a", "b", "c", "d"].into_iter().take(workers as usize) {
        let worker = draw_worker(site, name, &schedule);
        schedule.options.workers.push(worker);
    }
    schedule.options.within = Some(SERVED);
    schedule
}

fn draw_network(site: &mut Site) -> Network {
    let min = Span::from_nanos(site.range_nanos(2, 20) * 100_000);
    let max = min.plus(span(site, Span::from_millis(1), Span::from_millis(20)));
    Network { latency: Latency { min, max } }
}

fn draw_redis(site: &mut Site) -> Redis {
    let persistence = one_of(site, Persistence::ALL);
    Redis { persistence, replica: site.chance(0.25), ..Redis::default() }
}

fn draw_worker(site: &mut Site, name: &str, schedule: &Schedule<Options>) -> Worker {
    let ttl = schedule.options.ttl;
    // Far within the lease, close to its end, or beyond it.
    let longest = one_of(site, &[Span::from_millis(50), ttl, ttl.times(2)]);
    let key = one_of(site, &[0, schedule.options.keys.len() - 1]);
    Worker {
        name: name.into(),
        starts: span(site, Span::ZERO, Span::from_millis(500)),
        rounds: 1 + site.below(3) as u32,
        key: schedule.options.keys.get(key).filter(|_| key > 0).cloned(),
        think: one_of(site, &[Span::ZERO, Span::from_millis(5), Span::from_millis(200)]),
        deadline: span(site, ttl, Span::from_secs(20)),
        work: span(site, Span::from_millis(1), longest),
        check: site.chance(0.7),
        read: one_of(site, ReadMode::ALL),
        renew: site.chance(0.3),
        release: if site.chance(0.1) { ReleaseMode::None } else { ReleaseMode::Script },
        writes: if site.chance(0.2) { 2 } else { 1 },
        retry_put: site.chance(0.8),
        cancel_at: draw_cancels(site),
        ..Worker::default()
    }
}

/// For one worker in ten, the await point at which its first acquire is dropped.
fn draw_cancels(site: &mut Site) -> Vec<u32> {
    let (cancels, pending) = (site.chance(0.1), 1 + site.below(6) as u32);
    if cancels { vec![pending] } else { Vec::new() }
}

/// How long a waiter may wait at all: a lock that is not fair may serve all rounds of all others first.
fn long_service(schedule: &Schedule<Options>) -> Span {
    schedule.options.workers.iter().fold(HANDOVER, |sum, worker| {
        let held = schedule.options.ttl.plus(worker.work).plus(HANDOVER);
        sum.plus(held.times(u64::from(worker.rounds)))
    })
}

/// When the slowest worker is done at the latest, each fault having held it up in turn, and the last lease
/// is over.
fn long_enough(schedule: &Schedule<Options>) -> Span {
    let busy = schedule.options.workers.iter().map(|worker| {
        let round = worker.deadline.plus(worker.work).plus(worker.think).plus(WRITES);
        worker.starts.plus(round.times(u64::from(worker.rounds)))
    });
    let faults = schedule.faults.iter().fold(Span::ZERO, |sum, fault| {
        sum.plus(fault.when.plus()).plus(fault.what.heals_after(schedule).unwrap_or_default())
    });
    let served = faults.plus(long_service(schedule));
    let end = busy.max().unwrap_or_default().plus(served).plus(schedule.options.ttl);
    Span::from_secs(end.as_nanos().div_ceil(1_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_the_same_whichever_others_were_drawn() {
        let mut several = 0;
        for seed in 0..200 {
            let (entropy, schedule) = (Entropy::new(seed), draw_for(System::Redis, seed));
            let mut options = schedule.clone();
            options.faults.clear();
            // All that could have been drawn, the last first: what the schedule has is among them, in order.
            let mut faults: Vec<_> = (1..=FAULTS_MAX)
                .rev()
                .filter_map(|number| numbered_fault(&options, &entropy, number))
                .collect();
            faults.reverse();
            several += usize::from(schedule.faults.len() > 1);
            assert_ne!(faults[0], faults[1], "seed {seed}");
            let mut drawn = faults.iter();
            assert!(schedule.faults.iter().all(|fault| drawn.any(|other| other == fault)), "seed {seed}");
        }
        assert!(several > 50, "only {several} schedules have several faults");
    }
}
