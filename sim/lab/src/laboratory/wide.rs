//! Options that only random schedules of a search have: workloads and modes that few schedules need. Each is
//! drawn rarely and from a site of its own.
//!
//! The comparison of the systems draws none of them, so that its rows differ only in the system and the class
//! of faults.

use sim::entropy::Site;
use sim::{Draw, Schedule, Span};

use super::options::Options;
use super::servers::{Recipe, Tokens, Waiting};
use super::system::System;
use super::validate::validate;
use super::worker::{Worker, WorkerMode};

/// The name, the probability and the code of a change of the options.
type Wider = (&'static str, f64, fn(&mut Options, &mut Site));

const WIDER: &[Wider] = &[
    ("many workers", 0.05, many_workers),
    ("one worker", 0.03, one_worker),
    ("many keys", 0.05, many_keys),
    ("long leases", 0.1, long_leases),
    ("times to live", 0.1, times_to_live),
    ("renewal caps", 0.1, renewal_caps),
    ("tokens by time", 0.15, tokens_by_time),
    ("called waiters", 0.25, called_waiters),
    ("Lock service", 0.15, lock_service),
    ("compare and set", 0.06, compare_and_set),
    ("first tokens", 0.1, first_tokens),
];

/// Draws the changes of the schedule. Leaves out a change that the rules refuse.
pub(super) fn widen(schedule: &mut Schedule<Options>, from: &Draw) {
    for (name, probability, change) in WIDER {
        let mut site = from.site(&format!("options: {name}"));
        if !site.chance(*probability) {
            continue;
        }
        let before = schedule.options.clone();
        change(&mut schedule.options, &mut site);
        if validate(schedule).is_err() {
            schedule.options = before;
        }
    }
}

/// Adds four workers that do as others do.
fn many_workers(options: &mut Options, site: &mut Site) {
    let drawn = options.workers.len();
    for name in ["e", "f", "g", "h"] {
        let mut worker = options.workers[site.below(drawn as u64) as usize].clone();
        worker.name = name.into();
        worker.rounds = 1;
        options.workers.push(worker);
    }
}

fn one_worker(options: &mut Options, _: &mut Site) {
    options.workers.truncate(1);
}

/// Gives the third to fifth worker a key of its own, so that these do not contend.
fn many_keys(options: &mut Options, _: &mut Site) {
    options.keys = (42..46).map(|number| format!("orders:{number}")).collect();
    for (number, worker) in options.workers.iter_mut().enumerate().skip(2) {
        worker.key = options.keys.get(number - 1).cloned();
    }
}

/// Makes leases longer than the retries of clients, which otherwise hide a missing cleanup.
fn long_leases(options: &mut Options, site: &mut Site) {
    options.ttl = Span::from_secs(10 + site.below(11));
    for worker in &mut options.workers {
        worker.deadline = worker.deadline.max(options.ttl);
    }
}

/// Gives the workers leases of different lengths.
fn times_to_live(options: &mut Options, site: &mut Site) {
    let ttls = options.system.get().ttls_millis();
    for worker in &mut options.workers {
        worker.ttl = Some(Span::from_millis(site.one_of(ttls)));
    }
}

fn renewal_caps(options: &mut Options, site: &mut Site) {
    let ttl = options.ttl;
    for worker in options.workers.iter_mut().filter(|worker| worker.renew) {
        worker.renew_cap = Some(site.one_of(&[ttl, ttl.times(2), ttl.times(4)]));
    }
}

fn tokens_by_time(options: &mut Options, _: &mut Site) {
    if matches!(options.system, System::Redis | System::Redlock) {
        options.redis.tokens = Tokens::Time;
    }
}

fn called_waiters(options: &mut Options, _: &mut Site) {
    if options.system == System::Redis {
        options.redis.waiting = Waiting::Called;
    }
}

fn lock_service(options: &mut Options, _: &mut Site) {
    if options.system == System::Etcd {
        options.etcd.recipe = Recipe::Service;
    }
}

/// The last tokens before a boundary at which tokens are compared wrongly as text, in 32 bits or as
/// floating-point numbers.
const BOUNDARIES: [u64; 4] = [9, 99, (1 << 32) - 1, 1 << 53];

/// Starts the counters at a boundary, or up to two tokens before it.
fn first_tokens(options: &mut Options, site: &mut Site) {
    if matches!(options.system, System::Redis | System::Redlock) {
        // Redlock and tokens by time count in Lua, which fails at the last boundary.
        let counts_in_lua = options.system == System::Redlock || options.redis.tokens == Tokens::Time;
        let boundaries = &BOUNDARIES[..BOUNDARIES.len() - usize::from(counts_in_lua)];
        options.redis.fence_start = site.one_of(boundaries) - site.below(3);
    }
}

/// Makes all workers do without the lock.
fn compare_and_set(options: &mut Options, _: &mut Site) {
    for worker in &mut options.workers {
        let Worker { name, starts, rounds, key, think, deadline, work, retry_put, .. } = worker.clone();
        let mode = WorkerMode::new("cas");
        *worker =
            Worker { name, mode, starts, rounds, key, think, deadline, work, retry_put, ..Worker::default() };
    }
}
