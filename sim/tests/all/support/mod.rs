//! What the tests share: the corpus, and the seeds that the environment asks for.

mod corpus;
pub mod guard;
mod replay;
pub mod scripts;
mod seeds;

pub use corpus::{Case, case, corpus};
pub use replay::replay_line;
pub use seeds::seeds;
use sim::Schedule;
use sim::faults::{Cut, Fault, Link, Role, Scene, Trigger};
use sim::lab::{Options, Persistence, Point};

/// The seeds of a search that ends when it has found something: from `SEED` on, and ten times `count` at
/// most, since luck differs from one beginning to another.
pub fn search(count: u64) -> impl Iterator<Item = u64> {
    let first = seeds::number("SEED").unwrap_or(0);
    (0..10 * count).map(move |number| first.wrapping_add(number))
}

/// The schedule without all that excuses an overlap: every worker renews, so it stops when its lease is over,
/// and no fault is left that stops a process, bends a clock that leases are measured by, or makes a lock
/// server forget. What is left (cuts, delays, lost replies, crashes of workers and of the resource, steps of
/// workers' wall clocks, cancelled acquires) no lock may answer with two holders at once.
pub fn without_excuses(mut schedule: Schedule<Options>) -> Schedule<Options> {
    for worker in &mut schedule.options.workers {
        worker.renew = true;
    }
    let persistence = schedule.options.redis.persistence;
    // A majority keeps what it has acknowledged, and leases run on monotonic clocks.
    let is_cluster = schedule.options.cluster().is_some();
    let options = schedule.clone();
    let is_server = |process: &str| options.role(process) == Some(Role::Server);
    schedule.faults.retain(|fault| match (fault.what.verb(), fault.what.processes().first()) {
        ("crash" | "stop", Some(process)) => {
            !is_server(process) || is_cluster || persistence == Persistence::Always
        }
        ("step", Some(process)) => is_cluster || options.role(process) == Some(Role::Client),
        (verb, _) => ["cut", "delay", "partition", "reset", "cancel", "lead"].contains(&verb),
    });
    schedule
}

/// The same, with the first worker cut off from all lock servers for two TTLs as soon as it works under the
/// lock: its renewals fail, and all depends on when it stops.
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
