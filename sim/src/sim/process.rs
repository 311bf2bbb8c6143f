//! The process in which code of the world runs, as that code sees it.

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use dlock::{Instant, Runtime};
use dlock_runtime::ProbeKind;
use sim_host::Section;

use super::progress::Progress;
use super::section;
use crate::faults::Call;
use crate::world::World;
use crate::world::disk::Disk;
use crate::world::process::ProcessId;
use crate::world::runtime::SimRuntime;
use crate::world::stream::{Listener, SimStream};

/// A process of a simulated world, in one of its lives. Clones are the same process.
///
/// It has its own clocks, network, scheduler and randomness; code that runs in it uses no others. A fault may
/// pause it, kill it (all its tasks are dropped) or set its clocks.
///
/// # Example
///
/// ```
/// use sim::{Process, Sim};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// let report = Sim::new(7)
///     .service("answers", |process: Process| async move {
///         let mut listener = process.listen(7000).unwrap();
///         let (mut stream, client) = listener.accept().await;
///         assert_eq!(client, "a");
///         stream.write_u64(42).await.unwrap();
///     })
///     .process("a", |process: Process| async move {
///         let mut stream = process.connect("answers:7000").await.unwrap();
///         process.point(&format!("got {}", stream.read_u64().await.unwrap()));
///     })
///     .run()?;
/// assert!(report.trace().contains("got 42"));
/// # Ok::<(), sim::RunError>(())
/// ```
#[derive(Clone)]
pub struct Process {
    progress: Arc<Progress>,
    runtime: SimRuntime,
}

impl Process {
    pub(super) fn new(world: &World, id: ProcessId, progress: Arc<Progress>) -> Self {
        let runtime = SimRuntime::new(world, id);
        Self { progress, runtime }
    }

    /// Returns its name in the world.
    pub fn name(&self) -> &str {
        self.runtime.world().process(self.id()).name()
    }

    /// Returns the number of its restarts: 0 in its first life.
    pub fn life(&self) -> u32 {
        self.runtime.world().process(self.id()).life()
    }

    /// Returns the [`Runtime`] of this process, for clients of `dlock` and `resource`.
    pub fn runtime(&self) -> SimRuntime {
        self.runtime.clone()
    }

    /// Opens a connection to `address`, written `host:port`. Waits while the link is cut.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if the world has no such host, [`io::ErrorKind::ConnectionRefused`] if
    /// the host does not listen on that port.
    pub async fn connect(&self, address: &str) -> io::Result<SimStream> {
        self.runtime.connect(address).await
    }

    /// Listens on `port` of this process: others reach it as `NAME:PORT`.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AddrInUse`] if the process listens there already.
    pub fn listen(&self, port: u16) -> io::Result<Listener> {
        self.runtime.world().listen(self.id(), &format!("{}:{port}", self.name()))
    }

    /// Returns the disk of the process: one file, which outlives its crashes. A power loss takes the data
    /// that was not synced.
    ///
    /// # Example
    ///
    /// ```
    /// use sim::{Process, Sim};
    ///
    /// Sim::new(7)
    ///     .process("a", |process: Process| async move {
    ///         let file = process.disk().open();
    ///         file.append(b"paid").unwrap();
    ///         // A power loss before this line loses the data.
    ///         file.sync().unwrap();
    ///         assert_eq!(file.contents().unwrap(), b"paid");
    ///     })
    ///     .run()?;
    /// # Ok::<(), sim::RunError>(())
    /// ```
    pub fn disk(&self) -> Disk {
        self.runtime.world().process(self.id()).disk().clone()
    }

    /// Returns the time on the process's monotonic clock.
    pub fn now(&self) -> Instant {
        self.runtime.now()
    }

    /// Returns the time on the process's wall clock, since the Unix epoch. The clock can be stepped: no lease
    /// may be measured by it.
    pub fn wall(&self) -> Duration {
        Duration::from_nanos(self.runtime.wall_nanos())
    }

    /// Waits for `duration` on the process's monotonic clock.
    pub async fn sleep(&self, duration: Duration) {
        self.runtime.sleep_until(self.now() + duration).await;
    }

    /// Runs `task` beside the caller. It ends with this life of the process.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    /// Calls `main`, which may block by the `block_on` of a simulated tokio, as a function under
    /// `#[tokio::main]` does. Other tasks run while it waits.
    ///
    /// # Example
    ///
    /// ```
    /// use sim::{Process, Sim};
    ///
    /// fn blocking_main() {
    ///     sim::point("started");
    /// }
    ///
    /// let report = Sim::new(7)
    ///     .process("a", |process: Process| async move { process.blocking(blocking_main).await })
    ///     .run()?;
    /// assert!(report.trace().contains("started"));
    /// # Ok::<(), sim::RunError>(())
    /// ```
    pub async fn blocking(&self, main: impl FnOnce() + Send + 'static) {
        crate::world::blocking::call(Box::new(main)).await;
    }

    /// Returns the next 64 random bits of the process's own stream.
    pub fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        self.runtime.fill_random(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Passes the point `name`: the trace shows it, and a fault that is aimed at it strikes here. The fault
    /// takes effect at the process's next await.
    pub fn point(&self, name: &str) {
        tracing::info!(target: "worker", event = "point_passed", step = name);
    }

    /// Evaluates a probe: `condition` should be true in at least one run of a search. The report of a run
    /// counts it under `name`.
    #[track_caller]
    pub fn sometimes(&self, name: &str, condition: bool) {
        self.probe(ProbeKind::Sometimes, name, condition.into(), Location::caller());
    }

    /// Evaluates a probe: `condition` must be true whenever this is called. Otherwise the run has a finding
    /// called `name`.
    ///
    /// # Example
    ///
    /// ```
    /// use sim::{Process, Sim};
    ///
    /// let report = Sim::new(7)
    ///     .process("a", |process: Process| async move { process.always("money is kept", 1 + 1 == 3) })
    ///     .run()?;
    /// assert_eq!(report.findings[0].check, "money is kept");
    /// # Ok::<(), sim::RunError>(())
    /// ```
    #[track_caller]
    pub fn always(&self, name: &str, condition: bool) {
        self.probe(ProbeKind::Always, name, condition.into(), Location::caller());
    }

    /// Evaluates a probe: this place should be reached in at least one run of a search.
    #[track_caller]
    pub fn reached(&self, name: &str) {
        self.probe(ProbeKind::Reached, name, 1, Location::caller());
    }

    /// Evaluates a graded probe, of which a search keeps the smallest number.
    #[track_caller]
    pub fn closest(&self, name: &str, number: u64) {
        self.probe(ProbeKind::Closest, name, number, Location::caller());
    }

    fn probe(&self, kind: ProbeKind, name: &str, seen: u64, place: &'static Location<'static>) {
        self.runtime.world().own_probe(self.id(), kind, name, place, seen);
    }

    /// Enters the critical section that the lock called `lock` guards; dropping the result leaves it. The
    /// audit finds processes that were inside at the same time.
    ///
    /// # Example
    ///
    /// ```
    /// use sim::{Process, Sim, VerdictKind};
    /// use std::time::Duration;
    ///
    /// let mut sim = Sim::new(7);
    /// for name in ["a", "b"] {
    ///     sim.process(name, |process: Process| async move {
    ///         // Without a lock, both are inside at once.
    ///         let section = process.section("account:7");
    ///         process.sleep(Duration::from_millis(100)).await;
    ///         drop(section);
    ///     });
    /// }
    /// assert!(sim.run()?.kinds().contains(&VerdictKind::Overlap));
    /// # Ok::<(), sim::RunError>(())
    /// ```
    pub fn section(&self, lock: &str) -> Section {
        self.section_with_token(lock, 0)
    }

    /// Enters a section as [`Process::section`] does, under a grant with this fencing token.
    pub fn section_with_token(&self, lock: &str, token: u64) -> Section {
        section::enter(self.runtime.world(), self.id(), lock, token)
    }

    /// Runs `future` until it ends. If the fault [`Cancel`](crate::faults::Cancel) of this `call` strikes
    /// first, drops it and returns `None`.
    pub async fn cancellable<F: Future>(&self, call: Call, future: F) -> Option<F::Output> {
        let mut future = std::pin::pin!(future);
        self.poll_cancellable(call, future.as_mut()).await
    }

    /// Runs `future` as [`Process::cancellable`] does, but leaves it to the caller to drop.
    pub async fn poll_cancellable<F: Future>(
        &self,
        call: Call,
        mut future: Pin<&mut F>,
    ) -> Option<F::Output> {
        std::future::poll_fn(|cx| {
            if self.progress.poll_cancelled(self.id().0, call, cx) {
                return Poll::Ready(None);
            }
            future.as_mut().poll(cx).map(Some)
        })
        .await
    }

    pub(crate) fn id(&self) -> ProcessId {
        self.runtime.process()
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("name", &self.name())
            .field("life", &self.life())
            .finish_non_exhaustive()
    }
}
