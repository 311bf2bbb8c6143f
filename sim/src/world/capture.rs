//! The content of every connection of a run: its opener and its time, its segments, the end of each
//! direction, and the fate of each of them.
//!
//! A world captures only if it is told to ([`World::capture`](super::World::capture)). Capturing draws
//! nothing, wakes nothing and delays nothing, so a run is the same with it and without.
//!
//! All times are true times, in nanoseconds since the run began.

use std::ops::Range;

/// All connections of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// The names of the processes. Other fields refer to a process by its number in this list.
    pub processes: Vec<String>,
    /// The connections, in the order in which they were accepted.
    pub connections: Vec<Connection>,
    /// The requests for a connection that were refused, as no process listened on the port.
    pub refusals: Vec<Refusal>,
    /// All requests for a connection, in the order in which they were sent.
    pub handshakes: Vec<Handshake>,
}

/// A request for a connection, and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The number of the process that asked.
    pub opener: usize,
    /// The number of the process that was asked.
    pub acceptor: usize,
    /// The request, and the answer if the request has arrived.
    pub legs: Vec<Leg>,
}

/// One direction of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// The time at which it was sent.
    pub sent: u64,
    /// Its fate. It is lost if the opener gives up.
    pub passage: Passage,
    /// True if the link was slower than its latency allows.
    pub is_slow: bool,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The number of the process that opened it.
    pub opener: usize,
    /// The number of the process that accepted it.
    pub acceptor: usize,
    /// The port of the acceptor; 0 if its address has no number.
    pub port: u16,
    /// The time at which the opener asked for it.
    pub requested: u64,
    /// The time at which the acceptor's kernel accepted it.
    pub accepted: u64,
    /// The time at which the opener learned of that; `None` if it did not before the end of the run.
    pub connected: Option<u64>,
    /// The segments of both directions, in the order in which they were sent.
    pub segments: Vec<Segment>,
    /// The ends of both directions, in the order in which they were sent. A close may be followed by a reset.
    pub endings: Vec<End>,
    /// The segments that an end tried to send after a reset. They are lost, and no packet has them.
    pub unsent: Vec<Segment>,
}

/// A request for a connection that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The number of the process that asked.
    pub opener: usize,
    /// The number of the process that refused.
    pub acceptor: usize,
    /// The port of the address; 0 if it has no number.
    pub port: u16,
    /// The time at which the opener asked.
    pub requested: u64,
    /// The time at which the acceptor's kernel refused.
    pub refused: u64,
}

/// The bytes of one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The end that sent it.
    pub from: Side,
    /// The time at which it was sent.
    pub sent: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its fate.
    pub passage: Passage,
}

/// The end of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The end of the connection that closed or reset it.
    pub from: Side,
    /// The time at which it was sent.
    pub sent: u64,
    /// True for a reset, false for a close.
    pub is_reset: bool,
    /// Its fate.
    pub passage: Passage,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The process that opened the connection.
    Opener,
    /// The process that accepted it.
    Acceptor,
}

/// The fate of a segment, or of the end of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It arrives at this time. A time after the end of the run means that it was in flight then.
    Arrives(u64),
    /// A cut link holds it. At the end of a run: it held it until then.
    Held,
    /// A cut link held it.
    Released {
        /// The time at which the link healed, so that it was sent again.
        resent: u64,
        /// The time at which it arrives.
        arrives: u64,
    },
    /// It was lost at this time: the connection was reset, or a host lost power, or its receiver had gone
    /// when it arrived.
    Lost(u64),
}

impl Side {
    /// Returns the other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Opener => Self::Acceptor,
            Self::Acceptor => Self::Opener,
        }
    }
}

impl Connection {
    /// Returns the number of the process at an end.
    pub const fn process(&self, side: Side) -> usize {
        match side {
            Side::Opener => self.opener,
            Side::Acceptor => self.acceptor,
        }
    }

    /// Returns the passages of all segments and ends of a direction.
    fn passages(&mut self, from: Side) -> impl Iterator<Item = &mut Passage> {
        let segments = self.segments.iter_mut().filter(move |segment| segment.from == from);
        let endings = self.endings.iter_mut().filter(move |end| end.from == from);
        segments.map(|segment| &mut segment.passage).chain(endings.map(|end| &mut end.passage))
    }
}

impl Passage {
    /// Returns the time of the arrival, if it arrives.
    pub const fn arrives(self) -> Option<u64> {
        match self {
            Self::Arrives(at) | Self::Released { arrives: at, .. } => Some(at),
            Self::Held | Self::Lost(_) => None,
        }
    }

    /// Returns the passage of what is sent now: it arrives at that time, or is held.
    pub(super) fn of(arrival: Option<u64>) -> Self {
        arrival.map_or(Self::Held, Self::Arrives)
    }
}

/// The notes of the network while it runs; none if the world does not capture.
///
/// It names one direction of a connection by its pipe. The pipe that the opener writes has an even number,
/// and the opposite direction the number after it.
#[derive(Default)]
pub(super) struct Notes(Option<Capture>);

impl Notes {
    /// Begins to capture, for these processes.
    pub(super) fn start(&mut self, processes: Vec<String>) {
        self.0 = Some(Capture { processes, ..Capture::default() });
    }

    /// Takes what has been captured, and ends.
    pub(super) fn take(&mut self) -> Option<Capture> {
        self.0.take()
    }

    /// Notes a request for a connection that is accepted or refused now.
    pub(super) fn request(
        &mut self,
        ends: (usize, usize),
        address: &str,
        times: Range<u64>,
        is_accepted: bool,
    ) {
        let Some(capture) = &mut self.0 else { return };
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(0);
        let ((opener, acceptor), requested) = (ends, times.start);
        if !is_accepted {
            capture.refusals.push(Refusal { opener, acceptor, port, requested, refused: times.end });
            return;
        }
        let (segments, endings, unsent) = (Vec::new(), Vec::new(), Vec::new());
        let (accepted, connected) = (times.end, None);
        let connection =
            Connection { opener, acceptor, port, requested, accepted, connected, segments, endings, unsent };
        capture.connections.push(connection);
    }

    /// Notes that a process asks another for a connection. Returns the number of the request.
    pub(super) fn handshake(&mut self, opener: usize, acceptor: usize) -> Option<usize> {
        let handshakes = &mut self.0.as_mut()?.handshakes;
        handshakes.push(Handshake { opener, acceptor, legs: Vec::new() });
        Some(handshakes.len() - 1)
    }

    /// Notes that a direction of a handshake is sent, or is sent again once its link has healed.
    pub(super) fn leg(&mut self, handshake: Option<usize>, leg: Leg, is_again: bool) {
        let Some(legs) = self.legs(handshake) else { return };
        match (legs.last_mut(), leg.passage) {
            (Some(held), Passage::Arrives(arrives)) if is_again => {
                held.passage = Passage::Released { resent: leg.sent, arrives };
            }
            _ => legs.push(leg),
        }
    }

    /// Notes that the opener has given up: what has not arrived is lost.
    pub(super) fn give_up(&mut self, handshake: Option<usize>, now: u64) {
        if let Some(last) = self.legs(handshake).and_then(|legs| legs.last_mut()) {
            last.passage = match last.passage.arrives() {
                Some(at) if at <= now => last.passage,
                _ => Passage::Lost(now),
            };
        }
    }

    fn legs(&mut self, handshake: Option<usize>) -> Option<&mut Vec<Leg>> {
        let handshake = self.0.as_mut()?.handshakes.get_mut(handshake?)?;
        Some(&mut handshake.legs)
    }

    /// Notes bytes for a connection that has been reset.
    pub(super) fn unsent(&mut self, pipe: usize, now: u64, bytes: &[u8]) {
        if let Some(connection) = self.of_pipe(pipe) {
            let (from, passage) = (writer(pipe), Passage::Lost(now));
            connection.unsent.push(Segment { from, sent: now, bytes: bytes.to_vec(), passage });
        }
    }

    /// Notes that the opener has learned of the connection.
    pub(super) fn connected(&mut self, pipe: usize, now: u64) {
        if let Some(connection) = self.of_pipe(pipe) {
            connection.connected = Some(now);
        }
    }

    pub(super) fn segment(&mut self, pipe: usize, now: u64, bytes: &[u8], passage: Passage) {
        if let Some(connection) = self.of_pipe(pipe) {
            let from = writer(pipe);
            connection.segments.push(Segment { from, sent: now, bytes: bytes.to_vec(), passage });
        }
    }

    pub(super) fn end(&mut self, pipe: usize, now: u64, is_reset: bool, passage: Passage) {
        if let Some(connection) = self.of_pipe(pipe) {
            connection.endings.push(End { from: writer(pipe), sent: now, is_reset, passage });
        }
    }

    /// Notes that the link has healed: all that it held arrives at `arrives`.
    pub(super) fn release(&mut self, pipe: usize, now: u64, arrives: u64) {
        self.change(pipe, |passage| match passage {
            Passage::Held => Passage::Released { resent: now, arrives },
            other => other,
        });
    }

    /// Notes that all that has not arrived by now is lost.
    pub(super) fn lose_in_flight(&mut self, pipe: usize, now: u64) {
        self.change(pipe, |passage| match passage.arrives() {
            Some(at) if at > now => Passage::Lost(now),
            None if passage == Passage::Held => Passage::Lost(now),
            _ => passage,
        });
    }

    /// Notes that the reader of a pipe has gone: segments that arrive later are lost when they arrive. A
    /// close or a reset still reaches the kernel.
    pub(super) fn lose_reader(&mut self, pipe: usize, now: u64) {
        if let Some(connection) = self.of_pipe(pipe) {
            let segments = connection.segments.iter_mut().filter(|segment| segment.from == writer(pipe));
            segments.for_each(|segment| segment.passage = segment.passage.without_reader(now));
        }
    }

    fn change(&mut self, pipe: usize, changed: impl Fn(Passage) -> Passage) {
        if let Some(connection) = self.of_pipe(pipe) {
            connection.passages(writer(pipe)).for_each(|passage| *passage = changed(*passage));
        }
    }

    fn of_pipe(&mut self, pipe: usize) -> Option<&mut Connection> {
        self.0.as_mut()?.connections.get_mut(pipe / 2)
    }
}

impl Passage {
    /// Returns the passage of something whose reader has gone by `now`.
    pub(super) fn without_reader(self, now: u64) -> Self {
        match self.arrives() {
            Some(at) if at > now => Self::Lost(at),
            None if self == Self::Held => Self::Lost(now),
            _ => self,
        }
    }
}

const fn writer(pipe: usize) -> Side {
    if pipe.is_multiple_of(2) { Side::Opener } else { Side::Acceptor }
}
