//! The participants of a long run: lock servers, guarded side, workers, and the links between them. Each can
//! fail.
#![allow(clippy::disallowed_methods, reason = "a run on live processes uses real time")]

mod files;
mod links;
mod side;
mod workers;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use history::Effect;

use super::effect::{self, POSTGRES};
use super::events::Events;
use super::fault::{Fault, Server};
use super::locks::Locks;
use super::operator::{self, Operator};
use super::tail::Tail;
use super::{ChaosError, Configuration};
use crate::faults::Proxy;
use crate::judgement::DATA_LOST;
use crate::lab::actors::Actor;
use crate::metrics::Targets;
use crate::servers::Stage;
use crate::stop::Stop;
use crate::task_rows::TaskRow;
use files::{FOLDER, put_away};
use side::Side;

/// The timeout of an aimed fault for its worker's critical section.
const AIM: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(2);

pub(super) struct Deployment<'a> {
    configuration: &'a Configuration,
    stage: Stage,
    locks: Locks,
    side: Side,
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

/// The result of a run.
pub(super) struct Ended {
    /// The files of the history.
    pub(super) files: Vec<PathBuf>,
    /// The rows of the tasks that took effect; `None` if the resource keeps the record.
    pub(super) rows: Option<Vec<TaskRow>>,
    /// Keeps the files.
    _stage: Stage,
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
    to_side: Proxy,
}

impl<'a> Deployment<'a> {
    /// Starts the servers, the guarded side, the workers and the links.
    pub(super) fn set_up(
        configuration: &'a Configuration,
        targets: Option<&Targets>,
    ) -> Result<Self, ChaosError> {
        let stage = Stage::new()?;
        let locks = Locks::start(&stage, configuration)?;
        let side = Side::start(&stage, configuration)?;
        let path = stage.directory().join("faults.jsonl");
        let events = Events::new(path).map_err(ChaosError::Events)?;
        let (workers, lasting, past) = (Vec::new(), Vec::new(), Vec::new());
        let (struck, serves_metrics) = (0, targets.is_some());
        let mut deployment = Self {
            configuration,
            stage,
            locks,
            side,
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
            let side = deployment.side.actor().map(|actor| ("resource".to_owned(), actor));
            let actors = actors.chain(side);
            targets.set(actors.map(|(name, actor)| (name, actor.process.log().to_owned())));
        }
        Ok(deployment)
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
        let labels = [("system", self.configuration.system_name().to_owned()), ("kind", fault.kind().name())];
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
            Fault::KillResource => self.kill_side()?,
            Fault::PausePostgres => self.side.pause(),
            Fault::KillPostgres => {
                self.events.stopped(POSTGRES, "killed").map_err(ChaosError::Events)?;
                self.kill_side()?;
            }
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
                let Worker { name, to_servers, to_side, .. } = &self.workers[worker];
                self.workers[worker].actor = self.start_worker(worker, name, to_servers, to_side)?;
            }
            Fault::PauseServer { server } => self.locks.process(server.number()).resume(),
            Fault::KillServer { server } => self.restart_server(server, true)?,
            Fault::LoseData { .. } if self.configuration.raise => {}
            Fault::LoseData { server } => self.restart_server(server, false)?,
            Fault::Failover { .. } => self.locks.rejoin()?,
            Fault::StepClock { server, by_ms } => self.locks.step_clock(server.number(), -by_ms)?,
            Fault::KillResource => self.restart_side()?,
            Fault::PausePostgres => self.side.resume(),
            Fault::KillPostgres => {
                self.restart_side()?;
                self.events.started(POSTGRES).map_err(ChaosError::Events)?;
            }
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
        let address = self.side.address();
        let operator = Operator {
            stage: &self.stage,
            folder: FOLDER,
            system: self.configuration.system_name(),
            servers: self.locks.places().join(","),
            resource: &address,
            keys: self.configuration.keys,
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

    /// Kills the workers and the guarded side.
    pub(super) fn end(mut self) -> Result<Ended, ChaosError> {
        for number in 0..self.workers.len() {
            self.kill_worker(number)?;
        }
        let rows = self.side.task_rows()?;
        self.kill_side()?;
        self.past.push(self.events.path().to_owned());
        Ok(Ended { files: self.past, rows, _stage: self.stage })
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

    fn kill_side(&mut self) -> Result<(), ChaosError> {
        self.past.extend(self.side.kill(self.past.len())?);
        Ok(())
    }

    /// Restarts the guarded side, which may have another port then. The workers keep the address of their
    /// proxy.
    fn restart_side(&mut self) -> Result<(), ChaosError> {
        self.side.restart(&self.stage, self.configuration)?;
        let address = self.side.address();
        self.workers.iter().for_each(|worker| worker.to_side.redirect(&address));
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
