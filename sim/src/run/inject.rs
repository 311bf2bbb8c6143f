//! Faults: when a schedule says that one strikes, and what it then does to the world.
//!
//! A fault that is aimed at a point strikes within the very event, so that nothing of the process runs in between; it
//! takes hold at the process's next await. What a fault undoes later, the harness does at that time.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use resource::audit::{Event, Kind, Name};

use super::cluster::Cluster;
use crate::record::note;
use crate::schedule::{Fault, Kind as ProcessKind, Link, Point, Shift, Span, What, When};
use crate::trace::text::span;
use crate::world::clock::TRUE_RATE;
use crate::world::process::ProcessId;
use crate::world::{World, lock};

/// All faults of a run.
pub(super) struct Injector {
    world: World,
    cluster: Arc<Cluster>,
    faults: Vec<Armed>,
    /// Faults that are in force and will end, or never end and hinder service.
    open: AtomicUsize,
    /// The true time at which the last fault that ended did so.
    healed_at: AtomicU64,
    struck: Mutex<Vec<bool>>,
}

struct Armed {
    fault: Fault,
    /// How often its point has been passed.
    passed: AtomicU32,
}

impl Injector {
    pub(super) fn new(world: &World, cluster: &Arc<Cluster>, faults: &[Fault]) -> Arc<Self> {
        let faults: Vec<_> =
            faults.iter().map(|fault| Armed { fault: fault.clone(), passed: AtomicU32::new(0) }).collect();
        Arc::new(Self {
            world: world.clone(),
            cluster: Arc::clone(cluster),
            open: AtomicUsize::new(0),
            healed_at: AtomicU64::new(0),
            struck: Mutex::new(vec![false; faults.len()]),
            faults,
        })
    }

    /// Sets the faults that strike at a given time.
    pub(super) fn start(self: &Arc<Self>) {
        for (number, armed) in self.faults.iter().enumerate() {
            if let When::At(at) = &armed.fault.when {
                self.strike_at(at.as_nanos(), number);
            }
        }
    }

    /// An event has happened.
    pub(super) fn on_event(self: &Arc<Self>, event: &Event) {
        if let Some(point) = point_of(&event.kind) {
            self.on_point(event.process.as_str(), point);
        }
    }

    /// A server has executed a command.
    pub(super) fn on_command(self: &Arc<Self>, server: &str, command: &str) {
        let mut commands = self.faults.iter().filter_map(|armed| match &armed.fault.when {
            When::After { point, .. } if point.is_command() => Some(*point),
            _ => None,
        });
        // Most schedules aim at no command: they pay for none.
        if let Some(point) = commands.find(|point| point.name().eq_ignore_ascii_case(command)) {
            self.on_point(server, point);
        }
    }

    /// Whether every fault that has struck is over, and since when.
    pub(super) fn healed_at(&self) -> Option<u64> {
        (self.open.load(Ordering::Relaxed) == 0).then(|| self.healed_at.load(Ordering::Relaxed))
    }

    /// How many faults have struck.
    pub(super) fn struck(&self) -> usize {
        lock(&self.struck).iter().filter(|struck| **struck).count()
    }

    fn on_point(self: &Arc<Self>, process: &str, passed: Point) {
        for (number, armed) in self.faults.iter().enumerate() {
            let When::After { process: aimed, point, nth, plus } = &armed.fault.when else { continue };
            if *point != passed || aimed != process {
                continue;
            }
            if armed.passed.fetch_add(1, Ordering::Relaxed) + 1 != *nth {
                continue;
            }
            if plus.is_zero() {
                self.strike(number);
            } else {
                self.strike_at(self.world.now() + plus.as_nanos(), number);
            }
        }
    }

    fn strike_at(self: &Arc<Self>, at: u64, number: usize) {
        let injector = Arc::clone(self);
        self.later(at, move || injector.strike(number));
    }

    /// Does `deed` at the true time `at`.
    fn later(&self, at: u64, deed: impl FnOnce() + Send + 'static) {
        let world = self.world.clone();
        self.world.spawn_harness(async move {
            world.sleep_until(at).await;
            deed();
        });
    }

    fn strike(self: &Arc<Self>, number: usize) {
        lock(&self.struck)[number] = true;
        let what = &self.faults[number].fault.what;
        let which = Which { number, verb: verb(what) };
        match what {
            What::Pause { process, lasts } => self.pause(which, process, *lasts),
            What::Resume { process } => {
                self.world.resume(self.id(process));
                let ended = Which { number: self.pause_of(process).unwrap_or(number), verb: "pause" };
                self.heal(ended, process, "resumed");
            }
            What::Crash { process, power_loss, restart_after } => {
                self.crash(which, process, *power_loss, *restart_after);
            }
            What::Stop { process, restart_after } => self.stop(which, process, *restart_after),
            What::Cut { .. } | What::Delay { .. } | What::Partition { .. } | What::Reset { .. } => {
                self.network(which, what);
            }
            What::Step { .. } | What::Slew { .. } | What::Rate { .. } => self.clock(which, what),
            What::Promote { replica } => {
                let (cluster, replica) = (Arc::clone(&self.cluster), replica.clone());
                // Not within the event: the server that emitted it is still at work.
                self.later(self.world.now(), move || cluster.promote(&replica));
            }
            What::Lead { member } => {
                let (cluster, member) = (Arc::clone(&self.cluster), member.clone());
                self.later(self.world.now(), move || cluster.lead(number, &member));
            }
            What::Evict { key, part } => {
                let (cluster, key, part) = (Arc::clone(&self.cluster), key.clone(), *part);
                self.later(self.world.now(), move || cluster.evict(number, &key, part));
            }
            What::Cancel { worker } => {
                note(worker, which.applied("drops its acquire"));
                self.cluster.cancel(worker);
            }
        }
    }

    /// The last pause of the process that has struck.
    fn pause_of(&self, process: &str) -> Option<usize> {
        let is_pause = |armed: &Armed| matches!(&armed.fault.what, What::Pause { process: paused, .. } if paused == process);
        let struck = lock(&self.struck);
        (0..self.faults.len()).rev().find(|number| struck[*number] && is_pause(&self.faults[*number]))
    }

    fn pause(self: &Arc<Self>, which: Which, process: &str, lasts: Option<Span>) {
        self.world.pause(self.id(process));
        let text = lasts.map_or("paused".to_owned(), |lasts| format!("paused {}", span(lasts.as_nanos())));
        note(process, which.applied(&text));
        let (world, id) = (self.world.clone(), self.id(process));
        self.until(which, process, lasts, "resumed", move || world.resume(id));
    }

    fn crash(self: &Arc<Self>, which: Which, process: &str, power_loss: bool, restart_after: Option<Span>) {
        let text = if power_loss { "power lost" } else { "killed" };
        note(process, Kind::ProcessCrashed { detail: Some(Name::from(text)) });
        self.cluster.crash(self.id(process), power_loss);
        self.restart(which, process, restart_after);
    }

    fn stop(self: &Arc<Self>, which: Which, process: &str, restart_after: Option<Span>) {
        let (injector, process) = (Arc::clone(self), process.to_owned());
        // Not within the event: a server that shuts down first finishes what it is doing.
        self.later(self.world.now(), move || {
            injector.cluster.shut_down(injector.id(&process));
            note(&process, Kind::ProcessCrashed { detail: Some(Name::from("shut down cleanly")) });
            injector.cluster.crash(injector.id(&process), false);
            injector.restart(which, &process, restart_after);
        });
    }

    fn restart(self: &Arc<Self>, which: Which, process: &str, after: Option<Span>) {
        // What the dead process held is dropped before its successor starts.
        let after = after.map(|after| after.max(Span::from_millis(1)));
        let (cluster, id) = (Arc::clone(&self.cluster), self.id(process));
        if after.is_none() {
            self.cluster.gone(id);
        }
        self.until(which, process, after, "restarted", move || cluster.start(id));
    }

    fn network(self: &Arc<Self>, which: Which, what: &What) {
        let world = self.world.clone();
        match what {
            What::Cut { link, both, lasts } => {
                let links = self.directions(link, *both);
                links.iter().for_each(|(from, to)| world.cut(*from, *to));
                let text = format!("cut {}", arrow(link, *both));
                self.announce(which, &text, *lasts, move || {
                    links.iter().for_each(|(from, to)| world.heal(*from, *to))
                });
            }
            What::Delay { link, by, both, lasts } => {
                let links = self.directions(link, *both);
                let by = by.duration();
                links.iter().for_each(|(from, to)| world.delay(*from, *to, by));
                let text = format!("delays {} by {}", arrow(link, *both), span(by.as_nanos() as u64));
                self.announce(which, &text, *lasts, move || {
                    links.iter().for_each(|(from, to)| world.undelay(*from, *to, by));
                });
            }
            What::Partition { groups, lasts } => {
                let links = self.across(groups);
                links.iter().for_each(|(from, to)| world.cut(*from, *to));
                let sides: Vec<_> = groups.iter().map(|group| group.join(",")).collect();
                let text = format!("partition {}", sides.join(" | "));
                self.announce(which, &text, *lasts, move || {
                    links.iter().for_each(|(from, to)| world.heal(*from, *to))
                });
            }
            What::Reset { link } => {
                world.reset(self.id(&link.from), self.id(&link.to));
                note("network", which.applied(&format!("resets {}", arrow(link, true))));
            }
            _ => {}
        }
    }

    fn clock(self: &Arc<Self>, which: Which, what: &What) {
        match what {
            What::Step { process, by } => {
                self.world.step_clock(self.id(process), by.as_nanos());
                self.cluster.clock_changed(self.id(process));
                note(process, which.applied(&format!("clock stepped by {by}")));
            }
            What::Slew { process, by, over } => {
                let rate = slew_rate(*by, *over);
                let text = format!("clock slewed by {by} over {}", span(over.as_nanos()));
                self.rate(which, process, rate, &text, Some(*over));
            }
            What::Rate { process, factor, lasts } => {
                // A factor is a positive number: the schedule was validated.
                let rate = (factor * TRUE_RATE as f64) as u64;
                self.rate(which, process, rate, &format!("clock runs at {factor}"), *lasts);
            }
            _ => {}
        }
    }

    fn rate(self: &Arc<Self>, which: Which, process: &str, rate: u64, text: &str, lasts: Option<Span>) {
        let (world, id) = (self.world.clone(), self.id(process));
        world.set_clock_rate(id, rate);
        note(process, which.applied(text));
        note(process, Kind::ClockRate { rate });
        let name = process.to_owned();
        self.until(which, process, lasts, "clock runs true again", move || {
            world.set_clock_rate(id, TRUE_RATE);
            note(&name, Kind::ClockRate { rate: TRUE_RATE });
        });
    }

    /// A fault of the network, which is no process's own.
    fn announce(
        self: &Arc<Self>,
        which: Which,
        text: &str,
        lasts: Option<Span>,
        undo: impl FnOnce() + Send + 'static,
    ) {
        note("network", which.applied(text));
        self.until(which, "network", lasts, &format!("over: {text}"), undo);
    }

    /// Undoes a fault when its time is over.
    fn until(
        self: &Arc<Self>,
        which: Which,
        process: &str,
        lasts: Option<Span>,
        text: &str,
        undo: impl FnOnce() + Send + 'static,
    ) {
        // A worker that is gone for good hinders nobody: all others must be served all the same.
        if lasts.is_some() || ProcessKind::of(process) != ProcessKind::Worker || process == "network" {
            self.open.fetch_add(1, Ordering::Relaxed);
        }
        let Some(lasts) = lasts else { return };
        let (injector, process, text) = (Arc::clone(self), process.to_owned(), text.to_owned());
        self.later(self.world.now() + lasts.as_nanos(), move || {
            undo();
            injector.open.fetch_sub(1, Ordering::Relaxed);
            injector.heal(which, &process, &text);
        });
    }

    fn heal(&self, which: Which, process: &str, text: &str) {
        self.healed_at.store(self.world.now(), Ordering::Relaxed);
        note(process, which.healed(text));
    }

    /// The process of that name. The schedule was validated, so there is one.
    fn id(&self, name: &str) -> ProcessId {
        self.world.find(name).unwrap_or(ProcessId(0))
    }

    fn directions(&self, link: &Link, both: bool) -> Vec<(ProcessId, ProcessId)> {
        let (from, to) = (self.id(&link.from), self.id(&link.to));
        if both { vec![(from, to), (to, from)] } else { vec![(from, to)] }
    }

    /// The links between processes of different groups, in both directions.
    fn across(&self, groups: &[Vec<String>]) -> Vec<(ProcessId, ProcessId)> {
        let mut links = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            for other in groups.iter().skip(number + 1).flatten() {
                for one in group {
                    links.push((self.id(one), self.id(other)));
                    links.push((self.id(other), self.id(one)));
                }
            }
        }
        links
    }
}

/// The rate at which a clock moves by `by` within `over` of true time.
fn slew_rate(by: Shift, over: Span) -> u64 {
    let gained = i128::from(by.as_nanos()) * i128::from(TRUE_RATE) / i128::from(over.as_nanos().max(1));
    u64::try_from(i128::from(TRUE_RATE) + gained).unwrap_or(1).max(1)
}

/// A fault of the schedule: its number, and what it does in a word.
#[derive(Clone, Copy)]
struct Which {
    number: usize,
    verb: &'static str,
}

impl Which {
    fn applied(self, text: &str) -> Kind {
        Kind::FaultApplied {
            fault: self.number as u64,
            verb: Name::from(self.verb),
            detail: Name::from(text),
        }
    }

    fn healed(self, text: &str) -> Kind {
        Kind::FaultHealed { fault: self.number as u64, verb: Name::from(self.verb), detail: Name::from(text) }
    }
}

/// What a fault does, in the word by which schedules call it.
fn verb(what: &What) -> &'static str {
    match what {
        What::Pause { .. } => "pause",
        What::Resume { .. } => "resume",
        What::Crash { .. } => "crash",
        What::Stop { .. } => "stop",
        What::Cut { .. } => "cut",
        What::Delay { .. } => "delay",
        What::Partition { .. } => "partition",
        What::Reset { .. } => "reset",
        What::Step { .. } => "step",
        What::Slew { .. } => "slew",
        What::Rate { .. } => "rate",
        What::Promote { .. } => "promote",
        What::Lead { .. } => "lead",
        What::Evict { .. } => "evict",
        What::Cancel { .. } => "cancel",
    }
}

fn arrow(link: &Link, both: bool) -> String {
    format!("{} {} {}", link.from, if both { "↔" } else { "→" }, link.to)
}

/// The point of the protocol that an event passes.
fn point_of(kind: &Kind) -> Option<Point> {
    Some(match kind {
        Kind::LeaseRequested { .. } => Point::Requested,
        Kind::LeaseAcquired { .. } | Kind::KeyGranted { .. } => Point::Granted,
        Kind::LeaseNotAcquired { .. } => Point::NotGranted,
        Kind::LeaseRenewed { .. } => Point::Renewed,
        Kind::LeaseLost { .. } => Point::Lost,
        Kind::LeaseReleaseRequested { .. } => Point::ReleaseRequested,
        Kind::LeaseReleased { .. } => Point::Released,
        Kind::SectionEntered { .. } => Point::Entered,
        Kind::WorkerStep { step, .. } => match step.as_str() {
            "read" => Point::Read,
            "worked" => Point::Worked,
            "checked" => Point::Checked,
            _ => return None,
        },
        Kind::WriteSent { .. } | Kind::ConditionalSent { .. } => Point::Sent,
        Kind::WriteAnswered { .. } | Kind::ConditionalAnswered { .. } => Point::Answered,
        Kind::WriteAccepted { .. } | Kind::ConditionalAccepted { .. } => Point::Accepted,
        Kind::WriteRepeated { .. } | Kind::ConditionalRepeated { .. } => Point::Repeated,
        Kind::WriteRejected { .. } | Kind::ReadRejected { .. } | Kind::ConditionalRejected { .. } => {
            Point::Rejected
        }
        Kind::ResourceRead { token: Some(_), .. } => Point::Claimed,
        Kind::ResourceRead { .. } => Point::Read,
        Kind::KeyExtended { .. } => Point::Extended,
        Kind::KeyExpired { .. } => Point::Expired,
        Kind::KeyDeleted { .. } => Point::Deleted,
        _ => return None,
    })
}
