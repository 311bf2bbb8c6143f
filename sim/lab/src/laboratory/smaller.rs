//! Smaller options, for shrinking: fewer workers, keys, nodes, rounds and writes, and defaults for the rest.

use sim::Span;

use super::cron::{Cron, TickStore};
use super::options::Options;
use super::servers::Resource;
use super::worker::{Worker, WorkerMode};

/// Returns smaller options, those that leave out most first. Some are not valid.
pub(super) fn smaller(options: &Options) -> Vec<Options> {
    let mut smaller = fewer_workers(options);
    smaller.extend(fewer_keys(options));
    smaller.extend(simpler_servers(options));
    for number in 0..options.workers.len() {
        let simpler = simpler_workers(&options.workers[number]).into_iter();
        smaller.extend(simpler.map(|worker| {
            let mut options = options.clone();
            options.workers[number] = worker;
            options
        }));
    }
    smaller.retain(|other| other != options);
    smaller
}

fn fewer_workers(options: &Options) -> Vec<Options> {
    let without = |number: usize| {
        let mut options = options.clone();
        options.workers.remove(number);
        options
    };
    (0..options.workers.len()).rev().map(without).collect()
}

/// Returns options with all workers on one key, and options with only the keys that workers lock.
fn fewer_keys(options: &Options) -> Vec<Options> {
    if options.keys.len() < 2 {
        return Vec::new();
    }
    let on_one = |key: &String| {
        let mut options = Options { keys: vec![key.clone()], ..options.clone() };
        for worker in &mut options.workers {
            (worker.key, worker.keys) = (None, Vec::new());
            worker.mode = if worker.locks_several() { WorkerMode::default() } else { worker.mode.clone() };
        }
        options
    };
    let mut smaller: Vec<Options> = options.keys.iter().map(on_one).collect();
    let mut used = options.clone();
    used.keys
        .retain(|key| options.workers.iter().any(|worker| options.keys_of(worker).contains(&key.as_str())));
    // Without a key of its own, a worker locks the first one.
    for (used, worker) in used.workers.iter_mut().zip(&options.workers) {
        used.key = (!worker.locks_several()).then(|| options.key_of(worker).to_owned());
    }
    smaller.extend((used.keys.len() < options.keys.len()).then_some(used));
    smaller
}

fn simpler_servers(options: &Options) -> Vec<Options> {
    let mut smaller = options.system.get().simpler(options);
    smaller.push(Options { resource: Resource::default(), ..options.clone() });
    smaller.push(Options { tls: false, ..options.clone() });
    smaller.push(Options { permits: None, ..options.clone() });
    smaller.push(Options { waiters_max: None, ..options.clone() });
    smaller.push(without_readers(options));
    smaller.push(Options { cron: Cron::default(), ..options.clone() });
    smaller.push(Options { cron: Cron { record: TickStore::default(), ..options.cron }, ..options.clone() });
    smaller.push(Options { drift_margin: None, ..options.clone() });
    smaller.push(Options { within: None, ..options.clone() });
    smaller
}

/// Returns options whose locks are mutexes.
fn without_readers(options: &Options) -> Options {
    let mut options = Options { readers: false, ..options.clone() };
    for worker in &mut options.workers {
        worker.shared = false;
        worker.mode = if worker.upgrades() { WorkerMode::default() } else { worker.mode.clone() };
    }
    options
}

/// The changes that make a worker simpler.
const SIMPLER: &[fn(&mut Worker)] = &[
    |worker| worker.rounds = 1,
    |worker| worker.rounds = worker.rounds.saturating_sub(1).max(1),
    |worker| worker.writes = 1,
    |worker| worker.cancel_at.clear(),
    |worker| worker.think = Span::ZERO,
    |worker| worker.starts = Span::ZERO,
    |worker| worker.shared = false,
    |worker| worker.retry_every = None,
    |worker| worker.ttl = None,
    |worker| worker.renew_cap = None,
    |worker| (worker.renew, worker.renew_cap) = (false, None),
    |worker| worker.read = Worker::default().read,
    |worker| worker.release = Worker::default().release,
    |worker| worker.retry_put = Worker::default().retry_put,
    |worker| worker.check = Worker::default().check,
    |worker| worker.deadline = Worker::default().deadline,
    |worker| worker.work = Worker::default().work,
    |worker| worker.attempts = None,
    |worker| worker.keys.truncate(2),
    |worker| worker.depth = None,
    |worker| worker.fails = None,
    |worker| worker.jobs = worker.jobs.map(|_| 1),
];

fn simpler_workers(worker: &Worker) -> Vec<Worker> {
    let plain = Worker {
        name: worker.name.clone(),
        mode: worker.mode.clone(),
        key: worker.key.clone(),
        keys: worker.keys.clone(),
        shared: worker.shared,
        jobs: worker.jobs,
        ..Worker::default()
    };
    let changed = SIMPLER.iter().map(|change| {
        let mut worker = worker.clone();
        change(&mut worker);
        worker.cancel_at.truncate(worker.rounds as usize);
        worker
    });
    std::iter::once(plain).chain(changed).filter(|simpler| simpler != worker).collect()
}
