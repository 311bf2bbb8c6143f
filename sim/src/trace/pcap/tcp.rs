//! The TCP packets of a run: handshakes, segments with sequence numbers, acknowledgements, ends.

use history::Nanos;

use crate::world::capture::{Capture, Connection, Passage, Refusal, Side};

/// The first of the ports from which processes open connections, and their number.
const PORT_MIN: usize = 49_152;
const PORTS: usize = 16_384;

/// The sequence numbers with which the two ends of every connection begin.
const FIRST_SEQ: [u32; 2] = [1_000, 2_000];

/// The time within which an end answers at once: some steps of the simulator, which take 50 ns each. A real
/// kernel sends no acknowledgement of its own then.
const INSTANT_NANOS: u64 = 1_000;

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    /// The true time of its sending, in nanoseconds since the run began.
    pub(super) at: u64,
    pub(super) from: Socket,
    pub(super) to: Socket,
    pub(super) seq: u32,
    pub(super) ack: Option<u32>,
    pub(super) flags: Flags,
    pub(super) payload: &'a [u8],
    /// A note that the capture itself does not show.
    pub(super) comment: Option<String>,
}

/// A process and one of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Socket {
    pub(super) process: usize,
    pub(super) port: u16,
}

/// The flags of a packet beside ACK and PSH.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) syn: bool,
    pub(super) fin: bool,
    pub(super) rst: bool,
}

const PLAIN: Flags = Flags { syn: false, fin: false, rst: false };

/// Something that happens at one end of a connection.
#[derive(Clone, Copy)]
struct Happening<'a> {
    at: u64,
    side: Side,
    what: What<'a>,
}

#[derive(Clone, Copy)]
enum What<'a> {
    /// The end asks for the connection, accepts it, or learns of that.
    Handshake { is_ack: bool, flags: Flags },
    /// The end sends what begins at this offset of its direction.
    Sends { sent: Sent<'a>, is_again: bool },
    /// All of the other direction up to this offset has arrived.
    Receives { end: u32 },
}

/// A segment, or the end of a direction.
#[derive(Clone, Copy)]
struct Sent<'a> {
    /// Its offset in its direction, in sequence numbers from that of the SYN.
    offset: u32,
    flags: Flags,
    payload: &'a [u8],
    passage: Passage,
}

/// Returns the packets of all connections, in the order of their sending.
pub(super) fn packets(capture: &Capture) -> Vec<Packet<'_>> {
    let mut packets = Vec::new();
    for (number, connection) in capture.connections.iter().enumerate() {
        of_connection(connection, port(number), &mut packets);
    }
    for (number, refusal) in capture.refusals.iter().enumerate() {
        packets.extend(of_refusal(refusal, port(capture.connections.len() + number)));
    }
    // Stable: the packets of one instant stay in the order of their connections.
    packets.sort_by_key(|packet| packet.at);
    packets
}

/// Returns the port from which the connection with this number is opened.
fn port(number: usize) -> u16 {
    (PORT_MIN + number % PORTS) as u16
}

fn of_refusal<'a>(refusal: &Refusal, port: u16) -> [Packet<'a>; 2] {
    let opener = Socket { process: refusal.opener, port };
    let acceptor = Socket { process: refusal.acceptor, port: refusal.port };
    let syn = Packet {
        at: refusal.requested,
        from: opener,
        to: acceptor,
        seq: FIRST_SEQ[0],
        ack: None,
        flags: Flags { syn: true, ..PLAIN },
        payload: &[],
        comment: None,
    };
    let refused = Packet {
        at: refusal.refused,
        from: acceptor,
        to: opener,
        seq: 0,
        ack: Some(FIRST_SEQ[0] + 1),
        flags: Flags { rst: true, ..PLAIN },
        comment: Some("no process listens here".to_owned()),
        ..syn.clone()
    };
    [syn, refused]
}

fn of_connection<'a>(connection: &'a Connection, port: u16, packets: &mut Vec<Packet<'a>>) {
    let opener = Socket { process: connection.opener, port };
    let acceptor = Socket { process: connection.acceptor, port: connection.port };
    let happenings = happenings(connection);
    // For each end, the offset after all that it has received from the other, and after all that it has sent.
    let (mut received, mut next) = ([0; 2], [1; 2]);
    for (number, happening) in happenings.iter().enumerate() {
        let Happening { at, side, what } = *happening;
        let (from, to) = match side {
            Side::Opener => (opener, acceptor),
            Side::Acceptor => (acceptor, opener),
        };
        let seq = |offset: u32| FIRST_SEQ[side as usize].wrapping_add(offset);
        let ack = |received: [u32; 2]| FIRST_SEQ[side.other() as usize].wrapping_add(received[side as usize]);
        let plain =
            Packet { at, from, to, seq: seq(0), ack: None, flags: PLAIN, payload: &[], comment: None };
        match what {
            What::Handshake { is_ack, flags } => {
                if is_ack {
                    received[side as usize] = received[side as usize].max(1);
                }
                let seq = seq(u32::from(!flags.syn));
                packets.push(Packet { seq, ack: is_ack.then(|| ack(received)), flags, ..plain });
            }
            What::Sends { sent, is_again } => {
                next[side as usize] = next[side as usize].max(sent.end());
                packets.push(Packet {
                    seq: seq(sent.offset),
                    ack: Some(ack(received)),
                    flags: sent.flags,
                    payload: sent.payload,
                    comment: comment(sent.passage, is_again),
                    ..plain
                });
            }
            What::Receives { end } => {
                received[side as usize] = received[side as usize].max(end);
                // Before its end of the handshake, which acknowledges all that came before.
                let is_early = side == Side::Opener && connection.connected.is_none_or(|end| at < end);
                let is_soon = is_acknowledged_soon(happening, &happenings[number + 1..]);
                if !is_early && !is_soon {
                    packets.push(Packet { seq: seq(next[side as usize]), ack: Some(ack(received)), ..plain });
                }
            }
        }
    }
}

/// Returns true if `arrival` needs no packet of its own, as the same end sends another in the same instant.
fn is_acknowledged_soon(arrival: &Happening<'_>, later: &[Happening<'_>]) -> bool {
    let soon = later.iter().take_while(|next| next.at - arrival.at <= INSTANT_NANOS);
    let mut own = soon.filter(|next| next.side == arrival.side);
    own.next().is_some()
}

impl Sent<'_> {
    /// Returns the offset after it; the end of a direction counts as one.
    fn end(&self) -> u32 {
        self.offset.wrapping_add(self.payload.len() as u32).wrapping_add(u32::from(self.flags.fin))
    }
}

/// Returns all that happens at both ends, in order.
fn happenings(connection: &Connection) -> Vec<Happening<'_>> {
    let handshake = |at, side, is_ack, syn| {
        let what = What::Handshake { is_ack, flags: Flags { syn, ..PLAIN } };
        Happening { at, side, what }
    };
    let mut happenings = vec![
        handshake(connection.requested, Side::Opener, false, true),
        handshake(connection.accepted, Side::Acceptor, true, true),
    ];
    happenings.extend(connection.connected.map(|at| handshake(at, Side::Opener, true, false)));
    for side in [Side::Opener, Side::Acceptor] {
        for (at, sent) in sent_by(connection, side) {
            let send = |at, is_again| Happening { at, side, what: What::Sends { sent, is_again } };
            happenings.push(send(at, false));
            if let Passage::Released { resent, .. } = sent.passage {
                happenings.push(send(resent, true));
            }
            // A reset is never acknowledged.
            if let Some(at) = sent.passage.arrives().filter(|_| !sent.flags.rst) {
                let what = What::Receives { end: sent.end() };
                happenings.push(Happening { at, side: side.other(), what });
            }
        }
    }
    // Arrivals precede sendings of the same time, which may be answers. The sort is stable otherwise.
    happenings.sort_by_key(|happening| (happening.at, happening.rank()));
    happenings
}

impl Happening<'_> {
    const fn rank(&self) -> u8 {
        match self.what {
            What::Handshake { .. } => 0,
            What::Receives { .. } => 1,
            What::Sends { .. } => 2,
        }
    }
}

/// Returns the segments of a direction and its end, each with the time of its sending.
fn sent_by(connection: &Connection, side: Side) -> Vec<(u64, Sent<'_>)> {
    // The SYN has the first number.
    let mut offset: u32 = 1;
    let mut all = Vec::new();
    for segment in connection.segments.iter().filter(|segment| segment.from == side) {
        let sent = Sent { offset, flags: PLAIN, payload: &segment.bytes, passage: segment.passage };
        offset = sent.end();
        all.push((segment.sent, sent));
    }
    for end in connection.endings.iter().filter(|end| end.from == side) {
        let flags = Flags { fin: !end.is_reset, rst: end.is_reset, syn: false };
        let sent = Sent { offset, flags, payload: &[], passage: end.passage };
        offset = sent.end();
        all.push((end.sent, sent));
    }
    all
}

fn comment(passage: Passage, is_again: bool) -> Option<String> {
    match passage {
        Passage::Arrives(_) => None,
        Passage::Released { .. } if is_again => Some("sent again: the link has healed".to_owned()),
        Passage::Released { resent, .. } => Some(format!("held by a cut link until {} s", Nanos(resent))),
        Passage::Held => Some("held by a cut link until the end of the run".to_owned()),
        Passage::Lost(at) => Some(format!("lost at {} s", Nanos(at))),
    }
}
