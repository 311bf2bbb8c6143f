//! The effects of a long run's faults, as its history has them.

use history::{ClockFault, Effect, LinkFault, RoleFault};

use super::fault::{End, Fault, Holds, worker_name};
use super::locks::Locks;

/// The process of the events of faults of links, as in simulated histories.
const NETWORK: &str = "network";

/// The name of the resource in histories.
const RESOURCE: &str = "resource";

/// The name of the PostgreSQL that keeps ticks and jobs.
pub(super) const POSTGRES: &str = "postgres";

/// Returns the process that the fault strikes, and its effect on it.
pub(super) fn of(fault: Fault, locks: &Locks, workers: usize) -> (String, Effect) {
    let links = |how, links: &[(String, String)]| {
        let links = links.iter().map(|(from, to)| (from.as_str(), to.as_str()));
        (NETWORK.to_owned(), Effect::links(how, links))
    };
    let server = |number: usize| locks.name(number).to_owned();
    let both = |worker, to| ends(&worker_name(worker), &name(to, locks), Holds::Both);
    match fault {
        Fault::PauseWorker { worker } => (worker_name(worker), Effect::Pause),
        Fault::KillWorker { worker } => (worker_name(worker), Effect::Down),
        Fault::PauseServer { server: of } => (server(of.number()), Effect::Pause),
        Fault::KillServer { server: of } | Fault::LoseData { server: of } => {
            (server(of.number()), Effect::Down)
        }
        Fault::MoveLeader { to } => (server(to), Effect::Role(RoleFault::Lead)),
        // The events of the servers themselves say which died and which was promoted.
        Fault::Failover { .. } => (server(locks.leader()), Effect::Role(RoleFault::Promote)),
        Fault::StepClock { server: of, by_ms } => {
            let step = ClockFault::StepNanos(by_ms.saturating_mul(1_000_000));
            (server(of.number()), Effect::Clock(step))
        }
        Fault::CutLink { worker, to, holds } => {
            links(LinkFault::Cut, &ends(&worker_name(worker), &name(to, locks), holds))
        }
        Fault::SlowLink { worker, to, .. } => links(LinkFault::Delay, &both(worker, to)),
        Fault::ResetLink { worker, to } => links(LinkFault::Reset, &both(worker, to)),
        Fault::IsolateServer { server: of } => {
            let of = server(of.number());
            let all = (0..workers).flat_map(|worker| ends(&worker_name(worker), &of, Holds::Both));
            links(LinkFault::Cut, &all.collect::<Vec<_>>())
        }
        Fault::KillResource => (RESOURCE.to_owned(), Effect::Down),
        Fault::PausePostgres => (POSTGRES.to_owned(), Effect::Pause),
        Fault::KillPostgres => (POSTGRES.to_owned(), Effect::Down),
    }
}

/// Returns the name of the far end of a worker's link.
fn name(end: End, locks: &Locks) -> String {
    match end {
        End::Server(place) => locks.name_at(place).to_owned(),
        End::Resource => RESOURCE.to_owned(),
        End::Postgres => POSTGRES.to_owned(),
    }
}

/// Returns the directions of a worker's link, each from its sender to its receiver.
fn ends(worker: &str, to: &str, holds: Holds) -> Vec<(String, String)> {
    let requests = (worker.to_owned(), to.to_owned());
    let answers = (to.to_owned(), worker.to_owned());
    match holds {
        Holds::Requests => vec![requests],
        Holds::Answers => vec![answers],
        Holds::Both => vec![requests, answers],
    }
}
