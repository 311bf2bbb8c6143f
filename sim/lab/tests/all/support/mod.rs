//! Shared by the tests: the corpus, the seeds from the environment, and scripts.

mod corpus;
pub mod guard;
mod replay;
pub mod scripts;
mod seeds;

pub use corpus::{Case, case, corpus};
use lab::{LabScene, Options, Persistence, Point};
pub use replay::replay_line;
pub use seeds::seeds;
use sim::Schedule;
use sim::faults::{Cut, Fault, Link, Role, Scene, Trigger};

/// The factor by which [`search`] extends a number of seeds.
pub const SEARCH_FACTOR: u64 = 10;

/// Returns the seeds of a search that ends with its first finding: from `SEED` on, [`SEARCH_FACTOR`] times
/// `count` at most. `count` are enough on average; luck depends on the first seed.
pub fn search(count: u64) -> impl Iterator<Item = u64> {
    let first = seeds::number("SEED").unwrap_or(0);
    (0..SEARCH_FACTOR * count).map(move |number| first.wrapping_add(number))
}

/// Returns the schedule without anything that excuses an overlap. Every worker renews, so it stops when its
/// lease is over. Faults are removed if they pause a process, change a clock that measures leases, or make a
/// lock server forget. Under the others (cuts, delays, lost replies, crashes of workers and of the resource,
/// steps of workers' wall clocks, cancelled acquires) no lock may have two holders at once.
pub fn without_excuses(mut schedule: Schedule<Options>) -> Schedule<Options> {
    for worker in &mut schedule.options.workers {
        worker.renew = true;
    }
    let persistence = schedule.options.redis.persistence;
    // A cluster keeps every acknowledged write on a majority, and measures leases on monotonic clocks.
    let is_cluster = schedule.options.cluster().is_some();
    let options = schedule.clone();
    let scene = LabScene(&options);
    let is_server = |process: &str| scene.role(process) == Some(Role::Server);
    schedule.faults.retain(|fault| match (fault.what.verb(), fault.what.processes().first()) {
        ("crash" | "stop", Some(process)) => {
            !is_server(process) || is_cluster || persistence == Persistence::Always
        }
        ("step", Some(process)) => is_cluster || scene.role(process) == Some(Role::Client),
        (verb, _) => ["cut", "delay", "partition", "reset", "cancel", "lead"].contains(&verb),
    });
    schedule
}

/// Returns the schedule without excuses, with the first worker cut off from all lock servers for two TTLs as
/// soon as it works under the lock. Its renewals fail, so it must stop in time.
pub fn cut_off_while_working(schedule: Schedule<Options>) -> Schedule<Options> {
    let mut schedule = without_excuses(schedule);
    let worker = schedule.options.workers[0].name.clone();
    for server in schedule.options.servers() {
        let link = Link::new(&worker, &server);
        let cut = Cut { link, both: true, lasts: Some(schedule.options.ttl.times(2)) };
        schedule.faults.push(Fault::new(Trigger::after(&worker, Point::Entered), cut));
    }
    schedule
}
