//! The audit: judges a run from its history alone.
//!
//! Read in this order: `History` and `Event` (`events`), the table of all events (`vocabulary/`), then one
//! file for each family of verdicts (`overlap`, `writes`, `lost_update`, `tokens`, `ownership`, `stuck`,
//! `deadlock`, `unfair`, `two_valid`, `unheld`, `leaked`, `idle`, `after_release`, `terms`, `tasks`,
//! `crowded`, `flights`, `queues`), each with its rule and the rule's source, as a `Judge` (`judge`) with a
//! row in `Judges`. Several of them rest on the leases that holders believe in (`beliefs`, `trust`), the
//! number of them that may be live at once (`capacity`), the keys that servers have stored (`stored`) and the
//! faults in force (`faults`).
//! [`Summary`] and [`Fairness`] are counts, for reports and expectations.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::events::{Event, Nanos};
use crate::vocabulary::Name;

mod after_release;
mod beliefs;
mod capacity;
mod crowded;
mod deadlock;
mod ends;
mod fairness;
mod faults;
mod flights;
mod holders;
mod idle;
mod judge;
mod leaked;
mod lost_update;
mod overlap;
mod ownership;
mod path;
mod queues;
mod starved;
mod stored;
mod stuck;
mod summary;
mod tasks;
mod terms;
mod tokens;
mod trust;
mod two_valid;
mod unfair;
mod unheld;
mod verdict;
mod writes;

pub use beliefs::{Acquisition, Belief, Beliefs};
pub use capacity::Capacity;
pub use fairness::Fairness;
pub use summary::{Summary, Updates, WriteBy, WriteByError};
pub use verdict::{Verdict, VerdictKind};

use after_release::AfterRelease;
use crowded::Crowded;
use deadlock::Deadlock;
use flights::Flights;
use idle::Idle;
use judge::{Judge, State};
use leaked::Leaked;
use lost_update::LostUpdate;
use overlap::Overlap;
use ownership::Ownership;
use path::Paths;
use queues::Queues;
use stuck::Stuck;
use tasks::Tasks;
use terms::Terms;
use tokens::Tokens;
use two_valid::TwoValid;
use unfair::Unfair;
use unheld::Unheld;
use verdict::Verdicts;
use writes::Writes;

/// The rules by which a history is judged. The default judges safety alone: neither order nor progress.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use history::{Name, Nanos, Rules};
///
/// // A fair lock on one server: each waiter must be served within a minute after the last fault.
/// let rules = Rules {
///     fifo: true,
///     healed_at: Some(Nanos(9_000_000_000)),
///     served_within: Some(Duration::from_secs(60)),
///     servers: vec![Name::from("etcd")],
///     ..Rules::default()
/// };
/// assert!(history::audit(&[], &rules).is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The lock promises first come, first served; without it, `unfair` is not judged.
    pub fifo: bool,
    /// The token of a grant is its place in the queue, which a waiter has until it leaves (etcd, ZooKeeper).
    /// Set it in place of [`Rules::fifo`] for a history without the events of lock servers: `unfair` and
    /// `crowded` are then judged by what the events of clients prove.
    pub tokens_are_places: bool,
    /// The end of the run, in true time. If the last event is later, its time counts.
    pub end: Nanos,
    /// The end of the last fault, in true time: zero for a run without faults. `None` if faults lasted to the
    /// end: `stuck` is not judged then.
    pub healed_at: Option<Nanos>,
    /// The longest time that a request may wait once no fault and no other owner's lease blocks it. `None` if
    /// the run sets no limit.
    pub served_within: Option<Duration>,
    /// The longest time for which a lock may stay taken that its server stores without a TTL. `None` if it
    /// may for ever.
    pub ttl: Option<Duration>,
    /// The longest delay after the end of its TTL with which a server may drop a key: its clock may be slow,
    /// and it checks only from time to time.
    pub grace: Duration,
    /// True if a lease lives as long as its holder's session, which the client keeps alive beside its work:
    /// the lock of a live holder is taken, whatever its TTL.
    pub sessions: bool,
    /// True if each process does one thing at a time, and waits for one lock at most: processes that wait for
    /// each other's locks are then `stuck`, though they renew them.
    pub one_task: bool,
    /// The lock servers whose events count, by their names in the history; a cluster has one name. If there
    /// are several, a majority holds the lock. Empty if the history has no events of theirs: `unheld`,
    /// `leaked` and `idle` are not judged then.
    pub servers: Vec<Name>,
    /// Each event is stamped with the time at which it happened, and not with that of its recording; without
    /// it, `two_valid` and `unheld` are not judged.
    pub exact: bool,
    /// The longest delay before a client retries a request or a release. `None` if it is not known: `leaked`
    /// and `idle` are not judged then.
    pub longest_retry: Option<Duration>,
    /// The longest time for which messages that a fault has delayed may still be in flight after its
    /// `fault_healed`, by the number of the fault.
    pub in_flight: BTreeMap<u64, Duration>,
    /// The capacities of keys, by their hashes ([`dlock::id_hash`]). Of any other key the history tells the
    /// number of permits (`lease_permits`: the largest counts) or are for reading (`lease_shared`); otherwise
    /// it is that of a mutex.
    pub capacities: BTreeMap<Name, Capacity>,
    /// The processes that are broken for good from [`Rules::healed_at`] on: `stuck` judges whether the others
    /// are served without them.
    pub outside: BTreeSet<Name>,
}

/// Judges `history`, whose events are in the order in which they happened; returns the verdicts in the order
/// of their times.
///
/// Takes time in proportion to the history's length (times the logarithm of the number of leases), plus the
/// verdicts.
///
/// # Example
///
/// ```
/// use history::{Event, Kind, Name, Nanos, Rules, VerdictKind, audit};
///
/// // Redis grants the lock to b, and then deletes it for a.
/// let (key, owner, b) = (Name::from("6b6e"), Name::from("b:28999649"), Name::from("b"));
/// let (token, ttl_millis) = (None, Some(2000));
/// let granted = Kind::KeyGranted { key: key.clone(), owner: owner.clone(), token, ttl_millis, client: b };
/// let deleted = Kind::KeyDeleted { key, owner, client: Name::from("a") };
/// let history = [granted, deleted].map(|kind| Event { at: Nanos(0), process: Name::from("redis"), kind });
///
/// let verdicts = audit(&history, &Rules::default());
/// assert_eq!(verdicts.len(), 1);
/// assert_eq!(verdicts[0].kind, VerdictKind::ForeignRelease);
/// assert_eq!(verdicts[0].processes, ["a", "b"].map(Name::from));
/// ```
pub fn audit(history: &[Event], rules: &Rules) -> Vec<Verdict> {
    let rules = &capacity::with_those_of(history, rules);
    let mut judges = Judges::new(rules);
    let mut verdicts = Verdicts::default();
    for (number, event) in history.iter().enumerate() {
        verdicts.judge(number);
        judges.observe(event, &mut verdicts);
    }
    let last = history.last().map_or(Nanos(0), |event| event.at);
    judges.finish(rules.end.max(last), &mut verdicts);
    let mut verdicts = verdicts.sorted();
    if !verdicts.is_empty() {
        let paths = Paths::of(history, rules);
        verdicts.iter_mut().for_each(|verdict| verdict.because = paths.because(verdict));
    }
    verdicts
}

/// The judges of a history, with the state that they share.
struct Judges<'h> {
    state: State<'h>,
    judges: Vec<Box<dyn Judge<'h> + 'h>>,
}

impl<'h> Judges<'h> {
    fn new(rules: &Rules) -> Self {
        let all = [
            boxed::<Overlap<'h>>(rules),
            boxed::<AfterRelease<'h>>(rules),
            boxed::<Writes<'h>>(rules),
            boxed::<LostUpdate<'h>>(rules),
            boxed::<Tokens<'h>>(rules),
            boxed::<Ownership<'h>>(rules),
            boxed::<Stuck<'h>>(rules),
            boxed::<Deadlock<'h>>(rules),
            boxed::<Unfair<'h>>(rules),
            boxed::<TwoValid<'h>>(rules),
            boxed::<Unheld<'h>>(rules),
            boxed::<Leaked<'h>>(rules),
            boxed::<Idle<'h>>(rules),
            boxed::<Terms<'h>>(rules),
            boxed::<Tasks<'h>>(rules),
            boxed::<Crowded<'h>>(rules),
            boxed::<Flights<'h>>(rules),
            // Names other events than the one that is judged.
            boxed::<Queues<'h>>(rules),
        ];
        Self { state: State::of(rules), judges: all.into_iter().flatten().collect() }
    }

    fn observe(&mut self, event: &'h Event, verdicts: &mut Verdicts) {
        let Self { state, judges } = self;
        judges.iter_mut().for_each(|judge| judge.until(event, state, verdicts));
        state.observe(event);
        judges.iter_mut().for_each(|judge| judge.observe(event, state, verdicts));
    }

    /// Judges liveness at the end. An open critical section was judged when it was entered.
    fn finish(mut self, end: Nanos, verdicts: &mut Verdicts) {
        self.judges.iter_mut().for_each(|judge| judge.finish(end, &self.state, verdicts));
    }
}

fn boxed<'h, J: Judge<'h> + 'h>(rules: &Rules) -> Option<Box<dyn Judge<'h> + 'h>> {
    Some(Box::new(J::of(rules)?))
}
