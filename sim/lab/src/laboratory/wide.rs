//! Options that only random schedules of a search have: workloads and modes that few schedules need. Each is
//! drawn rarely and from a site of its own.
//!
//! The comparison of the systems draws none of them, so that its rows differ only in the system and the class
//! of faults.

use sim::entropy::Site;
use sim::{Draw, Schedule, Span};

use super::options::Options;
use super::system::System;
use super::validate::validate;
use super::wider::Wider;
use super::worker::WorkerMode;

/// The changes that suit every system and workload.
const WIDER: &[Wider] = &[
    Wider::new("many workers", 0.05, many_workers),
    Wider::new("one worker", 0.03, one_worker),
    Wider::new("many keys", 0.05, many_keys),
    Wider::new("long leases", 0.1, long_leases),
    Wider::new("times to live", 0.1, times_to_live),
    Wider::new("renewal caps", 0.1, renewal_caps),
];

/// Lock servers over TLS, where the lock is the library's: those of others speak without it.
const TLS: Wider = Wider::new("tls", 0.1, |options, _| options.tls = has_time_for_handshakes(options));

/// The shortest TTL of a Redlock over TLS. It gives a node a tenth of it, 200 ms, within which the node is
/// connected to: about four round trips of at most 35 ms.
const REDLOCK_TLS_TTL_MIN: Span = Span::from_secs(2);

/// Semaphores, where the lock is the library's.
const PERMITS: Wider =
    Wider::new("permits", 0.1, |options, site| options.permits = Some(site.one_of(&[2, 2, 3])));

/// Readers beside a writer, where the lock is the library's.
const READERS: Wider = Wider::new("readers", 0.1, |options, site| {
    options.readers = true;
    for worker in &mut options.workers {
        worker.shared = site.chance(0.6) && worker.acquires() && !worker.locks_several();
    }
});

/// A limit of the waiters, where the lock is the library's. A waiter may wait for a dead one, too.
const WAITERS: Wider = Wider::new("waiters", 0.1, |options, site| {
    options.waiters_max = Some(site.one_of(&[1, 1, 2, 3]));
    options.within = options.within.map(|within| within.max(options.longest_retry()));
});

/// Draws the changes of the schedule: of any, of its system and of the workloads. Leaves out a change that
/// the rules refuse. `library` is true if the lock is the library's, and may be
/// over TLS.
pub(super) fn widen(schedule: &mut Schedule<Options>, from: &Draw, library: bool) {
    let own = schedule.options.system.get().wider();
    let of_library: &[Wider] = if library { &[TLS, PERMITS, READERS, WAITERS] } else { &[] };
    let changes = WIDER.iter().chain(own).chain(WorkerMode::wider()).chain(of_library);
    for Wider { name, probability, change } in changes {
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

/// Returns whether a connection over TLS can be opened within the time that the lock gives a server.
/// Otherwise nobody ever gets the lock, without any fault.
fn has_time_for_handshakes(options: &Options) -> bool {
    let shortest = options.workers.iter().map(|worker| options.ttl_of(worker)).min();
    options.system != System::REDLOCK || shortest.is_none_or(|ttl| ttl >= REDLOCK_TLS_TTL_MIN)
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
