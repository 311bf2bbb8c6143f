//! The participants of a long run: lock servers, resource, workers, and the links between them. Each can
//! fail.
#![allow(clippy::disallowed_methods, reason = "a run on live processes uses real time")]

mod links;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use history::Effect;
use tokio::runtime::Handle;

use super::effect;
use super::events::Events;
use super::fault::{Fault, Server, worker_name};
use super::locks::Locks;
use super::operator::{self, Operator};
use super::tail::Tail;
use super::{ChaosError, Configuration};
use crate::faults::Proxy;
use crate::judgement::DATA_LOST;
use crate::lab::actors::{Actor, ResourceActor};
use crate::metrics::Targets;
use crate::servers::Stage;
use crate::stop::Stop;

/// The folder of the run's processes in the stage.
const FOLDER: &str = "chaos";
/// The timeout of an aimed fault for its worker's critical section.
const AIM: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(2);

pub(super) struct Deployment<'a> {
    configuration: &'a Configuration,
    stage: Stage,
    locks: Locks,
    resource: ResourceActor,
    workers: Vec<Worker>,
    events: Events,
    /// The number of faults so far.
    struck: u64,
    lasting: Vec<Lasting>,
    /// The histories of killed processes.
    past: Vec<PathBuf>,
    /// True if the workers serve their metrics.
    serves_metrics: bool,
}

/// A fault in force.
struct Lasting {
    /// Its number in the plan.
    number: u64,
    fault: Fault,
    /// The process that it struck, and its effect on it.
    on: (String, Effect),
    /// The number of times that an operator has tried to raise the counters it cost; `None` while the server
    /// is down.
    raises: Option<u32>,
}

/// A worker and its links.
struct Worker {
    name: String,
    actor: Actor,
    /// One proxy for each lock server of the worker.
    to_servers: Vec<Proxy>,
    to_resource: Proxy,
}

impl<'a> Deployment<'a> {
    /// Starts the servers, the resource, the workers and the links.
    pub(super) fn set_up(
        configuration: &'a Configuration,
        targets: Option<&Targets>,
    ) -> Result<Self, ChaosError> {
        let stage = Stage::new()?;
        let locks = Locks::start(&stage, configuration)?;
        let resource = ResourceActor::start(&stage, FOLDER, configuration.fence.as_str())?;
        let path = stage.directory().join("faults.jsonl");
        let events = Events::new(path).map_err(ChaosError::Events)?;
        let (workers, lasting, past) = (Vec::new(), Vec::new(), Vec::new());
        let (struck, serves_metrics) = (0, targets.is_some());
        let mut deployment = Self {
            configuration,
            stage,
            locks,
            resource,
            workers,
            events,
            struck,
            lasting,
            past,
            serves_metrics,
        };
        for number in 0..configuration.workers {
            let worker = deployment.start_with_links(number)?;
            deployment.workers.push(worker);
        }
        if let Some(targets) = targets {
            let actors = deployment.workers.iter().map(|worker| (worker.name.clone(), &worker.actor));
            let actors = actors.chain([("resource".to_owned(), &deployment.resource.actor)]);
            targets.set(actors.map(|(name, actor)| (name, actor.process.log().to_owned())));
        }
        Ok(deployment)
    }

    fn start_with_links(&self, number: usize) -> Result<Worker, ChaosError> {
        let proxy = |address: &str| Handle::current().block_on(Proxy::start(address));
        let places = self.locks.places();
        let to_servers = places.iter().map(|address| proxy(address)).collect::<io::Result<Vec<_>>>();
        let to_servers = to_servers.map_err(ChaosError::Proxy)?;
        let to_resource = proxy(self.resource.address()).map_err(ChaosError::Proxy)?;
        let name = worker_name(number);
        let actor = self.start_worker(number, &name, &to_servers, &to_resource)?;
        Ok(Worker { name, actor, to_servers, to_resource })
    }

    /// Starts a worker. Workers differ, as in a fleet: every second one does not check its lease before it
    /// writes, every third renews it.
    fn start_worker(
        &self,
        number: usize,
        name: &str,
        to_servers: &[Proxy],
        to_resource: &Proxy,
    ) -> Result<Actor, ChaosError> {
        let Configuration { system, ttl, work, keys, primitive, tokens, .. } = self.configuration;
        let primitive = primitive.to_string();
        let servers: Vec<_> = to_servers.iter().map(Proxy::address).collect();
        let (servers, resource) = (servers.join(","), to_resource.address());
        let millis = |time: &Duration| format!("{}ms", time.as_millis());
        let (ttl, rest, work) = (millis(ttl), millis(&(*work * 2)), millis(work));
        let (keys, rounds, first) = (keys.to_string(), u64::MAX.to_string(), number.to_string());
        let check = if number.is_multiple_of(2) { "on" } else { "off" };
        let mut arguments = vec!["--system", system.as_str(), "--servers", &servers, "--resource", &resource];
        arguments
            .extend(["--ttl", &ttl, "--work", &work, "--keys", &keys, "--rounds", &rounds, "--rest", &rest]);
        arguments.extend(["--claim", "on", "--check", check, "--primitive", &primitive]);
        arguments.extend(["--first-key", &first]);
        if !tokens.is_default() {
            arguments.extend(["--tokens", tokens.as_str()]);
        }
        if number % 3 == 2 {
            arguments.extend(["--renew", "1h"]);
        }
        if self.serves_metrics {
            arguments.extend(["--metrics", "127.0.0.1:0"]);
        }
        Ok(Actor::start(&self.stage, FOLDER, name, "worker", &arguments)?)
    }

    /// Waits until the history of every worker has one more line with `event`; returns false if one has not
    /// within `timeout`, or before it was asked to stop.
    pub(super) fn all_have(
        &mut self,
        event: &str,
        timeout: Duration,
        stop: &Stop,
    ) -> Result<bool, ChaosError> {
        let begun = Instant::now();
        let mut waiting: Vec<_> = self.workers.iter().map(|worker| Tail::of(&worker.actor.history)).collect();
        while !waiting.is_empty() {
            self.all_live()?;
            waiting.retain_mut(|tail| !tail.contains(event));
            if begun.elapsed() > timeout || stop.block(PAUSE) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Fails if a worker exited by itself: its history would not show it.
    fn all_live(&mut self) -> Result<(), ChaosError> {
        let killed =
            |worker| self.lasting.iter().any(|lasting| lasting.fault == Fault::KillWorker { worker });
        for (number, worker) in self.workers.iter_mut().enumerate() {
            if !killed(number) && worker.actor.process.exited().is_some() {
                let words = worker.actor.process.last_words();
                return Err(ChaosError::Ended { name: worker.name.clone(), words });
            }
        }
        Ok(())
    }

    /// Strikes the fault. Returns it for healing, with the current leader in place of [`Server::Leader`].
    pub(super) fn strike(&mut self, fault: Fault, aimed: bool) -> Result<Fault, ChaosError> {
        self.all_live()?;
        let fault = fault.on(self.locks.leader());
        if let Some(worker) = fault.worker().filter(|_| aimed) {
            self.await_section(worker);
        }
        let number = self.struck;
        self.struck += 1;
        let on = effect::of(fault, &self.locks, self.workers.len());
        self.events.applied(number, fault, &on).map_err(ChaosError::Events)?;
        self.count(fault, 1.0);
        self.lasting.push(Lasting { number, fault, on, raises: None });
        self.make(fault)?;
        self.set_links();
        if fault.is_instant() {
            self.heal(fault)?;
        }
        Ok(fault)
    }

    /// Counts a fault that begins (`change` is 1) or ends (-1).
    fn count(&self, fault: Fault, change: f64) {
        let labels =
            [("system", self.configuration.system.as_str().to_owned()), ("kind", fault.kind().name())];
        if change > 0.0 {
            metrics::counter!("chaos_faults_total", &labels).increment(1);
        }
        metrics::gauge!("chaos_faults_in_force", &labels).increment(change);
    }

    fn make(&mut self, fault: Fault) -> Result<(), ChaosError> {
        match fault {
            Fault::PauseWorker { worker } => self.workers[worker].actor.process.pause(),
            Fault::KillWorker { worker } => self.kill_worker(worker)?,
            Fault::PauseServer { server } => self.locks.process(server.number()).pause(),
            Fault::KillServer { server } => self.kill_server(server, "killed")?,
            Fault::LoseData { server } => self.kill_server(server, DATA_LOST)?,
            Fault::MoveLeader { to } => drop(self.locks.move_leader(to)),
            Fault::Failover { lag_ms } => self.fail_over(lag_ms)?,
            Fault::StepClock { server, by_ms } => self.locks.step_clock(server.number(), by_ms)?,
            Fault::ResetLink { worker, to } => self.workers[worker].link(to).reset(),
            Fault::KillResource => self.kill_resource()?,
            Fault::CutLink { .. } | Fault::SlowLink { .. } | Fault::IsolateServer { .. } => {}
        }
        Ok(())
    }

    /// Heals the fault. Returns the time after which to call it again, if an operator has to raise a counter.
    pub(super) fn heal(&mut self, fault: Fault) -> Result<Option<Duration>, ChaosError> {
        // Two are equal if a server loses its data again before its counter was raised: the later one first.
        let place = self.lasting.iter().rposition(|lasting| lasting.fault == fault);
        if let (Fault::LoseData { server }, true, Some(place)) = (fault, self.configuration.raise, place)
            && let Some(again) = self.recover(server, place)?
        {
            return Ok(Some(again));
        }
        let lasting = place.map(|place| self.lasting.remove(place));
        self.count(fault, -1.0);
        self.set_links();
        match fault {
            Fault::PauseWorker { worker } => self.workers[worker].actor.process.resume(),
            Fault::KillWorker { worker } => {
                let Worker { name, to_servers, to_resource, .. } = &self.workers[worker];
                self.workers[worker].actor = self.start_worker(worker, name, to_servers, to_resource)?;
            }
            Fault::PauseServer { server } => self.locks.process(server.number()).resume(),
            Fault::KillServer { server } => self.restart_server(server, true)?,
            Fault::LoseData { .. } if self.configuration.raise => {}
            Fault::LoseData { server } => self.restart_server(server, false)?,
            Fault::Failover { .. } => self.locks.rejoin()?,
            Fault::StepClock { server, by_ms } => self.locks.step_clock(server.number(), -by_ms)?,
            Fault::KillResource => self.restart_resource()?,
            Fault::MoveLeader { .. }
            | Fault::ResetLink { .. }
            | Fault::CutLink { .. }
            | Fault::SlowLink { .. }
            | Fault::IsolateServer { .. } => {}
        }
        if let Some(Lasting { number, on, .. }) = lasting {
            self.events.healed(number, fault, &on).map_err(ChaosError::Events)?;
        }
        Ok(None)
    }

    /// Restarts a server without its data, and later has its counters raised. Returns the time after which to
    /// call it again; `None` once they are.
    fn recover(&mut self, server: Server, place: usize) -> Result<Option<Duration>, ChaosError> {
        let Some(raises) = self.lasting[place].raises else {
            self.restart_server(server, false)?;
            self.lasting[place].raises = Some(0);
            return Ok(Some(operator::ACTS_AFTER));
        };
        let Configuration { system, keys, .. } = self.configuration;
        let operator = Operator {
            stage: &self.stage,
            folder: FOLDER,
            system: system.as_str(),
            servers: self.locks.places().join(","),
            resource: self.resource.address(),
            keys: *keys,
        };
        match operator.raise()? {
            Ok(()) => Ok(None),
            Err(words) if raises >= operator::TRIES => Err(ChaosError::Raise(words)),
            Err(_) => {
                self.lasting[place].raises = Some(raises + 1);
                Ok(Some(operator::ACTS_AFTER))
            }
        }
    }

    /// Kills the workers and the resource, and returns the files of the history.
    pub(super) fn end(mut self) -> Result<(Vec<PathBuf>, Stage), ChaosError> {
        for number in 0..self.workers.len() {
            self.kill_worker(number)?;
        }
        self.kill_resource()?;
        self.past.push(self.events.path().to_owned());
        Ok((self.past, self.stage))
    }

    /// Waits briefly until the worker is inside its critical section and has read the resource.
    fn await_section(&self, worker: usize) {
        let mut tail = Tail::of(&self.workers[worker].actor.history);
        let begun = Instant::now();
        while !tail.contains(r#""step":"read""#) && begun.elapsed() < AIM {
            thread::sleep(PAUSE);
        }
    }

    fn kill_worker(&mut self, number: usize) -> Result<(), ChaosError> {
        let worker = &mut self.workers[number];
        worker.actor.process.kill();
        self.events.crashed(&worker.name).map_err(ChaosError::Events)?;
        self.past.extend(put_away(&worker.actor, self.past.len())?);
        Ok(())
    }

    fn kill_resource(&mut self) -> Result<(), ChaosError> {
        self.resource.actor.process.kill();
        self.past.extend(put_away(&self.resource.actor, self.past.len())?);
        Ok(())
    }

    /// Restarts the resource on another port. The workers keep the address of their proxy.
    fn restart_resource(&mut self) -> Result<(), ChaosError> {
        self.resource = ResourceActor::start(&self.stage, FOLDER, self.configuration.fence.as_str())?;
        let address = self.resource.address();
        self.workers.iter().for_each(|worker| worker.to_resource.redirect(address));
        Ok(())
    }

    fn kill_server(&mut self, server: Server, detail: &str) -> Result<(), ChaosError> {
        let number = server.number();
        self.events.stopped(self.locks.name(number), detail).map_err(ChaosError::Events)?;
        self.locks.process(number).kill();
        Ok(())
    }

    fn restart_server(&mut self, server: Server, keeps_data: bool) -> Result<(), ChaosError> {
        self.locks.restart(server.number(), keeps_data)?;
        self.events.started(self.locks.name(server.number())).map_err(ChaosError::Events)
    }

    fn fail_over(&mut self, lag_ms: u64) -> Result<(), ChaosError> {
        self.locks.cut_replication();
        thread::sleep(Duration::from_millis(lag_ms));
        let (primary, replica) = (self.locks.leader(), 1 - self.locks.leader());
        // Recorded before the promotion, since the new primary's grants come after it.
        self.events.stopped(self.locks.name(primary), "killed").map_err(ChaosError::Events)?;
        let detail = format!("{lag_ms} ms behind");
        self.events.promoted(self.locks.name(replica), &detail).map_err(ChaosError::Events)?;
        self.locks.fail_over()?;
        self.events.started(self.locks.name(replica)).map_err(ChaosError::Events)?;
        let address = self.locks.places().swap_remove(0);
        for worker in &self.workers {
            worker.to_servers[0].redirect(&address);
            worker.to_servers[0].reset();
        }
        Ok(())
    }
}

/// Renames the history of a killed process, whose last line may be incomplete, and its log, so that its
/// successor starts new files. Returns the history's new path, if there was a history.
fn put_away(actor: &Actor, number: usize) -> Result<Option<PathBuf>, ChaosError> {
    let put = |path: &Path| {
        let away = path.with_extension(number.to_string());
        match fs::rename(path, &away) {
            Ok(()) => Ok(Some(away)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ChaosError::Events(error)),
        }
    };
    put(actor.process.log())?;
    put(&actor.history)
}
