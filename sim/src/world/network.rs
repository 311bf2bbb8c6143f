//! The network: directed links between processes, and the pipes (one direction of a connection) that run
//! over them.
//!
//! Each write becomes a segment. Its arrival is decided when it is sent: after the link's latency, drawn from
//! the link's own random stream, and never before an earlier segment of its pipe. A cut link holds segments,
//! as TCP retransmits them, and delivers them once the cut is healed. Segments in flight when the cut begins
//! still arrive.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;
use std::time::Duration;

use history::Span;

use super::World;
use super::capture::{Notes, Passage};
use super::pipe::{Ending, Pipe, passage};
use super::process::ProcessId;
use crate::entropy::{Entropy, Site};

pub(super) struct Network {
    entropy: Entropy,
    /// How often the key of `entropy` has been replaced so far.
    epoch: usize,
    /// The processes' names.
    names: Vec<Box<str>>,
    links: Vec<Link>,
    pub(super) pipes: Vec<Pipe>,
    latency: (u64, u64),
    pub(super) listeners: BTreeMap<String, Listening>,
    /// The content of all connections, if the world captures it.
    pub(super) notes: Notes,
}

/// One direction between two processes.
#[derive(Default)]
struct Link {
    /// Made when the link is first used, as few links are.
    random: Option<Site>,
    /// The number of cuts in force; they may overlap.
    cuts: u32,
    /// Added to the latency, in nanoseconds: the sum of the delays in force.
    extra: u64,
    /// Tasks that wait for the link to heal, to open a connection.
    waiting: Vec<Waker>,
}

/// A listening socket.
pub(super) struct Listening {
    pub(super) process: ProcessId,
    /// The numbers of the connections that wait to be accepted.
    pub(super) backlog: VecDeque<usize>,
    pub(super) acceptor: Option<Waker>,
}

impl Network {
    pub(super) fn new(entropy: &Entropy, names: &[&str], latency: (Duration, Duration)) -> Self {
        let links = (0..names.len() * names.len()).map(|_| Link::default()).collect();
        let latency = (Span(latency.0).as_nanos(), Span(latency.1).as_nanos());
        let names = names.iter().map(|name| Box::from(*name)).collect();
        let entropy = entropy.clone();
        let (pipes, listeners) = (Vec::new(), BTreeMap::new());
        Self { entropy, epoch: 0, names, links, pipes, latency, listeners, notes: Notes::default() }
    }

    /// Captures all connections that are opened from now on.
    pub(super) fn start_capture(&mut self) {
        // A connection's number follows from those of its pipes.
        if self.pipes.is_empty() {
            self.notes.start(self.names.iter().map(|name| name.to_string()).collect());
        }
    }

    /// Returns the arrival time of a segment sent now from `from` to `to`, or `None` while the link is cut.
    pub(super) fn arrival(&mut self, now: u64, from: usize, to: usize) -> Option<u64> {
        let (least, most) = self.latency;
        let epoch = self.entropy.epoch(now);
        if epoch != self.epoch {
            self.epoch = epoch;
            self.links.iter_mut().for_each(|link| link.random = None);
        }
        let link = &mut self.links[from * self.names.len() + to];
        // Joined, as `format!` takes longer than the draw.
        let name = || ["link ", &self.names[from], " ", &self.names[to]].concat();
        let site = || self.entropy.site_of(epoch, &name());
        let latency = link.random.get_or_insert_with(site).range_nanos(least, most);
        (link.cuts == 0).then(|| now + latency + link.extra)
    }

    /// Returns true if no link takes this long, in nanoseconds, unless a fault slows it.
    pub(super) const fn is_slow(&self, nanos: u64) -> bool {
        nanos > self.latency.1
    }

    /// Returns the longest latency of a link, in nanoseconds.
    pub(super) const fn latency_max(&self) -> u64 {
        self.latency.1
    }

    /// Wakes `waker` when the link is no longer cut.
    pub(super) fn wait_for_link(&mut self, from: usize, to: usize, waker: &Waker) {
        self.links[from * self.names.len() + to].waiting.push(waker.clone());
    }

    /// Adds both pipes of a connection and returns the number of the first, which the connecting side writes.
    pub(super) fn add_connection(&mut self, from: usize, to: usize) -> usize {
        let number = self.pipes.len();
        self.pipes.push(Pipe::new(from, to));
        self.pipes.push(Pipe::new(to, from));
        number
    }

    /// Sends `bytes` as one segment.
    pub(super) fn send(&mut self, world: &World, number: usize, bytes: &[u8]) {
        let now = world.now();
        let (from, to) = (self.pipes[number].from, self.pipes[number].to);
        let arrival = self.arrival(now, from, to);
        let pipe = &mut self.pipes[number];
        if pipe.abandoned || pipe.silent || pipe.ending.is_some() {
            if pipe.ending.is_none() {
                self.notes.segment(number, now, bytes, Passage::of(arrival).without_reader(now));
            }
            return;
        }
        let at = pipe.order(arrival);
        self.notes.segment(number, now, bytes, passage(at));
        pipe.bytes.extend(bytes);
        pipe.segments.push_back((at, bytes.len()));
        pipe.announce(world, at);
    }

    /// Ends the pipe. The reader sees the end after all earlier segments (`Closed`), or in place of those in
    /// flight (`Reset`).
    pub(super) fn end(&mut self, world: &World, number: usize, ending: Ending) {
        let now = world.now();
        let (from, to) = (self.pipes[number].from, self.pipes[number].to);
        let arrival = self.arrival(now, from, to);
        let pipe = &mut self.pipes[number];
        if pipe.silent || matches!(pipe.ending, Some((_, Ending::Reset))) {
            return;
        }
        if ending == Ending::Reset {
            pipe.discard_in_flight(now);
            self.notes.lose_in_flight(number, now);
        } else if pipe.ending.is_some() {
            return;
        }
        let at = pipe.order(arrival);
        self.notes.end(number, now, ending == Ending::Reset, passage(at));
        pipe.ending = Some((at, ending));
        pipe.announce(world, at);
    }

    /// Changes the link from `from` to `to`. If it is open afterwards, delivers the segments that it held.
    fn change(&mut self, world: &World, from: ProcessId, to: ProcessId, change: impl FnOnce(&mut Link)) {
        let link = &mut self.links[from.0 * self.names.len() + to.0];
        change(link);
        if link.cuts > 0 {
            return;
        }
        for waker in link.waiting.drain(..) {
            waker.wake();
        }
        let now = world.now();
        for number in 0..self.pipes.len() {
            let pipe = &self.pipes[number];
            if pipe.from != from.0 || pipe.to != to.0 || !pipe.is_held() {
                continue;
            }
            let arrival = self.arrival(now, from.0, to.0);
            self.pipes[number].deliver_held(world, arrival);
            self.notes.release(number, now, self.pipes[number].last_arrival);
        }
    }

    /// Marks the reader of a pipe as gone: all further bytes are lost.
    pub(super) fn abandon(&mut self, number: usize, now: u64) {
        self.pipes[number].abandoned = true;
        self.notes.lose_reader(number, now);
    }
}

impl World {
    /// Cuts the link: segments that `from` sends from now on do not reach `to` until [`World::heal`]. Cuts
    /// nest.
    pub fn cut(&self, from: ProcessId, to: ProcessId) {
        self.network().change(self, from, to, |link| link.cuts += 1);
    }

    /// Ends one cut of the link. Once all cuts are ended, delivers the held segments.
    pub fn heal(&self, from: ProcessId, to: ProcessId) {
        self.network().change(self, from, to, |link| link.cuts = link.cuts.saturating_sub(1));
    }

    /// Returns true if the link from `from` to `to` is not cut.
    pub fn is_open(&self, from: ProcessId, to: ProcessId) -> bool {
        let network = self.network();
        network.links[from.0 * network.names.len() + to.0].cuts == 0
    }

    /// Slows the link: segments that are sent from now on take `by` longer. Delays add up.
    pub fn delay(&self, from: ProcessId, to: ProcessId, by: Duration) {
        self.network()
            .change(self, from, to, |link| link.extra = link.extra.saturating_add(Span(by).as_nanos()));
    }

    /// Ends one delay of the link. Segments in flight stay late.
    pub fn undelay(&self, from: ProcessId, to: ProcessId, by: Duration) {
        self.network()
            .change(self, from, to, |link| link.extra = link.extra.saturating_sub(Span(by).as_nanos()));
    }

    /// Resets every connection between the two processes. Segments in flight are lost, in both directions.
    pub fn reset(&self, one: ProcessId, other: ProcessId) {
        let mut network = self.network();
        for number in 0..network.pipes.len() {
            let ends = (network.pipes[number].from, network.pipes[number].to);
            if ends == (one.0, other.0) || ends == (other.0, one.0) {
                network.end(self, number, Ending::Reset);
            }
        }
    }

    /// Ends a dead process's connections: its kernel resets them, or they fall silent if its host lost power.
    pub(super) fn sever(&self, dead: ProcessId, power_loss: bool) {
        self.close_datagrams(dead);
        let mut network = self.network();
        network.listeners.retain(|_, listening| listening.process != dead);
        for number in 0..network.pipes.len() {
            if network.pipes[number].to == dead.0 {
                network.abandon(number, self.now());
            }
            let pipe = &mut network.pipes[number];
            if power_loss && (pipe.from == dead.0 || pipe.to == dead.0) {
                pipe.silent = true;
            } else if pipe.from == dead.0 {
                network.end(self, number, Ending::Reset);
            }
        }
    }

    /// Resets the old connections of a host that is back, which fell silent when it lost power.
    pub(super) fn refuse_old_connections(&self, restarted: ProcessId) {
        let mut network = self.network();
        for number in 0..network.pipes.len() {
            let pipe = &mut network.pipes[number];
            if pipe.from == restarted.0 && pipe.silent {
                pipe.silent = false;
                network.end(self, number, Ending::Reset);
            }
        }
    }
}
