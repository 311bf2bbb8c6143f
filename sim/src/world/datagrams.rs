//! Datagrams, as UDP carries them: each is one message, which may be lost on its link.
//!
//! A datagram arrives after the latency of its link. A cut link loses it. Any other link loses, doubles and
//! delays some at random; all others stay in order. Those that a process sends to itself always arrive. A
//! datagram is dropped when it arrives if no socket takes it or the socket's buffer is full. The
//! sender gets no error for a lost one.

mod socket;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::MutexGuard;
use std::task::Waker;

use self::socket::DatagramSocket;
use super::address::{OPENERS_FROM, OPENERS_TO};
use super::process::ProcessId;
use super::{World, lock};
use crate::entropy::Site;

/// The size of a socket's receive buffer in bytes: Linux's `net.core.rmem_default`.
const BUFFER: usize = 212_992;

/// The bytes of the buffer that a datagram takes beside its own: what Linux takes for one of a few bytes.
const OVERHEAD: usize = 768;

/// The probabilities with which a link loses a datagram, doubles it, and delays it so that others overtake
/// it.
const LOST: f64 = 0.01;
const DOUBLED: f64 = 0.005;
const LATE: f64 = 0.01;

/// The longest delay of a late datagram, in latencies of the slowest link.
const LATE_MAX: u64 = 10;

/// The time for which a task waits if no datagram is under way.
const NEVER: u64 = u64::MAX;

/// The bound sockets of a world, and the datagrams under way.
#[derive(Default)]
pub(super) struct Datagrams {
    sockets: BTreeMap<Place, Mailbox>,
    /// The datagrams to each place that have not arrived, by their time of arrival and their number.
    in_flight: BTreeMap<Place, BTreeMap<(u64, u64), Datagram>>,
    links: BTreeMap<(usize, usize), Link>,
    /// The number of datagrams so far.
    count: u64,
    /// The last port that each process got when it asked for any.
    last_ports: BTreeMap<usize, u16>,
}

/// A port of a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    process: usize,
    port: u16,
}

#[derive(Clone)]
struct Datagram {
    sender: usize,
    from: SocketAddr,
    to: IpAddr,
    bytes: Vec<u8>,
}

/// The datagrams that have arrived at a bound socket.
struct Mailbox {
    address: SocketAddr,
    /// The only sender from which it takes datagrams, if it is connected.
    peer: Option<SocketAddr>,
    arrived: VecDeque<Datagram>,
    /// The used part of the buffer, in bytes.
    used: usize,
    /// Tasks that wait for a datagram, each with the time for which its timer is set.
    waiting: Vec<(Waker, u64)>,
}

/// One direction between two processes.
struct Link {
    random: Site,
    /// The number of the key from which `random` was made.
    epoch: usize,
    last_arrival: u64,
}

/// The errors of a link that meet one datagram.
struct Errors {
    is_lost: bool,
    /// The time from the arrival to that of a copy, in nanoseconds.
    copied_after: Option<u64>,
    /// The delay of a late datagram, in nanoseconds.
    late_by: Option<u64>,
}

impl Errors {
    /// Draws them. The number of draws is always the same.
    fn draw(random: &mut Site, latency_max: u64) -> Self {
        let (is_lost, is_doubled, is_late) =
            (random.chance(LOST), random.chance(DOUBLED), random.chance(LATE));
        let copied_after = random.range_nanos(1, latency_max);
        let late_by = random.range_nanos(1, latency_max.saturating_mul(LATE_MAX));
        Self {
            is_lost,
            copied_after: is_doubled.then_some(copied_after),
            late_by: is_late.then_some(late_by),
        }
    }
}

impl Link {
    /// Returns the time at which a datagram arrives that would arrive at `arrival`: not before the last one,
    /// unless that one was slowed by a fault.
    fn in_order(&mut self, arrival: u64, latency_max: u64) -> u64 {
        let is_jitter = self.last_arrival.saturating_sub(arrival) <= latency_max;
        self.last_arrival = if is_jitter { arrival.max(self.last_arrival) } else { arrival };
        self.last_arrival
    }
}

impl Mailbox {
    /// Takes in a datagram, or drops it.
    fn arrive(&mut self, datagram: Datagram) {
        let is_addressed = self.address.ip().is_unspecified() || self.address.ip() == datagram.to;
        let is_expected = self.peer.is_none_or(|peer| peer == datagram.from);
        let used = self.used + datagram.bytes.len() + OVERHEAD;
        if is_addressed && is_expected && used <= BUFFER {
            self.used = used;
            self.arrived.push_back(datagram);
        }
    }

    fn take(&mut self) -> Option<Datagram> {
        let datagram = self.arrived.pop_front()?;
        self.used -= datagram.bytes.len() + OVERHEAD;
        Some(datagram)
    }

    /// Wakes `waker` at the time `next`, or at an earlier arrival.
    fn wait(&mut self, world: &World, waker: &Waker, next: u64) {
        let now = world.now();
        // The others have been woken.
        self.waiting.retain(|(other, at)| *at > now && !other.will_wake(waker));
        self.waiting.push((waker.clone(), next));
        if next != NEVER {
            world.wake_at(next, waker);
        }
    }

    /// Wakes the tasks that wait for a later time at `at`.
    fn announce(&mut self, world: &World, at: u64) {
        for (waker, next) in self.waiting.iter_mut().filter(|(_, next)| at < *next) {
            *next = at;
            world.wake_at(at, waker);
        }
    }
}

impl Datagrams {
    /// Delivers what has arrived at the place by `now`. Each use of a place does this first, so that all
    /// datagrams meet the socket of their time.
    fn deliver(&mut self, place: Place, now: u64) {
        let Some(in_flight) = self.in_flight.get_mut(&place) else { return };
        let later = in_flight.split_off(&(now.saturating_add(1), 0));
        let arrived = std::mem::replace(in_flight, later);
        if in_flight.is_empty() {
            self.in_flight.remove(&place);
        }
        if let Some(mailbox) = self.sockets.get_mut(&place) {
            arrived.into_values().for_each(|datagram| mailbox.arrive(datagram));
        }
    }

    /// Has the datagram arrive at the time `at`.
    fn send(&mut self, world: &World, place: Place, datagram: Datagram, at: u64) {
        self.deliver(place, world.now());
        self.in_flight.entry(place).or_default().insert((at, self.count), datagram);
        self.count += 1;
        if let Some(mailbox) = self.sockets.get_mut(&place) {
            mailbox.announce(world, at);
        }
    }

    /// Returns the time of the next arrival at a place.
    fn next(&self, place: Place) -> u64 {
        let next = self.in_flight.get(&place).and_then(|in_flight| in_flight.keys().next());
        next.map_or(NEVER, |(at, _)| *at)
    }

    /// Draws the errors of the link, and returns the times at which a datagram arrives that takes until
    /// `arrival`: none, one or two.
    fn arrivals(
        &mut self,
        world: &World,
        (from, to): (ProcessId, ProcessId),
        arrival: u64,
        latency_max: u64,
    ) -> Vec<u64> {
        let epoch = world.entropy().epoch(world.now());
        let site = || {
            let name = ["datagrams ", world.process(from).name(), " ", world.process(to).name()].concat();
            world.entropy().site_of(epoch, &name)
        };
        let link = self.links.entry((from.0, to.0)).or_insert_with(|| Link {
            random: site(),
            epoch,
            last_arrival: 0,
        });
        if link.epoch != epoch {
            (link.random, link.epoch) = (site(), epoch);
        }
        if from == to {
            return vec![link.in_order(arrival, latency_max)];
        }
        let errors = Errors::draw(&mut link.random, latency_max);
        if errors.is_lost {
            return Vec::new();
        }
        let at = match errors.late_by {
            Some(by) => arrival.saturating_add(by),
            None => link.in_order(arrival, latency_max),
        };
        [Some(at), errors.copied_after.map(|after| at.saturating_add(after))].into_iter().flatten().collect()
    }

    /// Returns a free port of the process, after those that it got before.
    fn free_port(&mut self, process: usize) -> Option<u16> {
        let ports = OPENERS_FROM..=OPENERS_TO;
        let last = self.last_ports.get(&process).copied().unwrap_or(0);
        let is_free = |port: &u16| !self.sockets.contains_key(&Place { process, port: *port });
        let port = ports.clone().filter(|port| *port > last).chain(ports).find(is_free)?;
        self.last_ports.insert(process, port);
        Some(port)
    }
}

impl World {
    /// Binds a socket for datagrams to `address`, one of the process's own; port 0 picks a free one.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AddrInUse`] if a socket of the process has the port, or all ports are taken.
    pub(super) fn bind_datagrams(
        &self,
        process: ProcessId,
        address: SocketAddr,
    ) -> io::Result<DatagramSocket> {
        let taken = |problem: String| io::Error::new(io::ErrorKind::AddrInUse, problem);
        let mut datagrams = self.datagrams();
        let port = match address.port() {
            0 => datagrams.free_port(process.0).ok_or_else(|| taken("all ports are taken".to_owned()))?,
            port => port,
        };
        let place = Place { process: process.0, port };
        if datagrams.sockets.contains_key(&place) {
            return Err(taken(format!(
                "a socket for datagrams is bound to port {port} already: drop it first"
            )));
        }
        // Datagrams that arrived earlier met no socket.
        datagrams.deliver(place, self.now());
        let address = SocketAddr::new(address.ip(), port);
        let mailbox = Mailbox { address, peer: None, arrived: VecDeque::new(), used: 0, waiting: Vec::new() };
        datagrams.sockets.insert(place, mailbox);
        Ok(DatagramSocket { world: self.clone(), process, life: self.process(process).life(), place })
    }

    /// Closes the sockets of a dead process. What they had not read is lost.
    pub(super) fn close_datagrams(&self, dead: ProcessId) {
        let closed = {
            let sockets = &mut self.datagrams().sockets;
            let closed = sockets.extract_if(.., |place, _| place.process == dead.0);
            closed.collect::<Vec<_>>()
        };
        // Dropped while no mutex is locked.
        drop(closed);
    }

    fn datagrams(&self) -> MutexGuard<'_, Datagrams> {
        lock(&self.0.datagrams)
    }
}
