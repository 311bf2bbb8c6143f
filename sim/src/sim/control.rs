//! The control of a running world by a script.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use history::Span;

use super::point;
use super::process::Process;
use super::stage::Stage;
use crate::faults::{self, Action, Fault, FaultCheck, Injector, Trigger};
use crate::field_path::{FieldPath, Invalid};
use crate::servers::host::{Acted, ActionError};
use crate::world::process::ProcessId;
use crate::world::{World, lock};

/// A script's control of a running world ([`Sim::run_script`](super::Sim::run_script)). Clones control the
/// same world.
///
/// A script runs outside all processes, in true time. It can run code in the [`Process`]es of the world, and
/// it strikes and heals faults as a schedule does.
///
/// # Example
///
/// ```
/// use sim::Sim;
/// use sim::faults::Crash;
/// use std::time::Duration;
///
/// let (_, lives) = Sim::new(7).empty_process("a").run_script(|control| async move {
///     let crash = control.strike(Crash::of("a"));
///     control.sleep(Duration::from_secs(1)).await;
///     assert!(!control.is_running("a"));
///     crash.heal();
///     control.process("a").life()
/// })?;
/// assert_eq!(lives, 1);
/// # Ok::<(), sim::RunError>(())
/// ```
#[derive(Clone)]
pub struct Control {
    stage: Arc<Stage>,
    injector: Arc<Injector>,
    /// The faults that the script has struck so far, with their numbers.
    struck: Arc<Mutex<Vec<(Fault, u64)>>>,
}

impl Control {
    pub(super) fn new(stage: &Arc<Stage>, injector: &Arc<Injector>) -> Self {
        Self { stage: Arc::clone(stage), injector: Arc::clone(injector), struck: Arc::default() }
    }

    /// Returns the process called `name`, in its present life: it has the same clocks and the same randomness
    /// as the code that the process runs itself.
    ///
    /// The history names no process for the actions of clients that run in the script itself. If the history
    /// matters, as for verdicts, run clients in the process with [`Process::spawn`].
    ///
    /// # Panics
    ///
    /// If the world has no process of that name.
    #[track_caller]
    pub fn process(&self, name: &str) -> Process {
        self.stage.process(self.id(name))
    }

    /// Returns the true time since the run began.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.world().now())
    }

    /// Waits until the true time `at`.
    pub async fn sleep_until(&self, at: Duration) {
        self.world().sleep_until(Span(at).as_nanos()).await;
    }

    /// Waits for `time`, in true time.
    pub async fn sleep(&self, time: Duration) {
        self.sleep_until(self.now() + time).await;
    }

    /// Runs `task` beside the script, outside all processes. It ends with the run.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.world().spawn_harness(task);
    }

    /// Calls `act` after `time`, beside the script.
    pub fn after(&self, time: Duration, act: impl FnOnce(&Self) + Send + 'static) {
        let (control, at) = (self.clone(), self.now() + time);
        self.spawn(async move {
            control.sleep_until(at).await;
            act(&control);
        });
    }

    /// Strikes a fault now, as a schedule does at its time. The history holds it, and it heals by itself if
    /// it has a duration.
    ///
    /// # Panics
    ///
    /// If the fault's target does not exist in the world, or the fault would do nothing.
    #[track_caller]
    pub fn strike(&self, what: impl Action) -> Struck {
        match self.try_strike(what) {
            Ok(struck) => struck,
            Err(invalid) => panic!("this fault can't strike: {invalid}"),
        }
    }

    /// Undoes the last fault of the script that is equal to `what` and in force: a link heals, a paused
    /// process resumes, a dead one restarts.
    ///
    /// # Panics
    ///
    /// If there is no such fault.
    #[track_caller]
    pub fn heal(&self, what: impl Action) {
        let what: &dyn Action = &what;
        let equal = |(fault, number): &(Fault, u64)| (*fault.what == *what).then_some(*number);
        let numbers: Vec<u64> = lock(&self.struck).iter().rev().filter_map(equal).collect();
        let is_healed = numbers.iter().any(|number| self.injector.heal(*number));
        assert!(is_healed, "no fault is in force that is equal to {what:?}");
    }

    fn try_strike(&self, what: impl Action) -> Result<Struck, Invalid> {
        let fault = Fault::new(Trigger::At(Span::from_nanos(self.world().now())), what);
        self.check(&fault)?;
        let number = self.injector.strike_now(&*fault.what);
        lock(&self.struck).push((fault, number));
        Ok(Struck { injector: Arc::clone(&self.injector), number })
    }

    fn check(&self, fault: &Fault) -> Result<(), Invalid> {
        let (what, path) = (&fault.what, &FieldPath::top("strike"));
        let faults: Vec<Fault> = lock(&self.struck).iter().map(|(fault, _)| fault.clone()).collect();
        // In a schedule, the number orders the faults. A script orders its own.
        what.check(&FaultCheck {
            verb: what.verb(),
            path,
            scene: &self.stage.cast,
            faults: &faults,
            number: 0,
        })
    }

    /// Runs one of the [actions](crate::servers::host::Host::actions) of the server `name`.
    ///
    /// # Errors
    ///
    /// [`ActionError`] if it has no such action, or the argument is missing or superfluous.
    ///
    /// # Panics
    ///
    /// If the world has no server of that name.
    #[track_caller]
    pub fn act(&self, name: &str, action: &str, argument: Option<&str>) -> Result<Acted, ActionError> {
        match self.stage.host(self.id(name)) {
            Some(host) => host.act(action, argument),
            None => panic!("the process `{name}` is no server"),
        }
    }

    /// Returns true if the process called `name` is alive and not paused.
    ///
    /// # Panics
    ///
    /// If the world has no process of that name.
    #[track_caller]
    pub fn is_running(&self, name: &str) -> bool {
        self.world().process(self.id(name)).is_running()
    }

    /// Calls `listener` whenever a server passes a [point](super::point), with the names of the process and
    /// of the point, from now on. Replaces an earlier listener. The call is made within the process's task: a
    /// fault that it strikes takes effect at the process's next await. Points of the network are included if
    /// a fault is aimed at one.
    pub fn hear_points(&self, listener: impl Fn(&str, &str) + Send + Sync + 'static) {
        let (injector, names) = (Arc::clone(&self.injector), self.world().clone());
        self.world().hear_points(move |process: ProcessId, point: &str| {
            let process = names.process(process).name();
            strike_at(&injector, process, point);
            listener(process, point);
        });
    }

    /// Waits until all processes that [`Sim::process`](super::Sim::process) added have ended.
    pub async fn finished(&self) {
        self.stage.finished().await;
    }

    #[track_caller]
    fn id(&self, name: &str) -> ProcessId {
        match self.world().find(name) {
            Some(id) => id,
            None => panic!("unknown process `{name}`: the world has {}", self.stage.cast.names.join(", ")),
        }
    }

    fn world(&self) -> &World {
        faults::FaultTarget::world(&*self.stage)
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("now", &self.now()).finish_non_exhaustive()
    }
}

/// A fault that a script has struck.
#[derive(Clone)]
pub struct Struck {
    injector: Arc<Injector>,
    number: u64,
}

impl Struck {
    /// Undoes the fault: a link heals, a paused process resumes, a dead one restarts. Returns false if it was
    /// not in force.
    pub fn heal(&self) -> bool {
        self.injector.heal(self.number)
    }
}

impl fmt::Debug for Struck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Struck").field("number", &self.number).finish_non_exhaustive()
    }
}

/// Strikes the faults that are aimed at this passing of a point by a server or by a process's network.
pub(super) fn strike_at(injector: &Arc<Injector>, process: &str, point: &str) {
    // The names of two processes may differ in case alone.
    if point::is_of_network(point) {
        injector.on_point(process, point);
    } else {
        injector.on_server_point(process, point);
    }
}
