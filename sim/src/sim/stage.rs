//! The processes of a run, which it starts, kills and restarts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use history::{Event, Span};

use super::cast::{Body, Cast, Main};
use super::core::CorePhase;
use super::process::Process;
use super::progress::Progress;
use super::report::Served;
use crate::faults::{self, Call, FaultTarget, Injector, Role, Scene};
use crate::servers::host::{Acted, Host};
use crate::world::exercise::Exercise;
use crate::world::machine::WorldMachine;
use crate::world::process::ProcessId;
use crate::world::{World, lock};

/// All processes of a run.
pub(crate) struct Stage {
    world: World,
    pub(super) cast: Cast,
    progress: Arc<Progress>,
    /// The last [`Process`] made for each process number, with its life. It is reused: a second one in the
    /// same life would draw the same random bytes.
    processes: Mutex<BTreeMap<usize, (u32, Process)>>,
}

impl Stage {
    /// Creates the processes of `cast`. `may_cancel` is true if a fault may cancel a future.
    pub(super) fn new(world: &World, cast: Cast, may_cancel: bool) -> Arc<Self> {
        let is_client = |number: &usize| {
            matches!(cast.bodies[*number], Body::Program { main: Some(_), role: Role::Client })
        };
        let programs = (0..cast.bodies.len()).filter(is_client);
        let progress = Arc::new(Progress::new(programs, may_cancel));
        Arc::new(Self { world: world.clone(), cast, progress, processes: Mutex::default() })
    }

    pub(super) fn start_all(self: &Arc<Self>) {
        for id in self.world.processes() {
            if !matches!(self.cast.bodies[id.0], Body::Program { main: None, .. }) {
                let main = self.main(id);
                self.world.spawn(id, main);
            }
        }
    }

    /// Returns the process in its present life.
    pub(super) fn process(&self, id: ProcessId) -> Process {
        let (mut processes, life) = (lock(&self.processes), self.world.process(id).life());
        match processes.get(&id.0) {
            Some((made_in, process)) if *made_in == life => process.clone(),
            _ => {
                let process = Process::new(&self.world, id, Arc::clone(&self.progress));
                processes.insert(id.0, (life, process.clone()));
                process
            }
        }
    }

    /// Returns the server that the process runs, if it is one.
    pub(crate) fn host(&self, id: ProcessId) -> Option<&Arc<dyn Host>> {
        match &self.cast.bodies[id.0] {
            Body::Host { host, .. } => Some(host),
            Body::Program { .. } => None,
        }
    }

    /// Completes when every program has ended, messages in flight have arrived (after `quiet`), and no lock
    /// is held. It waits for locks until `limit` at the latest, or for `linger` if that is shorter.
    pub(super) async fn settled(&self, limit: Duration, quiet: Duration, linger: Duration) {
        let limit = Span(limit).as_nanos();
        self.progress.all_finished(&self.world, limit).await;
        self.world.sleep_until(self.world.now() + Span(quiet).as_nanos()).await;
        let limit = limit.max(self.world.now()).min(self.world.now().saturating_add(Span(linger).as_nanos()));
        self.progress.none_held(&self.world, limit).await;
    }

    /// Completes when every program has ended.
    pub(super) async fn finished(&self) {
        self.progress.all_finished(&self.world, u64::MAX).await;
    }

    /// Begins the core phase at its time. The run does not wait for clients outside the core.
    pub(super) fn begin_later(self: &Arc<Self>, core: CorePhase, injector: &Arc<Injector>) {
        let (stage, injector) = (Arc::clone(self), Arc::clone(injector));
        self.world.spawn_harness(async move {
            stage.world.sleep_until(core.at.as_nanos()).await;
            core.begin(&injector, &stage.cast.names);
            for process in core.outside().filter_map(|name| stage.world.find(name)) {
                stage.leave_dead(process);
            }
        });
    }

    pub(super) fn clients_but(&self, core: &CorePhase) -> usize {
        let clients = self.cast.with_role(Role::Client);
        clients.iter().filter(|client| !core.excludes(client)).count()
    }

    /// Returns the requests to each server so far.
    pub(super) fn served(&self, exercise: &Exercise) -> Vec<Served> {
        let served = |id: ProcessId| {
            let commands = self.host(id)?.executed();
            Some(Served { name: self.cast.names[id.0].clone(), commands, unknown: exercise.unknown_to(id) })
        };
        self.world.processes().filter_map(served).collect()
    }

    /// Closes the servers, since they and the world would keep each other alive.
    pub(super) fn close(&self) {
        lock(&self.processes).clear();
        for id in self.world.processes() {
            if let Some(host) = self.host(id) {
                host.close();
            }
        }
    }

    /// Tracks the locks that are held.
    pub(super) fn on_event(&self, event: &Event) {
        self.progress.on_event(event);
    }

    /// Returns the main task of a process for its next life.
    fn main(self: &Arc<Self>, id: ProcessId) -> Main {
        match &self.cast.bodies[id.0] {
            Body::Host { host, .. } => host.start(WorldMachine::new(&self.world, id)),
            Body::Program { .. } => {
                let stage = Arc::clone(self);
                Box::pin(async move {
                    // Made here, after the life to which it belongs has begun.
                    let process = stage.process(id);
                    if let Body::Program { main: Some(main), .. } = &stage.cast.bodies[id.0] {
                        main(process).await;
                    }
                    stage.progress.finished(id.0);
                    stage.world.exit_guest(id);
                })
            }
        }
    }
}

impl faults::FaultTarget for Stage {
    fn world(&self) -> &World {
        &self.world
    }

    fn role(&self, process: ProcessId) -> Role {
        match &self.cast.bodies[process.0] {
            Body::Host { role, .. } | Body::Program { role, .. } => *role,
        }
    }

    fn kill(&self, process: ProcessId, power_loss: bool) {
        if let Some(host) = self.host(process) {
            host.died();
        }
        self.world.crash(process, power_loss);
        self.progress.killed(process.0);
        self.progress.died(self.world.process(process).name());
    }

    fn start(self: Arc<Self>, process: ProcessId) {
        if self.role(process) == Role::Client {
            self.progress.begun(process.0);
        }
        let main = self.main(process);
        self.world.restart(process, main);
    }

    fn leave_dead(&self, process: ProcessId) {
        self.progress.finished(process.0);
    }

    fn shut_down(&self, process: ProcessId) {
        if let Some(host) = self.host(process) {
            host.shut_down();
        }
    }

    fn terminate(&self, process: ProcessId) {
        self.progress.terminate(process.0, self.role(process) == Role::Client);
    }

    fn has_ended(&self, process: ProcessId) -> bool {
        self.progress.has_ended(process.0)
    }

    fn poll_ended(&self, process: ProcessId, cx: &mut Context<'_>) -> Poll<bool> {
        self.progress.poll_ended(process.0, cx)
    }

    fn clock_was_set(&self, process: ProcessId) {
        if let Some(host) = self.host(process) {
            host.clock_set();
        }
    }

    fn cancel(&self, process: ProcessId, call: Call) {
        self.progress.cancel(process.0, call);
    }

    fn act(&self, server: ProcessId, action: &str, arguments: &[String]) -> bool {
        let argument = (!arguments.is_empty()).then(|| arguments.join(" "));
        let acted = self.host(server).map(|host| host.act(action, argument.as_deref()));
        matches!(acted, Some(Ok(Acted::Done(_))))
    }

    /// Returns the servers that can evict keys. If there are aliases, only the servers with one: clients
    /// reach no others.
    fn servers_of_keys(&self) -> Vec<ProcessId> {
        let stores_keys = |id: &ProcessId| self.host(*id).is_some_and(|host| host.offers("evict"));
        let mut servers: Vec<_> = self.world.processes().filter(stores_keys).collect();
        if servers.iter().any(|id| self.world.has_alias(*id)) {
            servers.retain(|id| self.world.has_alias(*id));
        }
        servers
    }
}
