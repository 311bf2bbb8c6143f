#![doc = include_str!("../README.md")]
//!
//! # How a mark finds its simulator
//!
//! `fencepost-sim` registers itself as the [`Host`] of its program when that starts. A mark asks the host,
//! which knows the process whose task is polled. Outside of every process a mark does nothing.

mod files;
mod process;
mod signals;

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
#[cfg(madsim)]
use std::sync::OnceLock;

pub use self::files::{FileKind, FileMetadata, Files, FolderEntry, OpenFile, Opening};
pub use self::process::{BoxFuture, BoxSleep, Datagrams, Listener, Process, Stream};
pub use self::signals::Signals;

/// The probability with which [`buggify!`] without a number is true where it is active: that of FoundationDB
/// (`flow/flow.h`, `P_BUGGIFIED_SECTION_FIRES`).
#[doc(hidden)]
pub const BUGGIFY: f64 = 0.25;

/// The simulator, as marks see it. Each method acts in the process whose task is polled on this thread, and
/// does nothing elsewhere.
pub trait Host: Sync {
    /// Returns true if the task of a process is polled on this thread.
    fn is_in_process(&self) -> bool;

    /// Passes the point `name`.
    fn point(&self, name: &str);

    /// Enters the critical section that the lock called `lock` guards, under a grant with this fencing token
    /// (0: none). Returns `None` outside of every process. Dropping what it returns leaves the section.
    fn enter(&self, lock: &str, token: u64) -> Option<Section>;

    /// Evaluates the probe `name` at `place`: `seen` is 1 or 0 for a condition, or the number of a graded
    /// probe.
    fn probe(&self, kind: ProbeKind, name: &str, seen: u64, place: &'static Location<'static>);

    /// Returns true if the rare branch at `place` is taken now, which happens with the probability `chance`
    /// in some of the runs.
    fn buggify(&self, chance: f64, place: &'static Location<'static>) -> bool;

    /// Returns the process.
    fn process(&self) -> Option<Arc<dyn Process>>;

    /// Runs `main` in the only process of a world of its own. See [`run`].
    ///
    /// # Errors
    ///
    /// If the run fails, or is found guilty.
    ///
    /// # Panics
    ///
    /// If `main` does.
    fn run(&self, main: Pin<Box<dyn Future<Output = ()> + '_>>) -> Result<(), String>;
}

/// The expectation of a probe in a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// Its condition is true in at least one run.
    Sometimes,
    /// Its condition is true whenever it is evaluated.
    Always,
    /// Its place is reached in at least one run.
    Reached,
    /// Its number is reported in at least one run; the smallest one is kept.
    Closest,
}

/// A critical section that was entered. It is left when this is dropped or its process dies.
#[must_use = "a section is left when it is dropped"]
pub struct Section(Option<Box<dyn Leave>>);

/// The end of a section: dropping it leaves the section.
pub trait Leave: Send + Sync {}

#[cfg(madsim)]
static HOST: OnceLock<&'static dyn Host> = OnceLock::new();

/// Makes `host` the simulator of this program. The first one stays. Without `--cfg madsim` no mark asks it.
pub fn register(host: &'static dyn Host) {
    #[cfg(madsim)]
    let _ = HOST.set(host);
    #[cfg(not(madsim))]
    let _ = host;
}

/// Returns the simulator, if the task of one of its processes is polled on this thread.
#[inline(always)]
fn host() -> Option<&'static dyn Host> {
    #[cfg(madsim)]
    return HOST.get().copied().filter(|host| host.is_in_process());
    #[cfg(not(madsim))]
    None
}

/// Returns the simulated process whose task is polled on this thread; `None` outside of a simulation.
pub fn process() -> Option<Arc<dyn Process>> {
    host().and_then(Host::process)
}

/// Runs `main` in the only process of a world of its own, for a runtime that starts outside of every world.
/// Returns `None` if the program contains no simulator.
///
/// # Errors
///
/// If the run fails, or is found guilty.
///
/// # Panics
///
/// If `main` does.
pub fn run<'a>(main: impl Future<Output = ()> + 'a) -> Option<Result<(), String>> {
    #[cfg(madsim)]
    return HOST.get().map(|host| host.run(Box::pin(main)));
    #[cfg(not(madsim))]
    drop(main);
    #[cfg(not(madsim))]
    None
}

/// Returns true if the program contains a simulator.
pub fn has_simulator() -> bool {
    #[cfg(madsim)]
    return HOST.get().is_some();
    #[cfg(not(madsim))]
    false
}

/// Returns true in the code of a simulated process.
///
/// # Example
///
/// ```
/// // A program that is not simulated.
/// assert!(!sim_host::is_simulated());
/// ```
#[inline(always)]
pub fn is_simulated() -> bool {
    host().is_some()
}

/// Passes the point `name`: the trace shows it, and a fault that is aimed at it strikes here. The fault takes
/// effect at the process's next await.
#[inline(always)]
pub fn point(name: &str) {
    if let Some(host) = host() {
        host.point(name);
    }
}

/// Enters the critical section that the lock called `lock` guards; dropping the result leaves it. The audit
/// finds processes that were inside at the same time.
///
/// # Example
///
/// ```
/// let inside = sim_host::section("account:7");
/// // Work that needs the lock.
/// drop(inside);
/// ```
#[inline(always)]
pub fn section(lock: &str) -> Section {
    section_with_token(lock, 0)
}

/// Enters a section as [`section`] does, under a grant with this fencing token.
#[inline(always)]
pub fn section_with_token(lock: &str, token: u64) -> Section {
    host().and_then(|host| host.enter(lock, token)).unwrap_or(Section(None))
}

/// Evaluates a probe. `seen` is called in a simulated process only.
#[doc(hidden)]
#[inline(always)]
#[track_caller]
pub fn probe(kind: ProbeKind, name: &str, seen: impl FnOnce() -> u64) {
    if let Some(host) = host() {
        host.probe(kind, name, seen(), Location::caller());
    }
}

/// Returns true with the probability `chance` in some of the simulated runs.
#[doc(hidden)]
#[inline(always)]
#[track_caller]
pub fn take_rare_branch(chance: f64) -> bool {
    // A closure has no caller of its own.
    let place = Location::caller();
    host().is_some_and(|host| host.buggify(chance, place))
}

/// Evaluates a probe: the condition must be true whenever this is evaluated. Otherwise the run has a finding
/// of this name. The condition is evaluated in a simulated process only.
///
/// # Example
///
/// ```
/// let (paid, owed) = (7, 7);
/// sim_host::always!("nobody pays too much", paid <= owed);
/// ```
#[macro_export]
macro_rules! always {
    ($name:expr, $condition:expr) => {
        $crate::probe($crate::ProbeKind::Always, $name, || u64::from($condition))
    };
}

/// Evaluates a probe: the condition should be true in at least one run of a search, whose report says whether
/// it was. The condition is evaluated in a simulated process only.
///
/// # Example
///
/// ```
/// let tries = 1;
/// sim_host::sometimes!("a payment is tried twice", tries == 2);
/// ```
#[macro_export]
macro_rules! sometimes {
    ($name:expr, $condition:expr) => {
        $crate::probe($crate::ProbeKind::Sometimes, $name, || u64::from($condition))
    };
}

/// Evaluates a probe: this place should be reached in at least one run of a search.
///
/// # Example
///
/// ```
/// # let lease: Result<(), &str> = Err("lost");
/// if lease.is_err() {
///     sim_host::reached!("the lease is lost before the write");
/// }
/// ```
#[macro_export]
macro_rules! reached {
    ($name:expr) => {
        $crate::probe($crate::ProbeKind::Reached, $name, || 1)
    };
}

/// Evaluates a graded probe, a `u64` of which a search keeps the smallest: how close it came. `u64::MAX` says
/// that it was not close at all. The number is evaluated in a simulated process only.
///
/// # Example
///
/// ```
/// # let left = std::time::Duration::from_millis(3);
/// sim_host::closest!("validity left at the write, in ms", left.as_millis() as u64);
/// ```
#[macro_export]
macro_rules! closest {
    ($name:expr, $number:expr) => {
        $crate::probe($crate::ProbeKind::Closest, $name, || $number)
    };
}

/// Is true now and then in a simulated process, and always false elsewhere: for a rare branch, such as a
/// small buffer or an early timeout, that tests should take more often than production does.
///
/// Each place is active in a quarter of the runs; where it is, it is true with the probability given, or with
/// 0.25. The run's seed decides both, so a run replays.
///
/// Source: the macro `BUGGIFY` of FoundationDB (`flow/flow.h`).
///
/// # Example
///
/// ```
/// let batch = if sim_host::buggify!() { 1 } else { 1000 };
/// let drops_answer = sim_host::buggify!(0.01);
/// // Never outside of a simulation.
/// assert_eq!((batch, drops_answer), (1000, false));
/// ```
#[macro_export]
macro_rules! buggify {
    () => {
        $crate::take_rare_branch($crate::BUGGIFY)
    };
    ($chance:expr) => {
        $crate::take_rare_branch($chance)
    };
}

impl Section {
    /// Creates a section that dropping `leave` leaves. For hosts.
    pub fn entered(leave: impl Leave + 'static) -> Self {
        Self(Some(Box::new(leave)))
    }
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Section").field("is_simulated", &self.0.is_some()).finish()
    }
}
