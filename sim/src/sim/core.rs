//! The core phase of a run: all faults end, some processes stay broken for good, and the others, the core,
//! must be served.
//!
//! A run in which everything heals shows that faults do no lasting harm. It can't show that a lock works
//! without the broken processes: a waiter that needs one certain member is served once that member is back.
//! Source: the liveness phase of TigerBeetle's simulator, `src/vopr.zig`.

use std::collections::BTreeSet;
use std::time::Duration;

use history::{Name, Rules};
use serde::{Deserialize, Serialize};

use crate::entropy::Site;
use crate::faults::{Crash, Fault, Injector, Partition, Role, Scene, Trigger};
use crate::field_path::{FieldPath, Invalid};
use crate::span::Span;

/// The core phase of a schedule. At its time all faults end: links heal, paused processes resume, dead ones
/// restart, clocks run at the true rate. No fault strikes later. The processes that it names are broken from
/// then on; all others are the core.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorePhase {
    /// The time at which it begins.
    pub at: Span,
    /// The processes that crash and never restart. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crashed: Vec<String>,
    /// The processes that lose all their links for good. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
}

impl CorePhase {
    /// Returns a core phase in which everything heals.
    pub fn at(at: Span) -> Self {
        Self { at, crashed: Vec::new(), cut: Vec::new() }
    }

    /// Returns the processes outside the core.
    pub fn outside(&self) -> impl Iterator<Item = &str> {
        self.crashed.iter().chain(&self.cut).map(String::as_str)
    }

    /// Returns true if the process is broken for good.
    pub fn excludes(&self, process: &str) -> bool {
        self.outside().any(|name| name == process)
    }

    /// Returns the phase with the process inside the core.
    #[must_use]
    pub fn with(&self, process: &str) -> Self {
        let others = |names: &[String]| names.iter().filter(|name| *name != process).cloned().collect();
        Self { at: self.at, crashed: others(&self.crashed), cut: others(&self.cut) }
    }

    /// Returns the crashes of the processes outside the core, for example for the verdicts that they excuse.
    pub fn crashes(&self) -> impl Iterator<Item = Crash> {
        self.crashed.iter().map(|process| Crash::of(process))
    }

    /// Returns true if a fault with this trigger can strike before the core phase begins.
    pub(crate) fn allows(&self, fault: &Fault) -> bool {
        !matches!(fault.when, Trigger::At(at) if at >= self.at)
    }

    /// Checks the times: the phase begins within the run, after each fault that strikes at a time.
    pub(super) fn check_times(&self, limit: Span, faults: &[Fault]) -> Result<(), Invalid> {
        let (at, path) = (self.at, FieldPath::top("core").key("at"));
        if at.is_zero() {
            return Err(path.says("`at` of `core` is 0s: give the run some time with faults"));
        }
        if at >= limit {
            return Err(path.says(format!("`at` = {at} is when the run is over (`limit` = {limit})")));
        }
        match faults.iter().position(|fault| !self.allows(fault)) {
            None => Ok(()),
            Some(number) => {
                let path = FieldPath::top("fault").index(number).key("when").key("at");
                Err(path.says(format!("the core phase begins at {at}: no fault strikes then or later")))
            }
        }
    }

    /// Checks the processes: each exists and is named once, and a core is left.
    pub(super) fn check_processes(&self, scene: &dyn Scene, quorums: &[Vec<String>]) -> Result<(), Invalid> {
        let mut seen = BTreeSet::new();
        for (field, names) in [("crashed", &self.crashed), ("cut", &self.cut)] {
            for (at, name) in names.iter().enumerate() {
                let path = FieldPath::top("core").key(field).index(at);
                if !seen.insert(name) {
                    return Err(path.says(format!("`{name}` is outside the core twice: name it once")));
                }
                check_process(&path, name, scene, quorums)?;
            }
        }
        let clients = scene.with_role(Role::Client);
        if !clients.is_empty() && clients.iter().all(|client| self.excludes(client)) {
            return Err(FieldPath::top("core").says("no client is left in the core: somebody must be served"));
        }
        let lost = |quorum: &&Vec<String>| {
            let outside = quorum.iter().filter(|name| self.excludes(name)).count();
            2 * (quorum.len() - outside) <= quorum.len()
        };
        match quorums.iter().find(lost) {
            None => Ok(()),
            Some(quorum) => Err(FieldPath::top("core").says(format!(
                "no majority of {} is left in the core: nobody can be served",
                quorum.join(", ")
            ))),
        }
    }

    /// Begins the phase: breaks the processes outside for good, then ends all faults of the schedule.
    pub(super) fn begin(&self, injector: &Injector, names: &[String]) {
        let breaks = injector.last_breaks();
        for crash in self.crashes() {
            breaks.strike(&crash);
        }
        let mut groups: Vec<Vec<String>> = self.cut.iter().map(|name| vec![name.clone()]).collect();
        if !groups.is_empty() {
            groups.push(names.iter().filter(|name| !self.cut.contains(name)).cloned().collect());
            groups.retain(|group| !group.is_empty());
            breaks.strike(&Partition { groups, lasts: None });
        }
        breaks.heal_all_else();
    }

    /// Adds to the rules that the core must be served, and the processes outside need not be. `clients` is
    /// the number of clients in the core.
    ///
    /// The core must be served within [`Rules::served_within`], the time for a world in which everything
    /// heals, and:
    ///
    /// - if leases are sessions, one more TTL. Without the members outside, a cluster may have to elect a
    ///   leader first, and a new leader gives every session its whole TTL again: that of a dead holder, and
    ///   those of dead waiters before the others in the queue.
    /// - one longest retry for each client. The members left may be a bare majority, in which every vote
    ///   counts: each client may spoil one round for the others. Each may also try a broken member first.
    ///
    /// If leases are sessions, a key may also stay for longer by one TTL and one retry: a client whose member
    /// is gone keeps its session alive through another one before it can delete the key.
    ///
    /// Clocks need no allowance, since all run at the true rate in this phase. Neither does the number of
    /// leases that others take meanwhile: the time counts from the end of the last lease of the lock.
    pub(super) fn judge_by(&self, rules: &mut Rules, clients: usize) {
        rules.outside = self.outside().map(Name::from).collect();
        let sessions = if rules.sessions { rules.ttl.unwrap_or_default() } else { Duration::ZERO };
        let retries = rules.longest_retry.unwrap_or_default() * u32::try_from(clients).unwrap_or(u32::MAX);
        if rules.sessions {
            rules.grace += sessions + rules.longest_retry.unwrap_or_default();
        }
        rules.served_within = rules.served_within.map(|within| within + sessions + retries);
    }
}

fn check_process(
    path: &FieldPath,
    name: &str,
    scene: &dyn Scene,
    quorums: &[Vec<String>],
) -> Result<(), Invalid> {
    let problem = match scene.role(name) {
        None => {
            let known = scene.processes().join(", ");
            format!("unknown process `{name}` in `core`: the schedule has {known}")
        }
        Some(Role::Resource) => format!("`{name}` must be in the core: all writes go there"),
        Some(Role::Server) if !quorums.iter().flatten().any(|member| member == name) => {
            format!("`{name}` must be in the core: no other server does its work")
        }
        Some(Role::Server | Role::Client) => return Ok(()),
    };
    Err(path.says(problem))
}

/// The share of random schedules that have a core phase.
const SHARE: f64 = 0.25;

/// Draws the core phase of a random schedule; three schedules in four have none. It begins at most `latest`
/// after the start. It leaves out a minority of each quorum group, and some of several clients: at least one
/// process in all.
pub fn draw(site: &mut Site, quorums: &[Vec<String>], clients: &[String], latest: Span) -> Option<CorePhase> {
    if !site.chance(SHARE) {
        return None;
    }
    let millis = latest.as_nanos() / 1_000_000;
    let mut core = CorePhase::at(Span::from_millis(site.range_nanos(100.min(millis), millis)));
    for quorum in quorums {
        leave_out(&mut core, site, quorum, quorum.len().saturating_sub(1) / 2);
    }
    if quorums.is_empty() || site.chance(0.5) {
        leave_out(&mut core, site, clients, clients.len().saturating_sub(1));
    }
    (core.outside().count() > 0).then_some(core)
}

/// Leaves 1 to `most` of the processes outside, each crashed or cut off.
fn leave_out(core: &mut CorePhase, site: &mut Site, processes: &[String], most: usize) {
    if most == 0 {
        return;
    }
    let mut left = processes.to_vec();
    for _ in 0..=site.below(most as u64) {
        let process = left.remove(site.below(left.len() as u64) as usize);
        if site.chance(0.5) { core.crashed.push(process) } else { core.cut.push(process) }
    }
}
