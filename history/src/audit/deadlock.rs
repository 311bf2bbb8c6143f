//! `stuck`, of several locks: processes that wait for each other's locks.
//!
//! A circle of processes is stuck if each waits for a lock that the next one holds, each has renewed the lock
//! that it holds since the circle closed, and it lasts longer than [`Rules::served_within`] after it closed
//! and after all faults healed. A lease that is not renewed ends by its TTL and opens the circle; so does a
//! process that gives up. The wait for a lock that is renewed again and again is not stuck by itself (see
//! `stuck`): its holder may work for long.
//!
//! A request to write waits for every reader of its lock, a request to read for the writer alone. So two
//! readers that both wait to write wait for each other, and each for itself. The permits of a semaphore are
//! not judged: who waits for one waits for no holder in particular.
//!
//! Judged only with [`Rules::one_task`]: a process with several tasks may wait in one of them for a lock,
//! while another one works under the lock that others wait for.
//!
//! Source: the circular wait of E. G. Coffman, M. J. Elphick and A. Shoshani, "System deadlocks", ACM
//! Computing Surveys 3(2), 1971; the other three of their conditions hold for locks that are renewed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::capacity::Capacities;
use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use super::{Capacity, Rules};
use crate::events::{Event, Nanos};
use crate::vocabulary::{Kind, Name};

pub(super) struct Deadlock<'h> {
    rules: Rules,
    healed_at: Nanos,
    served_within: Duration,
    /// The wait of each process.
    waits: BTreeMap<&'h Name, Wait<'h>>,
    /// The wait that each process gave up last: it may continue under another owner.
    given_up: BTreeMap<&'h Name, Wait<'h>>,
    /// The holders of each key: one, unless it may have readers.
    holds: BTreeMap<&'h Name, Vec<Hold<'h>>>,
    /// The keys of the circles that were convicted.
    convicted: BTreeSet<&'h Name>,
}

#[derive(Clone, Copy)]
struct Wait<'h> {
    key: &'h Name,
    owner: &'h Name,
    since: Nanos,
}

#[derive(Clone, Copy)]
struct Hold<'h> {
    process: &'h Name,
    owner: &'h Name,
    since: Nanos,
    renewed: Option<Nanos>,
}

/// A wait in a circle, with the hold that it waits for.
type Link<'h> = (&'h Name, Wait<'h>, Hold<'h>);

impl<'h> Judge<'h> for Deadlock<'h> {
    fn of(rules: &Rules) -> Option<Self> {
        let (healed_at, served_within) = (rules.healed_at?, rules.served_within?);
        rules.one_task.then(|| Self {
            rules: rules.clone(),
            healed_at,
            served_within,
            waits: BTreeMap::new(),
            given_up: BTreeMap::new(),
            holds: BTreeMap::new(),
            convicted: BTreeSet::new(),
        })
    }

    fn observe(&mut self, event: &'h Event, state: &State<'h>, verdicts: &mut Verdicts) {
        let (at, process) = (event.at, &event.process);
        match &event.kind {
            Kind::LeaseRequested { key, owner, .. } => {
                self.waits.insert(process, Wait { key, owner, since: at });
            }
            Kind::LeaseRetried { key, owner, .. } => {
                let former = self.given_up.remove(process).filter(|former| former.key == key);
                let since = former.map_or(at, |former| former.since);
                self.waits.insert(process, Wait { key, owner, since });
            }
            Kind::LeaseNotAcquired { key, .. } => self.end_wait(process, key),
            Kind::LeaseAcquired { key, owner, .. } => {
                self.end_wait(process, key);
                let holds = self.holds.entry(key).or_default();
                if state.capacities.of_key(key) == Capacity::Mutex {
                    holds.clear();
                }
                holds.push(Hold { process, owner, since: at, renewed: None });
            }
            Kind::LeaseRenewed { key, owner, .. } => {
                let holds = self.holds.get_mut(key).map_or(&mut [][..], |holds| &mut holds[..]);
                if let Some(hold) = holds.iter_mut().find(|hold| hold.owner == owner) {
                    hold.renewed = Some(at);
                    self.judge(process, at, &state.capacities, verdicts);
                }
            }
            Kind::LeaseLost { key, owner, .. }
            | Kind::LeaseReleaseRequested { key, owner, .. }
            | Kind::LeaseReleased { key, owner, .. } => {
                self.holds.entry(key).or_default().retain(|hold| hold.owner != owner);
            }
            Kind::ProcessCrashed { .. } => {
                self.waits.remove(process);
                self.holds.values_mut().for_each(|holds| holds.retain(|hold| hold.process != process));
            }
            _ => {}
        }
    }
}

impl<'h> Deadlock<'h> {
    fn end_wait(&mut self, process: &'h Name, key: &Name) {
        if self.waits.get(process).is_some_and(|wait| wait.key == key) {
            let ended = self.waits.remove(process);
            self.given_up.extend(ended.map(|wait| (process, wait)));
        }
    }

    /// Judges the circle in which `process` has just renewed a lease, if it is in one.
    fn judge(&mut self, process: &'h Name, at: Nanos, capacities: &Capacities<'h>, verdicts: &mut Verdicts) {
        let circle = self.circle(process, capacities);
        let Some(closed) = circle.iter().map(|(_, wait, hold)| wait.since.max(hold.since)).max() else {
            return;
        };
        let start = closed.max(self.healed_at);
        let due = start.after(self.served_within);
        let renews = |(.., hold): &Link<'_>| hold.renewed.is_some_and(|renewed| renewed > start);
        let is_left_out = |(process, ..): &Link<'_>| self.rules.outside.contains(*process);
        if at <= due || !circle.iter().all(renews) || circle.iter().any(is_left_out) {
            return;
        }
        if circle.iter().filter(|(_, wait, _)| self.convicted.insert(wait.key)).count() > 0 {
            convict(&circle, (closed, self.healed_at), due, self.served_within, verdicts);
        }
    }

    /// Follows the waits from `process` on; returns the shortest way by which they come back to it, if any.
    fn circle(&self, process: &'h Name, capacities: &Capacities<'h>) -> Vec<Link<'h>> {
        let (mut ways, mut passed) = (VecDeque::from([(process, Vec::new())]), BTreeSet::from([process]));
        while let Some((waiter, way)) = ways.pop_front() {
            for link in self.links(waiter, capacities) {
                let (.., hold) = link;
                let mut way = way.clone();
                way.push(link);
                if hold.process == process {
                    return way;
                }
                if passed.insert(hold.process) {
                    ways.push_back((hold.process, way));
                }
            }
        }
        Vec::new()
    }

    /// Returns the renewed holds for whose end a process waits.
    fn links(&self, waiter: &'h Name, capacities: &Capacities<'h>) -> Vec<Link<'h>> {
        let Some(wait) = self.waits.get(waiter) else { return Vec::new() };
        let excludes = |hold: &&Hold<'h>| match capacities.of_key(wait.key) {
            Capacity::Mutex => true,
            Capacity::Permits(_) => false,
            Capacity::ReadersWriter => {
                !(capacities.reads(wait.key, wait.owner) && capacities.reads(wait.key, hold.owner))
            }
        };
        let is_renewed = |hold: &&Hold<'h>| {
            hold.renewed.is_some_and(|renewed| renewed > wait.since.max(hold.since).max(self.healed_at))
        };
        let holds = self.holds.get(wait.key).into_iter().flatten().filter(excludes).filter(is_renewed);
        holds.map(|hold| (waiter, *wait, *hold)).collect()
    }
}

fn convict(
    circle: &[Link<'_>],
    (closed, healed): (Nanos, Nanos),
    due: Nanos,
    within: Duration,
    verdicts: &mut Verdicts,
) {
    let Some((_, first, _)) = circle.first() else { return };
    let waits: Vec<String> = circle
        .iter()
        .map(|(process, wait, hold)| {
            format!("{process} waited since {} for a lock of {}", wait.since, hold.process)
        })
        .collect();
    let after = if closed >= healed { "the last of them began to wait" } else { "the last fault healed" };
    let detail = format!(
        "{}: each renewed its own, and none had an answer by {due}, {} s after {after}",
        waits.join(", "),
        within.as_secs_f64(),
    );
    let processes: Vec<_> = circle.iter().map(|(process, ..)| *process).collect();
    verdicts.convict_absence(VerdictKind::Stuck, due, first.key, &processes, detail);
}
