//! The operations that a fault may use when it strikes, and the faults in force.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use history::{ClockFault, Effect, Kind, LinkFault, Name, TRUE_RATE};

use super::call::Call;
use super::link::Link;
use super::scene::Role;
use crate::record::note;
use crate::span::Span;
use crate::world::process::ProcessId;
use crate::world::{World, lock};

/// The process name in the history for faults of links, which belong to no process.
pub const NETWORK: &str = "network";

/// The operations of faults on the processes and servers of a run.
pub trait FaultTarget: Send + Sync {
    /// Returns the world.
    fn world(&self) -> &World;

    /// Returns the role of the process.
    fn role(&self, process: ProcessId) -> Role;

    /// Kills a process. If power is lost, its disk loses unsynced data.
    fn kill(&self, process: ProcessId, power_loss: bool);

    /// Restarts a dead process.
    fn start(self: Arc<Self>, process: ProcessId);

    /// Notes that a dead process will not restart.
    fn leave_dead(&self, process: ProcessId);

    /// Syncs a server's data to its disk, as a clean shutdown does.
    fn shut_down(&self, process: ProcessId);

    /// Notes that a process has been asked to end: once its program has ended, it is killed.
    fn terminate(&self, process: ProcessId);

    /// Returns true if the program of a process that has been asked to end has ended.
    fn has_ended(&self, process: ProcessId) -> bool;

    /// Polls for the end of the program of a process that has been asked to end: false if the process was
    /// killed first.
    fn poll_ended(&self, process: ProcessId, cx: &mut Context<'_>) -> Poll<bool>;

    /// Notifies a process that its wall clock was set.
    fn clock_was_set(&self, process: ProcessId);

    /// Drops the future of a call of a process.
    fn cancel(&self, process: ProcessId, call: Call);

    /// Runs an action of a server. Returns false if the server could not do it.
    fn act(&self, server: ProcessId, action: &str, arguments: &[String]) -> bool;

    /// Returns the servers that store the clients' keys.
    fn servers_of_keys(&self) -> Vec<ProcessId>;
}

/// The faults of a run that are in force.
pub(super) struct Ledger {
    pub(super) stage: Arc<dyn FaultTarget>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In the order in which they began.
    open: Vec<Open>,
    /// The number of faults that have begun so far.
    opened: u64,
    /// The true time of the last end of a fault.
    healed_at: u64,
    /// True once all faults have ended except those that stay for good.
    is_settled: bool,
    /// The clocks that run fast or slow: for each process, the number and the rate of each fault in force, in
    /// the order in which the faults began.
    rates: BTreeMap<ProcessId, Vec<(u64, u64)>>,
}

/// A fault that is in force.
struct Open {
    /// The number of faults that began before it.
    place: u64,
    /// The number of the fault in the schedule, and its verb.
    number: u64,
    verb: &'static str,
    process: String,
    effect: Effect,
    scope: Scope,
    /// True if it ends by itself.
    has_end: bool,
    /// True if the run counts as broken until it ends.
    hinders: bool,
    /// The text for the history when it ends.
    detail: String,
    undo: Undo,
}

/// Undoes a fault. May return a text for the history, which replaces [`Open::detail`].
type Undo = Box<dyn FnOnce(&Strike) -> Option<String> + Send>;

/// The event that ends a fault early.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// None: it outlives its process.
    Run,
    /// The death of its process.
    Life,
    /// Another kill of its process, which is dead already.
    Death,
}

/// One fault that strikes. Clones are the same fault.
#[derive(Clone)]
pub struct Strike {
    ledger: Arc<Ledger>,
    /// Its number in the schedule, from 0.
    number: u64,
    verb: &'static str,
}

/// A fault that has begun. Say how it ends.
#[must_use = "a fault that begins must end: call `until` or `while_alive`"]
pub struct Begun<'s> {
    strike: &'s Strike,
    process: String,
    effect: Effect,
    lasts: Option<Span>,
}

impl Ledger {
    pub(super) fn new(stage: Arc<dyn FaultTarget>) -> Self {
        Self { stage, state: Mutex::default() }
    }

    /// Returns the true time at which the last fault ended, or `None` while a fault that hinders others is in
    /// force. A fault that stays for good after all others have ended hinders nobody.
    pub(super) fn healed_at(&self) -> Option<u64> {
        let state = lock(&self.state);
        let is_broken = !state.is_settled && state.open.iter().any(|open| open.hinders);
        (!is_broken).then_some(state.healed_at)
    }

    /// Runs `deed` at the true time `at`.
    pub(super) fn later(&self, at: u64, deed: impl FnOnce() + Send + 'static) {
        let world = self.stage.world().clone();
        self.stage.world().spawn_harness(async move {
            world.sleep_until(at).await;
            deed();
        });
    }

    /// Undoes all effects of the fault of that number that are in force. Returns false if there are none.
    pub(super) fn heal(self: &Arc<Self>, number: u64) -> bool {
        let mut has_healed = false;
        while self.end(|open| (open.number == number).then_some(open.place)) {
            has_healed = true;
        }
        has_healed
    }

    /// Undoes all faults in force, in the order in which they began, except those that stay for good: number
    /// `first` and above.
    pub(super) fn settle(self: &Arc<Self>, first: u64) {
        while self.end(|open| (open.number < first).then_some(open.place)) {}
        let mut state = lock(&self.state);
        state.healed_at = self.stage.world().now();
        state.is_settled = true;
    }

    /// Undoes the fault with the lowest rank. Faults without a rank are skipped. Returns false if none has
    /// one.
    fn end<R: Ord>(self: &Arc<Self>, rank: impl Fn(&Open) -> Option<R>) -> bool {
        let Some(open) = self.close(rank) else { return false };
        let strike = Strike { ledger: Arc::clone(self), number: open.number, verb: open.verb };
        let detail = (open.undo)(&strike).unwrap_or(open.detail);
        strike.heals(&open.process, open.effect, &detail);
        true
    }

    fn close<R: Ord>(&self, rank: impl Fn(&Open) -> Option<R>) -> Option<Open> {
        let mut state = lock(&self.state);
        let ranked = state.open.iter().enumerate().filter_map(|(at, open)| Some((rank(open)?, at)));
        let (_, at) = ranked.min()?;
        state.healed_at = self.stage.world().now();
        Some(state.open.remove(at))
    }
}

impl Strike {
    pub(super) fn new(ledger: &Arc<Ledger>, number: usize, verb: &'static str) -> Self {
        Self { ledger: Arc::clone(ledger), number: number as u64, verb }
    }

    /// Returns the world.
    pub fn world(&self) -> &World {
        self.ledger.stage.world()
    }

    /// Returns the processes and servers.
    pub fn stage(&self) -> &Arc<dyn FaultTarget> {
        &self.ledger.stage
    }

    /// Returns the process called `name`. The schedule was validated, so it exists.
    pub fn process(&self, name: &str) -> ProcessId {
        self.world().find(name).unwrap_or(ProcessId(0))
    }

    /// Returns sender and receiver of the link, and those of the opposite direction for `both`.
    pub fn directions(&self, link: &Link, both: bool) -> Vec<(ProcessId, ProcessId)> {
        let (from, to) = (self.process(&link.from), self.process(&link.to));
        if both { vec![(from, to), (to, from)] } else { vec![(from, to)] }
    }

    /// Returns the effect on these links.
    pub fn on_links(&self, how: LinkFault, links: &[(ProcessId, ProcessId)]) -> Effect {
        let name = |id: ProcessId| self.world().process(id).name();
        Effect::links(how, links.iter().map(|(from, to)| (name(*from), name(*to))))
    }

    /// Records that the fault acts once on `process`, or on the [`NETWORK`]. `detail` is the text for people.
    pub fn acts(&self, process: &str, effect: Effect, detail: &str) {
        self.applied(process, effect, None, detail);
    }

    /// Records that the fault has begun in `process`, or in the [`NETWORK`], for the time `lasts`. `detail`
    /// is the text for people. Without `lasts` the fault stays in force until [`Strike::end`], or for the
    /// rest of the run.
    pub fn begins(&self, process: &str, effect: Effect, lasts: Option<Span>, detail: &str) -> Begun<'_> {
        self.applied(process, effect.clone(), lasts, detail);
        Begun { strike: self, process: process.to_owned(), effect, lasts }
    }

    fn applied(&self, process: &str, effect: Effect, lasts: Option<Span>, detail: &str) {
        let (fault, verb, detail) = (self.number, Name::from(self.verb), Name::from(detail));
        let until = lasts.map(|lasts| self.world().now() + lasts.as_nanos());
        note(process, Kind::FaultApplied { fault, verb, effect, until, detail });
    }

    /// Records that the fault has ended.
    fn heals(&self, process: &str, effect: Effect, detail: &str) {
        let (fault, verb, detail) = (self.number, Name::from(self.verb), Name::from(detail));
        note(process, Kind::FaultHealed { fault, verb, effect, detail });
    }

    /// Runs `deed` right after the event in which the fault strikes, so that a server finishes its command
    /// first.
    pub fn soon(&self, deed: impl FnOnce(&Self) + Send + 'static) {
        self.after(Span::ZERO, deed);
    }

    /// Runs `deed` after the time `later`.
    pub fn after(&self, later: Span, deed: impl FnOnce(&Self) + Send + 'static) {
        let strike = self.clone();
        self.ledger.later(self.world().now() + later.as_nanos(), move || deed(&strike));
    }

    /// Undoes the last fault with this verb on the process, preferably one that does not end by itself.
    /// Returns false if there is none.
    pub fn end(&self, verb: &str, process: &str) -> bool {
        self.ledger.end(|open| {
            let is_meant = open.verb == verb && open.process == process;
            is_meant.then_some((open.has_end, Reverse(open.place)))
        })
    }

    /// Ends all effects of this fault that are in force.
    pub fn finish(&self) {
        self.ledger.heal(self.number);
    }

    /// Runs both clocks of a process at `rate`, in local nanoseconds per billion true ones, for the time
    /// `lasts`. Afterwards they run at the rate of the latest fault still in force, or at the true rate.
    pub fn set_clock_rate(&self, process: &str, rate: u64, detail: &str, lasts: Option<Span>) {
        let id = self.process(process);
        self.world().set_clock_rate(id, rate);
        let begun = self.begins(process, Effect::Clock(ClockFault::Rate(rate)), lasts, detail);
        note(process, Kind::ClockRate { rate });
        lock(&self.ledger.state).rates.entry(id).or_default().push((self.number, rate));
        let name = process.to_owned();
        let undo = move |strike: &Self| {
            let next = strike.end_rate(id);
            strike.world().set_clock_rate(id, next.unwrap_or(TRUE_RATE));
            note(&name, Kind::ClockRate { rate: next.unwrap_or(TRUE_RATE) });
            next.map(|rate| format!("clock goes on at {}", rate as f64 / TRUE_RATE as f64))
        };
        begun.open(Scope::Run, "clock runs true again", Box::new(undo));
    }

    /// Removes this fault's rate. Returns the latest rate still in force on the process.
    fn end_rate(&self, id: ProcessId) -> Option<u64> {
        let mut state = lock(&self.ledger.state);
        let rates = state.rates.get_mut(&id)?;
        rates.retain(|(number, _)| *number != self.number);
        rates.last().map(|(_, rate)| *rate)
    }

    /// Kills a process, and restarts it after `restart_after`. Cancels a pending restart.
    pub fn kill(&self, process: &str, power_loss: bool, restart_after: Option<Span>) {
        let (stage, id) = (self.stage(), self.process(process));
        stage.kill(id, power_loss);
        let dies = |open: &Open| (open.scope != Scope::Run && open.process == process).then_some(());
        while self.ledger.close(dies).is_some() {}
        // The restart must come after the tasks and memory of the dead process have been dropped.
        let after = restart_after.map(|after| after.max(Span::from_millis(1)));
        if after.is_none() {
            stage.leave_dead(id);
        }
        let restart = undoing(move |strike: &Self| Arc::clone(strike.stage()).start(id));
        let begun = Begun { strike: self, process: process.to_owned(), effect: Effect::Down, lasts: after };
        begun.open(Scope::Death, "restarted", restart);
    }
}

impl Begun<'_> {
    /// Calls `undo` when the time of the fault is over, and records that it has ended; `detail` is the text
    /// for people.
    pub fn until(self, detail: &str, undo: impl FnOnce(&Strike) + Send + 'static) {
        self.open(Scope::Run, detail, undoing(undo));
    }

    /// Calls `undo` as [`Begun::until`] does. The text that it returns, if any, replaces `detail`.
    pub fn until_told(self, detail: &str, undo: impl FnOnce(&Strike) -> Option<String> + Send + 'static) {
        self.open(Scope::Run, detail, Box::new(undo));
    }

    /// Calls `undo` as [`Begun::until`] does. The death of the process ends the fault without a call of
    /// `undo`.
    pub fn while_alive(self, detail: &str, undo: impl FnOnce(&Strike) + Send + 'static) {
        self.open(Scope::Life, detail, undoing(undo));
    }

    fn open(self, scope: Scope, detail: &str, undo: Undo) {
        let Self { strike, process, effect, lasts } = self;
        let role = strike.world().find(&process).map(|id| strike.ledger.stage.role(id));
        // A client that never comes back hinders no other.
        let hinders = lasts.is_some() || role != Some(Role::Client);
        let place = {
            let mut state = lock(&strike.ledger.state);
            let place = state.opened;
            state.opened += 1;
            state.open.push(Open {
                place,
                number: strike.number,
                verb: strike.verb,
                process,
                effect,
                scope,
                has_end: lasts.is_some(),
                hinders,
                detail: detail.to_owned(),
                undo,
            });
            place
        };
        let Some(lasts) = lasts else { return };
        let ledger = Arc::clone(&strike.ledger);
        strike.ledger.later(strike.world().now() + lasts.as_nanos(), move || {
            // Does nothing if another fault has ended this one.
            ledger.end(|open| (open.place == place).then_some(()));
        });
    }
}

/// Returns an [`Undo`] that keeps the text in [`Open::detail`].
fn undoing(undo: impl FnOnce(&Strike) + Send + 'static) -> Undo {
    Box::new(move |strike| {
        undo(strike);
        None
    })
}
