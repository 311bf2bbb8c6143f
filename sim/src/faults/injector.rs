//! Strikes the faults of a run at their triggers.
//!
//! A fault with a point strikes inside the event of that point, before any other code of the process runs. It
//! takes effect at the process's next await. A task of the harness undoes it later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::action::{Action, Fault};
use super::strike::{FaultTarget, Ledger, Strike};
use super::trigger::Trigger;

/// All faults of a run.
pub struct Injector {
    ledger: Arc<Ledger>,
    faults: Vec<Armed>,
    /// The number of faults outside the schedule that have struck ([`Injector::strike_now`]).
    extra: AtomicU32,
    /// True once the last faults have struck; from then on no fault of the schedule strikes.
    is_over: AtomicBool,
}

/// The last faults of a run, which stay for good: see [`Injector::last_breaks`].
pub struct LastBreaks<'a> {
    injector: &'a Injector,
    /// The number of the first of them in the history.
    first: u64,
}

struct Armed {
    fault: Fault,
    /// The number of times that its point has been passed.
    passed: AtomicU32,
    has_struck: AtomicBool,
}

impl Injector {
    /// Creates the injector of a run on `stage`.
    pub fn new(stage: Arc<dyn FaultTarget>, faults: &[Fault]) -> Arc<Self> {
        let arm = |fault: &Fault| Armed {
            fault: fault.clone(),
            passed: AtomicU32::new(0),
            has_struck: AtomicBool::new(false),
        };
        let (ledger, faults) = (Arc::new(Ledger::new(stage)), faults.iter().map(arm).collect());
        Arc::new(Self { ledger, faults, extra: AtomicU32::new(0), is_over: AtomicBool::new(false) })
    }

    /// Prepares the world for all faults, and schedules those whose trigger is a time.
    pub fn start(self: &Arc<Self>) {
        for (number, armed) in self.faults.iter().enumerate() {
            armed.fault.what.prepare(self.ledger.stage.world());
            if let Trigger::At(at) = &armed.fault.when {
                self.strike_at(at.as_nanos(), number);
            }
        }
    }

    /// Returns the points of all triggers.
    pub fn points(&self) -> impl Iterator<Item = &str> {
        self.faults.iter().filter_map(|armed| match &armed.fault.when {
            Trigger::After { point, .. } => Some(point.as_str()),
            Trigger::At(_) => None,
        })
    }

    /// Strikes a fault outside the schedule. Returns its number in the history, which follows those of the
    /// schedule.
    pub fn strike_now(&self, what: &dyn Action) -> u64 {
        let number = self.faults.len() + self.extra.fetch_add(1, Ordering::Relaxed) as usize;
        what.prepare(self.ledger.stage.world());
        what.strike(&Strike::new(&self.ledger, number, what.verb()));
        number as u64
    }

    /// Prevents further strikes of the schedule's faults. Returns a handle that breaks some processes for
    /// good and ends all other faults.
    pub fn last_breaks(&self) -> LastBreaks<'_> {
        self.is_over.store(true, Ordering::Relaxed);
        let first = self.faults.len() + self.extra.load(Ordering::Relaxed) as usize;
        LastBreaks { injector: self, first: first as u64 }
    }

    /// Undoes the fault of that number. Returns false if it was not in force.
    pub fn heal(&self, number: u64) -> bool {
        self.ledger.heal(number)
    }

    /// Strikes the faults that are aimed at this passing of a point by a server. Redis accepts its commands
    /// in upper and lower case.
    pub fn on_server_point(self: &Arc<Self>, process: &str, passed: &str) {
        self.pass(process, |aimed| aimed.eq_ignore_ascii_case(passed));
    }

    /// Strikes the faults whose trigger is this passing of a point.
    pub fn on_point(self: &Arc<Self>, process: &str, passed: &str) {
        self.pass(process, |aimed| aimed == passed);
    }

    /// Strikes the faults that are aimed at this passing of a point; `is_passed` recognises its name.
    fn pass(self: &Arc<Self>, process: &str, is_passed: impl Fn(&str) -> bool) {
        for (number, armed) in self.faults.iter().enumerate() {
            let Trigger::After { process: aimed, point, nth, plus } = &armed.fault.when else { continue };
            if aimed != process || !is_passed(point) {
                continue;
            }
            if armed.passed.fetch_add(1, Ordering::Relaxed) + 1 != *nth {
                continue;
            }
            if plus.is_zero() {
                self.strike(number);
            } else {
                self.strike_at(self.ledger.stage.world().now() + plus.as_nanos(), number);
            }
        }
    }

    /// Returns the true time at which the last fault ended, or `None` while a fault that hinders others is in
    /// force.
    pub fn healed_at(&self) -> Option<u64> {
        self.ledger.healed_at()
    }

    /// Returns true for each fault that has struck, in the order of the schedule.
    pub fn struck(&self) -> Vec<bool> {
        self.faults.iter().map(|armed| armed.has_struck.load(Ordering::Relaxed)).collect()
    }

    fn strike_at(self: &Arc<Self>, at: u64, number: usize) {
        let injector = Arc::clone(self);
        self.ledger.later(at, move || injector.strike(number));
    }

    fn strike(&self, number: usize) {
        if self.is_over.load(Ordering::Relaxed) {
            return;
        }
        let armed = &self.faults[number];
        armed.has_struck.store(true, Ordering::Relaxed);
        let what = &armed.fault.what;
        what.strike(&Strike::new(&self.ledger, number, what.verb()));
    }
}

impl LastBreaks<'_> {
    /// Strikes a fault that stays for good.
    pub fn strike(&self, what: &dyn Action) {
        self.injector.strike_now(what);
    }

    /// Ends all other faults in force. From now on the run counts as healed.
    pub fn heal_all_else(self) {
        self.injector.ledger.settle(self.first);
    }
}
