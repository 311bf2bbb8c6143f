//! Counts the work of a search. A search that finds nothing proves nothing if it checked nothing: no process
//! did its work, a server refused its commands, or a section was under a lock that nobody ever granted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use history::{Kind, Name};

use crate::sim::Report;

/// The work of all runs of a search. It prints as one line for each part.
#[derive(Clone, Debug, Default)]
pub struct Exercised {
    runs: u64,
    points: u64,
    leases: u64,
    writes: u64,
    /// The sections that were entered, by the lock.
    sections: BTreeMap<Name, u64>,
    /// The grants that lock servers stored, by the lock.
    grants: BTreeMap<Name, u64>,
    /// The locks held by clients of `dlock`, and the resources.
    others: BTreeSet<Name>,
    /// The names of locks and resources, by their hashes.
    names: BTreeMap<Name, String>,
    /// The names that [`Sim::key`](crate::Sim::key) has declared.
    declared: BTreeSet<Name>,
    commands: BTreeMap<String, u64>,
    /// Commands that servers refused as unknown, by the server and the command.
    unknown: BTreeMap<(String, String), u64>,
}

/// The gaps that a search accepts.
#[derive(Clone, Debug, Default)]
pub(super) struct Allowed {
    pub(super) idle_processes: bool,
    pub(super) unknown_commands: bool,
    /// The names that need not match a lock.
    pub(super) unmatched: BTreeSet<String>,
}

impl Exercised {
    pub(super) fn add(&mut self, report: &Report) {
        self.runs += 1;
        for (hash, name) in report.names.iter() {
            self.declared.insert(hash.clone());
            self.names.insert(hash.clone(), name.to_owned());
        }
        for name in &report.sections {
            self.names.entry(Name::from(dlock::id_hash(name).as_str())).or_insert_with(|| name.clone());
        }
        for server in &report.served {
            *self.commands.entry(server.name.clone()).or_default() += server.commands;
            for (command, times) in &server.unknown {
                *self.unknown.entry((server.name.clone(), command.clone())).or_default() += times;
            }
        }
        report.events.iter().for_each(|event| self.count(&event.kind));
    }

    fn count(&mut self, kind: &Kind) {
        match kind {
            Kind::PointPassed { .. } | Kind::WorkerStep { .. } => self.points += 1,
            Kind::SectionEntered { key, .. } => count(&mut self.sections, key),
            Kind::KeyGranted { key, .. } => count(&mut self.grants, key),
            Kind::LeaseAcquired { key, .. } => {
                self.leases += 1;
                self.meet(key);
            }
            Kind::WriteAccepted { key, .. } | Kind::ConditionalAccepted { key, .. } => {
                self.writes += 1;
                self.meet(key);
            }
            Kind::ResourceRead { key, .. } => self.meet(key),
            _ => {}
        }
    }

    fn meet(&mut self, key: &Name) {
        if !self.others.contains(key) {
            self.others.insert(key.clone());
        }
    }

    /// Returns the reasons why the search has checked nothing, except those that `allowed` accepts.
    pub(super) fn gaps(&self, allowed: &Allowed) -> Vec<String> {
        let idle = (!allowed.idle_processes).then(|| self.idleness()).flatten();
        let unknown = self.unknown.iter().filter(|_| !allowed.unknown_commands);
        let unknown = unknown.map(|((server, command), times)| refusal(server, command, *times));
        let is_allowed = |hash: &Name| allowed.unmatched.contains(self.name(hash));
        let sections = self.sections.keys().filter(|hash| !self.has_lock(hash) && !is_allowed(hash));
        let sections = sections.map(|hash| self.unmatched("section", hash));
        let is_met = |hash: &Name| self.has_lock(hash) || self.sections.contains_key(hash);
        let keys = self.declared.iter().filter(|hash| !is_met(hash) && !is_allowed(hash));
        let keys = keys.map(|hash| self.unmatched("key", hash));
        idle.into_iter().chain(unknown).chain(sections).chain(keys).collect()
    }

    fn idleness(&self) -> Option<String> {
        let done = self.points + self.leases + self.writes + self.sections.values().sum::<u64>();
        (done == 0).then(|| {
            "no process entered a section or passed a point: either the world has no process, or its code \
             gives up before it does its work and drops the error (`let _ = …`). Print that error, and mark \
             the work by process.section(\"LOCK\") or process.point(\"NAME\"). If the processes need neither, \
             add .allow_idle_processes() to the check"
                .to_owned()
        })
    }

    fn unmatched(&self, what: &str, hash: &Name) -> String {
        let name = self.name(hash);
        let known: Vec<String> = self.grants.keys().map(|lock| format!("`{}`", self.name(lock))).collect();
        let known = if known.is_empty() { "none at all".to_owned() } else { known.join(", ") };
        format!(
            "{what} `{name}` matches no lock: no server has granted a lock of that name (granted were: \
             {known}). Correct the name, or tell the server which of its keys is that lock: lock_key(KEY, \
             \"{name}\") of RedisHost, EtcdHost or ZooKeeperHost. If no simulated server has the lock, add \
             .allow_unmatched(\"{name}\") to the check"
        )
    }

    fn has_lock(&self, hash: &Name) -> bool {
        self.grants.contains_key(hash) || self.others.contains(hash)
    }

    fn name<'a>(&'a self, hash: &'a Name) -> &'a str {
        self.names.get(hash).map_or(hash.as_str(), String::as_str)
    }

    /// Returns the number of runs. The first one is without faults.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// Returns the number of sections that processes entered, by the name of the lock.
    pub fn sections(&self) -> BTreeMap<&str, u64> {
        self.sections.iter().map(|(hash, times)| (self.name(hash), *times)).collect()
    }

    /// Returns the number of points that processes passed by their own code.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// Returns the number of grants that the lock servers stored, by the name of the lock.
    pub fn grants(&self) -> BTreeMap<&str, u64> {
        self.grants.iter().map(|(hash, times)| (self.name(hash), *times)).collect()
    }

    /// Returns the number of leases that clients of `dlock` acquired.
    pub fn leases(&self) -> u64 {
        self.leases
    }

    /// Returns the number of writes that the resource accepted.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Returns the number of commands that each simulated server executed.
    pub fn commands(&self) -> &BTreeMap<String, u64> {
        &self.commands
    }

    /// Returns how often servers refused a command as unknown, by the server and the command.
    pub fn unknown_commands(&self) -> &BTreeMap<(String, String), u64> {
        &self.unknown
    }
}

impl fmt::Display for Exercised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "exercised in {} runs, the first without faults:", self.runs)?;
        writeln!(f, "  sections entered: {}", listed(self.sections().into_iter()))?;
        writeln!(f, "  points passed: {}", self.points)?;
        writeln!(f, "  grants stored: {}", listed(self.grants().into_iter()))?;
        writeln!(f, "  leases acquired by dlock: {}, writes accepted: {}", self.leases, self.writes)?;
        let commands = self.commands.iter().map(|(server, times)| (server.as_str(), *times));
        write!(f, "  commands executed: {}", listed(commands))?;
        for ((server, command), times) in &self.unknown {
            write!(f, "\n  refused by {server} as unknown: {command} ({times})")?;
        }
        Ok(())
    }
}

fn count(counts: &mut BTreeMap<Name, u64>, key: &Name) {
    match counts.get_mut(key) {
        Some(times) => *times += 1,
        None => drop(counts.insert(key.clone(), 1)),
    }
}

fn refusal(server: &str, command: &str, times: u64) -> String {
    format!(
        "{server} refused `{command}` as unknown, {times} times: the simulated server has no such command, so \
         the code that sends it was not checked. Use another command (`sim --help` names the servers; their \
         modules in sim/src/servers list what they know). If the code handles the refusal, add \
         .allow_unknown_commands() to the check"
    )
}

/// Lists counts as `account:7 (12), account:8 (3)`.
fn listed<'a>(counts: impl Iterator<Item = (&'a str, u64)>) -> String {
    let counts: Vec<String> = counts.map(|(name, times)| format!("{name} ({times})")).collect();
    if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
}
