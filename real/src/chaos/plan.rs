//! The plan of a long run: the faults and their times, all drawn from a seed before the run begins.

use std::fmt;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::Serialize;

use super::Configuration;
use super::fault::{End, Fault, FaultKind, Holds, Server};
use crate::systems::System;

/// The number of tries to draw a fault whose victim is not under another fault.
const TRIES: u32 = 8;

/// The faults of a run, in the order in which they strike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The seed they were drawn from.
    pub seed: u64,
    /// The faults.
    pub faults: Vec<Planned>,
}

/// A fault and its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// The time of the strike, in milliseconds since all workers began to work.
    pub at_ms: u64,
    /// True if it waits briefly for its worker to enter its critical section.
    pub aimed: bool,
    /// Its duration, in milliseconds.
    pub lasts_ms: u64,
    /// The fault.
    #[serde(flatten)]
    pub fault: Fault,
}

/// A victim, and the end of its fault.
struct Busy {
    what: Victim,
    until_ms: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Worker(usize),
    Link(usize, End),
    /// All lock servers: two at once would cost the majority, or the replica.
    Cluster,
    Server(usize),
    /// The resource, or PostgreSQL in its place.
    Resource,
}

impl Plan {
    /// Draws the plan. The same configuration gives the same plan on any machine.
    pub fn draw(configuration: &Configuration) -> Self {
        let mut draw = Draw { random: ChaCha8Rng::seed_from_u64(configuration.seed), configuration };
        let every_ms = millis(configuration.every).max(2);
        let end_ms = millis(configuration.lasts);
        let mut busy: Vec<Busy> = Vec::new();
        let mut faults = Vec::new();
        let mut at_ms = draw.between(every_ms / 2, every_ms);
        while at_ms < end_ms {
            busy.retain(|busy| busy.until_ms > at_ms);
            let free = |planned: &Planned| {
                let wanted = victim(configuration, planned.fault);
                planned.at_ms + planned.lasts_ms < end_ms && busy.iter().all(|busy| busy.what != wanted)
            };
            if let Some(planned) = (0..TRIES).filter_map(|_| draw.planned(at_ms)).find(free) {
                let until_ms = at_ms + planned.lasts_ms + every_ms / 2;
                busy.push(Busy { what: victim(configuration, planned.fault), until_ms });
                faults.push(planned);
            }
            at_ms += draw.between(every_ms / 2, every_ms * 3 / 2);
        }
        Self { seed: configuration.seed, faults }
    }
}

/// Returns the victim that no other fault may strike at the same time.
fn victim(configuration: &Configuration, fault: Fault) -> Victim {
    match fault {
        Fault::PauseWorker { worker } | Fault::KillWorker { worker } => Victim::Worker(worker),
        Fault::CutLink { worker, to, .. }
        | Fault::SlowLink { worker, to, .. }
        | Fault::ResetLink { worker, to } => Victim::Link(worker, to),
        Fault::KillResource | Fault::PausePostgres | Fault::KillPostgres => Victim::Resource,
        Fault::PauseServer { server }
        | Fault::KillServer { server }
        | Fault::LoseData { server }
        | Fault::StepClock { server, .. }
        | Fault::IsolateServer { server } => match (configuration.system, server) {
            (Some(System::Redlock), Server::Number(number)) => Victim::Server(number),
            _ => Victim::Cluster,
        },
        Fault::MoveLeader { .. } | Fault::Failover { .. } => Victim::Cluster,
    }
}

struct Draw<'a> {
    random: ChaCha8Rng,
    configuration: &'a Configuration,
}

impl Draw<'_> {
    /// Draws the fault at `at_ms`; `None` if no kind is allowed.
    fn planned(&mut self, at_ms: u64) -> Option<Planned> {
        let kinds: Vec<_> = self.configuration.kinds().collect();
        let mut kind = *self.one_of(&kinds)?;
        // After a lost counter the resource refuses every grant until the counter has caught up. So draw it
        // seldom.
        while kind == FaultKind::LoseData && kinds.len() > 1 && self.between(0, 3) > 0 {
            kind = *self.one_of(&kinds)?;
        }
        let fault = self.fault(kind);
        let aimed = fault.worker().is_some() && self.between(0, 3) > 0;
        let lasts_ms = if fault.is_instant() { 0 } else { self.length_ms() };
        Some(Planned { at_ms, aimed, lasts_ms, fault })
    }

    fn fault(&mut self, kind: FaultKind) -> Fault {
        let ttl_ms = millis(self.configuration.ttl);
        let worker = self.below(self.configuration.workers);
        match kind {
            FaultKind::PauseWorker => Fault::PauseWorker { worker },
            FaultKind::KillWorker => Fault::KillWorker { worker },
            FaultKind::PauseServer => Fault::PauseServer { server: self.server() },
            FaultKind::KillServer => Fault::KillServer { server: self.server() },
            FaultKind::LoseData => Fault::LoseData { server: self.server() },
            FaultKind::MoveLeader => Fault::MoveLeader { to: self.below(self.configuration.servers()) },
            FaultKind::Failover => Fault::Failover { lag_ms: self.between(0, ttl_ms) },
            FaultKind::StepClock => {
                let by_ms = i64::try_from(self.between(ttl_ms / 2, ttl_ms * 3)).unwrap_or(0);
                let by_ms = if self.between(0, 1) == 0 { by_ms } else { -by_ms };
                Fault::StepClock { server: self.server(), by_ms }
            }
            FaultKind::CutLink => {
                let holds = [Holds::Requests, Holds::Answers, Holds::Both][self.below(3)];
                Fault::CutLink { worker, to: self.end(), holds }
            }
            FaultKind::SlowLink => {
                let by_ms = self.between(ttl_ms / 20, ttl_ms / 2);
                Fault::SlowLink { worker, to: self.end(), by_ms }
            }
            FaultKind::ResetLink => Fault::ResetLink { worker, to: self.end() },
            FaultKind::IsolateServer => Fault::IsolateServer { server: self.server() },
            FaultKind::KillResource => Fault::KillResource,
            FaultKind::PausePostgres => Fault::PausePostgres,
            FaultKind::KillPostgres => Fault::KillPostgres,
        }
    }

    /// Draws a duration: half of them end within the TTL, half outlive it.
    fn length_ms(&mut self) -> u64 {
        let ttl_ms = millis(self.configuration.ttl);
        if self.between(0, 1) == 0 {
            self.between(ttl_ms / 10, ttl_ms * 8 / 10)
        } else {
            self.between(ttl_ms * 5 / 4, ttl_ms * 3)
        }
    }

    /// Draws a server: for Redlock any node, since all are equal; otherwise mostly the leader.
    fn server(&mut self) -> Server {
        let another = self.between(0, 2) == 0;
        match self.configuration.system {
            Some(System::Redis) => Server::Leader,
            Some(System::Etcd | System::Zookeeper) if !another => Server::Leader,
            _ => Server::Number(self.below(self.configuration.servers())),
        }
    }

    /// Draws the far end of a link: in half of the cases the guarded side, if there are lock servers.
    fn end(&mut self) -> End {
        let (places, guarded) = (self.configuration.places(), End::of(self.configuration.record));
        if places == 0 || self.between(0, 1) == 0 { guarded } else { End::Server(self.below(places)) }
    }

    fn one_of<'t, T>(&mut self, of: &'t [T]) -> Option<&'t T> {
        if of.is_empty() { None } else { of.get(self.below(of.len())) }
    }

    fn below(&mut self, count: usize) -> usize {
        let count = u64::try_from(count).unwrap_or(1).max(1);
        usize::try_from(self.between(0, count - 1)).unwrap_or(0)
    }

    /// Draws a number from `low` to `high`, both included. The bias of the modulus is negligible for such
    /// ranges.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.random.next_u64() % (high.saturating_sub(low) + 1)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 4)
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for planned in &self.faults {
            writeln!(f, "  {planned}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ms: u64| Duration::from_millis(ms).as_secs_f64();
        write!(f, "{:>8.3} {}", seconds(self.at_ms), self.fault)?;
        if self.lasts_ms > 0 {
            write!(f, ", for {:.3} s", seconds(self.lasts_ms))?;
        }
        if self.aimed { f.write_str(", inside its critical section") } else { Ok(()) }
    }
}
