//! What a fault may do when it strikes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use resource::audit::{Kind, Name};

use super::link::Link;
use super::scene::Role;
use crate::record::note;
use crate::span::Span;
use crate::world::World;
use crate::world::clock::TRUE_RATE;
use crate::world::process::ProcessId;

/// The name under which the history knows faults of links, which are no process's own.
pub const NETWORK: &str = "network";

/// The processes and servers of a run, as faults change them.
pub trait Stage: Send + Sync {
    /// The world that they are in.
    fn world(&self) -> &World;

    /// What the process is.
    fn role(&self, process: ProcessId) -> Role;

    /// Kills a process, with what it had not synced if power is lost.
    fn kill(&self, process: ProcessId, power_loss: bool);

    /// Starts a dead process anew.
    fn start(self: Arc<Self>, process: ProcessId);

    /// A dead process stays away.
    fn leave_dead(&self, process: ProcessId);

    /// Has a server write what it has to its disk, as a clean shutdown does.
    fn shut_down(&self, process: ProcessId);

    /// The wall clock of a process was set.
    fn clock_was_set(&self, process: ProcessId);

    /// A process drops the acquire that it is waiting for.
    fn cancel(&self, process: ProcessId);

    /// Has a server do something of its own. Returns whether it did.
    fn act(&self, server: ProcessId, action: &str, arguments: &[String]) -> bool;

    /// The servers that clients' keys are on.
    fn servers_of_keys(&self) -> Vec<ProcessId>;
}

/// The faults of a run that are in force.
pub(super) struct Ledger {
    pub(super) stage: Arc<dyn Stage>,
    /// Faults that are in force and will end, or never end and hinder service.
    open: AtomicUsize,
    /// The true time at which the last fault that ended did so.
    healed_at: AtomicU64,
}

/// One fault that strikes. Clones are the same fault.
#[derive(Clone)]
pub struct Strike {
    ledger: Arc<Ledger>,
    /// Where the fault stands in its schedule.
    number: u64,
    verb: &'static str,
}

impl Ledger {
    pub(super) fn new(stage: Arc<dyn Stage>) -> Self {
        Self { stage, open: AtomicUsize::new(0), healed_at: AtomicU64::new(0) }
    }

    /// When the last fault ended, if none is in force.
    pub(super) fn healed_at(&self) -> Option<u64> {
        (self.open.load(Ordering::Relaxed) == 0).then(|| self.healed_at.load(Ordering::Relaxed))
    }

    /// Does `deed` at the true time `at`.
    pub(super) fn later(&self, at: u64, deed: impl FnOnce() + Send + 'static) {
        let world = self.stage.world().clone();
        self.stage.world().spawn_harness(async move {
            world.sleep_until(at).await;
            deed();
        });
    }
}

impl Strike {
    pub(super) fn new(ledger: &Arc<Ledger>, number: usize, verb: &'static str) -> Self {
        Self { ledger: Arc::clone(ledger), number: number as u64, verb }
    }

    /// The world.
    pub fn world(&self) -> &World {
        self.ledger.stage.world()
    }

    /// The processes and servers.
    pub fn stage(&self) -> &Arc<dyn Stage> {
        &self.ledger.stage
    }

    /// The process of that name. The schedule was validated, so there is one.
    pub fn process(&self, name: &str) -> ProcessId {
        self.world().find(name).unwrap_or(ProcessId(0))
    }

    /// The link in the direction that it names, or in `both`.
    pub fn directions(&self, link: &Link, both: bool) -> Vec<(ProcessId, ProcessId)> {
        let (from, to) = (self.process(&link.from), self.process(&link.to));
        if both { vec![(from, to), (to, from)] } else { vec![(from, to)] }
    }

    /// Records in words that the fault has begun, as happening in `process` or in the [`NETWORK`].
    pub fn begins(&self, process: &str, detail: &str) {
        note(
            process,
            Kind::FaultApplied {
                fault: self.number,
                verb: Name::from(self.verb),
                detail: Name::from(detail),
            },
        );
    }

    /// Records in words that the fault is over.
    pub fn heals(&self, process: &str, detail: &str) {
        self.ledger.healed_at.store(self.world().now(), Ordering::Relaxed);
        note(
            process,
            Kind::FaultHealed { fault: self.number, verb: Name::from(self.verb), detail: Name::from(detail) },
        );
    }

    /// Does `deed` as soon as the event is over in which the fault strikes: a server that is told to do something
    /// finishes what it is doing first.
    pub fn soon(&self, deed: impl FnOnce(&Self) + Send + 'static) {
        let strike = self.clone();
        self.ledger.later(self.world().now(), move || deed(&strike));
    }

    /// Undoes a fault of `process`, or of the [`NETWORK`], when its time is over; `detail` says so. One that has no end
    /// is in force for the rest of the run, unless it took a client away: the others need not wait for it.
    pub fn until(
        &self,
        process: &str,
        lasts: Option<Span>,
        detail: &str,
        undo: impl FnOnce(&Self) + Send + 'static,
    ) {
        let is_client =
            self.world().find(process).is_some_and(|id| self.ledger.stage.role(id) == Role::Client);
        if lasts.is_some() || !is_client || process == NETWORK {
            self.ledger.open.fetch_add(1, Ordering::Relaxed);
        }
        let Some(lasts) = lasts else { return };
        let (strike, process, detail) = (self.clone(), process.to_owned(), detail.to_owned());
        self.ledger.later(self.world().now() + lasts.as_nanos(), move || {
            undo(&strike);
            strike.ledger.open.fetch_sub(1, Ordering::Relaxed);
            strike.heals(&process, &detail);
        });
    }

    /// Has both clocks of a process run at `rate`, in local nanoseconds in a billion true ones, until they run true again.
    pub fn set_clock_rate(&self, process: &str, rate: u64, detail: &str, lasts: Option<Span>) {
        let id = self.process(process);
        self.world().set_clock_rate(id, rate);
        self.begins(process, detail);
        self.until(process, lasts, "clock runs true again", move |strike| {
            strike.world().set_clock_rate(id, TRUE_RATE);
        });
    }

    /// Kills a process that starts again, if it does, `restart_after` later.
    pub fn kill(&self, process: &str, power_loss: bool, restart_after: Option<Span>) {
        let (stage, id) = (self.stage(), self.process(process));
        stage.kill(id, power_loss);
        // What the dead process held is dropped before its successor starts.
        let after = restart_after.map(|after| after.max(Span::from_millis(1)));
        if after.is_none() {
            stage.leave_dead(id);
        }
        self.until(process, after, "restarted", move |strike| Arc::clone(strike.stage()).start(id));
    }
}
