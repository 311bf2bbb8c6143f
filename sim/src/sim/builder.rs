//! The builder of a world: its processes, its faults, and the rules and checks that judge its run.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use history::{Capacity, Name, Rules, Span, VerdictKind};

use super::cast::{Body, Cast, Main};
use super::check::Check;
use super::core::CorePhase;
use super::process::Process;
use super::rekey::Rekey;

use crate::faults::{Fault, Role, Scene};
use crate::servers::host::Host;

/// A world under construction: processes and servers, a network between them, faults, and the rules and
/// checks that judge a run.
///
/// The same world and seed give the same run, byte for byte, even beside other runs. [`Sim::run`] lets
/// faults strike by a schedule; in [`Sim::run_script`], code outside all processes controls the run step by
/// step.
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
    pub(super) rekey: Vec<Rekey>,
    pub(super) latency: (Duration, Duration),
    pub(super) limit: Duration,
    pub(super) real_limit: Duration,
    pub(super) linger: Duration,
    pub(super) cast: Cast,
    pub(super) aliases: Vec<(String, String)>,
    pub(super) faults: Vec<Fault>,
    pub(super) core: Option<CorePhase>,
    pub(super) quorums: Vec<Vec<String>>,
    /// True once a subject has checked the faults.
    pub(super) is_checked: bool,
    pub(super) records_steps: bool,
    pub(super) records_messages: bool,
    pub(super) is_in_own_process: bool,
    /// True if `buggify!` may be true.
    pub(super) has_rare_branches: bool,
    pub(super) rules: Rules,
    pub(super) verdicts: Option<BTreeSet<VerdictKind>>,
    pub(super) checks: Vec<(String, Box<dyn Check>)>,
}

impl Sim {
    /// Returns an empty world with all randomness keyed by `seed`. Links have a latency of 1 to 4 ms, and a
    /// run ends after 60 s at the latest.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            rekey: Vec::new(),
            latency: (Duration::from_millis(1), Duration::from_millis(4)),
            limit: Duration::from_secs(60),
            real_limit: Duration::from_secs(60),
            linger: Duration::from_secs(5),
            cast: Cast { scale: Span::from_secs(1), ..Cast::default() },
            aliases: Vec::new(),
            faults: Vec::new(),
            core: None,
            quorums: Vec::new(),
            is_checked: false,
            records_steps: false,
            records_messages: false,
            is_in_own_process: false,
            has_rare_branches: true,
            rules: Rules::default(),
            verdicts: None,
            checks: Vec::new(),
        }
    }

    /// Returns the seed of all randomness in the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Replaces the seed.
    pub fn with_seed(&mut self, seed: u64) -> &mut Self {
        self.seed = seed;
        self
    }

    /// Adds a simulated server as the process `name`: clients reach it as `NAME:PORT`.
    ///
    /// # Example
    ///
    /// ```
    /// use sim::servers::redis::RedisHost;
    /// use sim::{Process, Sim};
    ///
    /// let report = Sim::new(7)
    ///     .host("redis", RedisHost::new().preset("greeting", "hello"))
    ///     .process("a", |process: Process| async move {
    ///         let mut redis = sim::clients::redis(&process, "redis:6379").await.unwrap();
    ///         let greeting: String = redis::AsyncCommands::get(&mut redis, "greeting").await.unwrap();
    ///         process.point(&greeting);
    ///     })
    ///     .run()?;
    /// assert!(report.trace().contains("hello"));
    /// # Ok::<(), sim::RunError>(())
    /// ```
    pub fn host(&mut self, name: &str, host: impl Host) -> &mut Self {
        self.shared_host(name, Arc::new(host))
    }

    /// Adds a server as [`Sim::host`] does, and lets the caller keep using it.
    pub fn shared_host(&mut self, name: &str, host: Arc<dyn Host>) -> &mut Self {
        self.add(name, Body::Host { host, role: Role::Server })
    }

    /// Adds the server that the locks protect, as [`Sim::host`] does: random faults treat it as the resource.
    pub fn resource(&mut self, name: &str, host: impl Host) -> &mut Self {
        self.shared_resource(name, Arc::new(host))
    }

    /// Adds a server as [`Sim::resource`] does, and lets the caller keep using it.
    pub fn shared_resource(&mut self, name: &str, host: Arc<dyn Host>) -> &mut Self {
        self.add(name, Body::Host { host, role: Role::Resource })
    }

    /// Allows faults to be aimed at points of `cluster`, the common name of several servers in the history.
    pub fn cluster(&mut self, cluster: &str) -> &mut Self {
        self.cast.clusters.push(cluster.to_owned());
        self
    }

    /// Adds a process that runs `main`, again from its beginning after each restart. The run ends when all
    /// such processes have ended.
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

    /// Adds a server of the caller's own, as [`Sim::process`] does, but the run does not wait for its end.
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

    /// Adds `alias` as a virtual address of the process `name`: clients reach the process as `ALIAS:PORT`,
    /// too. A server's action may move the alias.
    pub fn alias(&mut self, alias: &str, name: &str) -> &mut Self {
        self.aliases.push((alias.to_owned(), name.to_owned()));
        self
    }

    /// Adds a fault. Each fault strikes once; their order is free.
    ///
    /// # Example
    ///
    /// ```
    /// use sim::faults::{Fault, Pause, Trigger};
    /// use sim::{Process, Sim, Span};
    /// use std::time::Duration;
    ///
    /// let pause = Pause { process: "a".to_owned(), lasts: Some(Span::from_secs(5)) };
    /// let report = Sim::new(7)
    ///     .process("a", |process: Process| async move {
    ///         process.point("working");
    ///         process.sleep(Duration::from_millis(1)).await;
    ///         process.point("done");
    ///     })
    ///     .fault(Fault::new(Trigger::after("a", "working"), pause))
    ///     .run()?;
    /// assert!(report.simulated >= Duration::from_secs(5));
    /// # Ok::<(), sim::RunError>(())
    /// ```
    pub fn fault(&mut self, fault: impl Into<Fault>) -> &mut Self {
        self.faults.push(fault.into());
        self
    }

    /// Sets the [core phase](CorePhase), in which some processes stay broken for good and the others must be
    /// served. Default: none, all faults end by themselves.
    pub fn core(&mut self, core: CorePhase) -> &mut Self {
        self.core = Some(core);
        self
    }

    /// Names servers of which a majority is enough: a [core phase](CorePhase) may go on without the others,
    /// and searches draw such phases. By default every server is needed.
    pub fn quorum<N: AsRef<str>>(&mut self, servers: impl IntoIterator<Item = N>) -> &mut Self {
        self.quorums.push(servers.into_iter().map(|name| name.as_ref().to_owned()).collect());
        self
    }

    /// Sets the one-way latency of every link, both ends included: it is drawn for each segment. Default 1 ms
    /// to 4 ms.
    pub fn latency(&mut self, min: Duration, max: Duration) -> &mut Self {
        self.latency = (min, max);
        self
    }

    /// Sets the simulated time at which the run ends at the latest. Default 60 s.
    pub fn limit(&mut self, limit: Duration) -> &mut Self {
        self.limit = limit;
        self
    }

    /// Sets the real time after which a run is an error: its code never awaits, or makes a call that blocks.
    /// Default 60 s.
    pub fn real_limit(&mut self, limit: Duration) -> &mut Self {
        self.real_limit = limit;
        self
    }

    /// Lets [`Sim::run`] run the world in a process of its own, a fork of this program: a static that code in
    /// the world changes, such as a counter, is as it was for the next run. Without it, such code gives other
    /// traces in a second run. It takes some milliseconds a run.
    ///
    /// A run that records its messages stays in this program. So do all runs on other systems than Unix.
    /// Threads of the program that hold a lock while it forks can block the run: let no other test run beside
    /// it.
    ///
    /// # Example
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// use sim::{Process, Sim};
    ///
    /// static NEXT: AtomicU32 = AtomicU32::new(1);
    ///
    /// for _ in 0..2 {
    ///     let mut sim = Sim::new(7);
    ///     sim.process("a", |process: Process| async move {
    ///         process.point(&format!("number {}", NEXT.fetch_add(1, Ordering::Relaxed)));
    ///     });
    ///     assert!(sim.in_own_process().run()?.trace().contains("number 1"));
    /// }
    /// # Ok::<(), sim::RunError>(())
    /// ```
    pub fn in_own_process(&mut self) -> &mut Self {
        self.is_in_own_process = true;
        self
    }

    /// Sets the longest time that the run goes on after all processes have ended, while a server still holds
    /// a lock. Default 5 s.
    pub fn linger(&mut self, linger: Duration) -> &mut Self {
        self.linger = linger;
        self
    }

    /// Sets whether [`buggify!`](crate::buggify) may be true. Default: yes.
    pub fn buggify(&mut self, is_on: bool) -> &mut Self {
        self.has_rare_branches = is_on;
        self
    }

    /// Sets the unit for the durations of drawn faults, such as the TTL of a lease: they last for up to three
    /// units. Default 1 s.
    pub fn scale(&mut self, scale: Duration) -> &mut Self {
        self.cast.scale = Span(scale);
        self
    }

    /// Names a lock or a resource, so that traces show `key` rather than its hash.
    pub fn key(&mut self, key: &str) -> &mut Self {
        self.cast.keys.push(key.to_owned());
        self
    }

    /// Sets the rules of the audit: the lock's TTL, its fairness, the limit of a wait. The run fills in its
    /// own end and the time at which the last fault had healed.
    pub fn rules(&mut self, rules: Rules) -> &mut Self {
        self.rules = rules;
        self
    }

    /// Names a lock, as [`Sim::key`] does, and sets how many of its grants may be live at once: the permits
    /// of a semaphore, or readers and a writer. Default: one. Call it after [`Sim::rules`].
    pub fn capacity(&mut self, key: &str, capacity: Capacity) -> &mut Self {
        self.rules.capacities.insert(Name::from(dlock::id_hash(key).as_str()), capacity);
        self.key(key)
    }

    /// Sets the verdicts of the audit that apply. Default: all. Verdicts on tokens, for example, say nothing
    /// about a lock without tokens.
    pub fn verdicts(&mut self, kinds: &[VerdictKind]) -> &mut Self {
        self.verdicts = Some(kinds.iter().copied().collect());
        self
    }

    /// Adds a check. If it does not hold, the report lists it as `name`.
    ///
    /// # Example
    ///
    /// ```
    /// use sim::{Evidence, Kind, Process, Sim};
    ///
    /// let nobody_speaks = |evidence: &Evidence<'_>| {
    ///     match evidence.events.iter().find(|event| matches!(event.kind, Kind::PointPassed { .. })) {
    ///         Some(event) => Err(format!("{} spoke at {}", event.process, event.at)),
    ///         None => Ok(()),
    ///     }
    /// };
    /// let report = Sim::new(7)
    ///     .process("a", |process: Process| async move { process.point("speaking") })
    ///     .check("nobody speaks", nobody_speaks)
    ///     .run()?;
    /// assert_eq!(report.findings[0].problem, "a spoke at 0.000");
    /// # Ok::<(), sim::RunError>(())
    /// ```
    pub fn check(&mut self, name: &str, check: impl Check) -> &mut Self {
        self.checks.push((name.to_owned(), Box::new(check)));
        self
    }

    /// Records every point that a process passes, in [`Report::steps`](crate::sim::Report::steps): faults
    /// can be aimed there.
    pub fn record_steps(&mut self) -> &mut Self {
        self.records_steps = true;
        self
    }

    /// Records the messages between processes, in [`Report::messages`](crate::sim::Report::messages) and
    /// [`Report::capture`](crate::sim::Report::capture). The run stays the same.
    pub fn record_messages(&mut self) -> &mut Self {
        self.records_messages = true;
        self
    }

    /// Returns the scene against which faults are checked, and for which they are drawn.
    pub(crate) fn scene(&self) -> &dyn Scene {
        &self.cast
    }

    /// Returns the names under which the history knows several servers.
    pub(crate) fn clusters(&self) -> &[String] {
        &self.cast.clusters
    }

    /// Returns the names of all processes and servers, in the order in which they were added.
    pub fn names(&self) -> &[String] {
        &self.cast.names
    }

    /// Returns the role of the process or server called `name`. A cluster of servers is a server.
    pub fn role(&self, name: &str) -> Option<Role> {
        let is_cluster = self.cast.clusters.iter().any(|cluster| cluster == name);
        self.cast.role(name).or(is_cluster.then_some(Role::Server))
    }

    /// Returns the faults, in the order in which they were added.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    fn add(&mut self, name: &str, body: Body) -> &mut Self {
        self.cast.add(name, body);
        self
    }
}
