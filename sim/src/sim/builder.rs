//! The builder of a world: its processes, what fails, and what it is judged by.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use resource::audit::{Rules, VerdictKind};

use super::cast::{Body, Cast, Main};
use super::check::Check;
use super::process::Process;

use crate::faults::{Fault, Role, Scene};
use crate::servers::host::Host;
use crate::span::Span;

/// A world that is being built: processes and servers, a network between them, faults, and what a run is
/// judged by.
///
/// The same world and seed give the same run, byte for byte, whatever else runs at the same time.
/// [`Sim::run`] lets faults strike by a schedule; in [`Sim::run_script`], code outside all processes says
/// step by step what happens.
///
/// ```
/// use sim::{Sim, Process};
/// use std::time::Duration;
///
/// let report = Sim::new(7)
///     .process("clock", |process: Process| async move {
///         process.sleep(Duration::from_secs(1)).await;
///         process.point("a second later");
///     })
///     .run()?;
/// assert!(report.trace().contains("a second later"));
/// # Ok::<(), sim::RunError>(())
/// ```
pub struct Sim {
    pub(super) seed: u64,
    pub(super) latency: (Duration, Duration),
    pub(super) limit: Duration,
    pub(super) linger: Duration,
    pub(super) scale: Span,
    pub(super) cast: Cast,
    pub(super) aliases: Vec<(String, String)>,
    pub(super) faults: Vec<Fault>,
    /// Whether a subject has checked the faults.
    pub(super) is_checked: bool,
    pub(super) records_steps: bool,
    pub(super) rules: Rules,
    pub(super) verdicts: BTreeSet<VerdictKind>,
    pub(super) checks: Vec<(String, Box<dyn Check>)>,
}

impl Sim {
    /// An empty world, all of whose randomness is keyed by `seed`. Links take 1 to 4 ms, and a run ends
    /// after 60 s at the latest.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            latency: (Duration::from_millis(1), Duration::from_millis(4)),
            limit: Duration::from_secs(60),
            linger: Duration::from_secs(5),
            scale: Span::from_secs(1),
            cast: Cast::default(),
            aliases: Vec::new(),
            faults: Vec::new(),
            is_checked: false,
            records_steps: false,
            rules: Rules::default(),
            verdicts: VerdictKind::ALL.into_iter().collect(),
            checks: Vec::new(),
        }
    }

    /// The seed of all randomness in the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Replaces the seed.
    pub fn with_seed(&mut self, seed: u64) -> &mut Self {
        self.seed = seed;
        self
    }

    /// Adds a simulated server as the process `name`: clients reach it as `NAME:PORT`.
    pub fn host(&mut self, name: &str, host: impl Host) -> &mut Self {
        self.shared_host(name, Arc::new(host))
    }

    /// [`Sim::host`] for a server that the caller goes on using.
    pub fn shared_host(&mut self, name: &str, host: Arc<dyn Host>) -> &mut Self {
        self.add(name, Body::Host { host, role: Role::Server })
    }

    /// [`Sim::host`] for the server that the locks protect: random faults treat it as such.
    pub fn resource(&mut self, name: &str, host: impl Host) -> &mut Self {
        self.shared_resource(name, Arc::new(host))
    }

    /// [`Sim::resource`] for a server that the caller goes on using.
    pub fn shared_resource(&mut self, name: &str, host: Arc<dyn Host>) -> &mut Self {
        self.add(name, Body::Host { host, role: Role::Resource })
    }

    /// Lets faults be aimed at what happens in `cluster`, the name under which the history knows several
    /// servers.
    pub fn cluster(&mut self, cluster: &str) -> &mut Self {
        self.cast.clusters.push(cluster.to_owned());
        self
    }

    /// Adds a process that runs `main`, from its beginning after each restart. The run ends when all such
    /// processes have ended.
    pub fn process<M, F>(&mut self, name: &str, main: M) -> &mut Self
    where
        M: Fn(Process) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        self.program(name, main, Role::Client)
    }

    /// Adds a process that runs nothing by itself: a script runs code in it ([`Sim::run_script`]).
    pub fn empty_process(&mut self, name: &str) -> &mut Self {
        self.add(name, Body::Program { main: None, role: Role::Client })
    }

    /// Adds a service of one's own: a process that others connect to, as [`Sim::process`], but nobody waits
    /// for its end.
    pub fn service<M, F>(&mut self, name: &str, main: M) -> &mut Self
    where
        M: Fn(Process) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        self.program(name, main, Role::Server)
    }

    fn program<M, F>(&mut self, name: &str, main: M, role: Role) -> &mut Self
    where
        M: Fn(Process) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let main = Box::new(move |process| -> Main { Box::pin(main(process)) });
        self.add(name, Body::Program { main: Some(main), role })
    }

    /// Lets `alias` stand for the process `name`, as a virtual address does: clients reach it as
    /// `ALIAS:PORT`, too. A server's action may move it.
    pub fn alias(&mut self, alias: &str, name: &str) -> &mut Self {
        self.aliases.push((alias.to_owned(), name.to_owned()));
        self
    }

    /// Adds a fault. Faults strike once each, in any order.
    pub fn fault(&mut self, fault: impl Into<Fault>) -> &mut Self {
        self.faults.push(fault.into());
        self
    }

    /// How long a segment takes on every link, one way: drawn anew for each, both ends included.
    pub fn latency(&mut self, min: Duration, max: Duration) -> &mut Self {
        self.latency = (min, max);
        self
    }

    /// When the run ends at the latest, in simulated time.
    pub fn limit(&mut self, limit: Duration) -> &mut Self {
        self.limit = limit;
        self
    }

    /// How long the run goes on at most when all processes have ended and a server still holds a lock.
    /// Default 5 s.
    pub fn linger(&mut self, linger: Duration) -> &mut Self {
        self.linger = linger;
        self
    }

    /// The time that drawn faults are measured by, such as the time to live of a lease: they last for up to
    /// three of it. Default 1 s.
    pub fn scale(&mut self, scale: Duration) -> &mut Self {
        self.scale = Span::from_nanos(u64::try_from(scale.as_nanos()).unwrap_or(u64::MAX));
        self
    }

    /// Names a lock or a resource, so that traces show `key` rather than its hash.
    pub fn key(&mut self, key: &str) -> &mut Self {
        self.cast.keys.push(key.to_owned());
        self
    }

    /// What the audit judges by: the lock's time to live, its fairness, the bound of a wait. The run fills
    /// in when it ended and when the last fault had healed.
    pub fn rules(&mut self, rules: Rules) -> &mut Self {
        self.rules = rules;
        self
    }

    /// The verdicts that apply, of all that the audit can give. Default: all. Those on tokens say nothing
    /// of a lock that has none, for example.
    pub fn verdicts(&mut self, kinds: &[VerdictKind]) -> &mut Self {
        self.verdicts = kinds.iter().copied().collect();
        self
    }

    /// Adds a check, which the report names `name` if it does not hold.
    pub fn check(&mut self, name: &str, check: impl Check) -> &mut Self {
        self.checks.push((name.to_owned(), Box::new(check)));
        self
    }

    /// Lets the report list every point that a process passes: where faults can be aimed.
    pub fn record_steps(&mut self) -> &mut Self {
        self.records_steps = true;
        self
    }

    /// The processes and servers, as faults see them.
    pub(crate) fn scene(&self) -> &dyn Scene {
        &self.cast
    }

    /// The time that drawn faults are measured by.
    pub(crate) fn scale_of_faults(&self) -> Span {
        self.scale
    }

    /// The names under which the history knows several servers.
    pub(crate) fn clusters(&self) -> &[String] {
        &self.cast.clusters
    }

    /// The names of all processes and servers, in the order in which they were added.
    pub fn names(&self) -> &[String] {
        &self.cast.names
    }

    /// The faults, in the order in which they were added.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    fn add(&mut self, name: &str, body: Body) -> &mut Self {
        self.cast.add(name, body);
        self
    }
}
