//! A run as a trace for Perfetto (<https://ui.perfetto.dev>): a group of tracks for each process, with its
//! events, its messages, its pauses and critical sections, the leases that it trusts and those that it has
//! stored. Flows lead from each message that was sent to its arrival.
//!
//! `slices.rs` reads durations from the history, `tracks.rs` gives each a track on which it overlaps no
//! other.

mod slices;
mod tracks;

use history::text::{Names, describe};
use history::{Event, Fate, Message};
use perfetto_trace_proto::trace_packet::{Data, OptionalTrustedPacketSequenceId, SequenceFlags};
use perfetto_trace_proto::track_event::{NameField, Type};
use perfetto_trace_proto::{Trace, TracePacket, TrackEvent};
use prost::Message as _;

use self::tracks::Tracks;

/// The number of the one sequence of packets.
const SEQUENCE: u32 = 1;

/// The tracks that every process may have, beside those of its durations.
const EVENTS: &str = "events";
const SENDS: &str = "sends";
const RECEIVES: &str = "receives";

/// All that a trace shows of a run.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The processes, in the order of their groups.
    pub processes: &'a [String],
    /// The history.
    pub events: &'a [Event],
    /// The names of locks and resources.
    pub names: &'a Names,
    /// The messages.
    pub messages: &'a [Message],
    /// The true time at which the run ended, in nanoseconds since it began.
    pub end: u64,
}

/// An event of a track, not yet written.
struct Timed {
    at: u64,
    /// The order among the events of one instant: slices end before others begin.
    rank: u8,
    event: TrackEvent,
}

/// Returns the trace, as Perfetto reads it from a file.
pub fn perfetto(shown: &Shown<'_>) -> Vec<u8> {
    let mut tracks = Tracks::new(shown.processes);
    let mut timed = Vec::new();
    for event in shown.events {
        let track = tracks.track(event.process.as_str(), EVENTS);
        timed.push(instant(event.at.0, track, describe(&event.kind, shown.names)));
    }
    for (number, message) in (1..).zip(shown.messages) {
        add_message(message, number, &mut tracks, &mut timed);
    }
    for slice in slices::slices(shown.events, shown.names, shown.end) {
        let track = tracks.free_track(slice.process.as_str(), &slice.lane, slice.begin, slice.end);
        let begin = event(Type::SliceBegin, track, Some(slice.name));
        timed.push(Timed { at: slice.begin, rank: 2, event: begin });
        timed.push(Timed { at: slice.end, rank: 0, event: event(Type::SliceEnd, track, None) });
    }
    // Stable: the events of one instant stay in the order of the history.
    timed.sort_by_key(|timed| (timed.at, timed.rank));
    let descriptors = tracks.descriptors().map(|descriptor| (None, Data::TrackDescriptor(descriptor)));
    let events = timed.into_iter().map(|timed| (Some(timed.at), Data::TrackEvent(timed.event)));
    let mut packet: Vec<TracePacket> = descriptors.chain(events).map(in_sequence).collect();
    if let Some(first) = packet.first_mut() {
        first.sequence_flags = Some(SequenceFlags::SeqIncrementalStateCleared as u32);
    }
    Trace { packet }.encode_to_vec()
}

fn in_sequence((timestamp, data): (Option<u64>, Data)) -> TracePacket {
    let sequence = OptionalTrustedPacketSequenceId::TrustedPacketSequenceId(SEQUENCE);
    TracePacket {
        timestamp,
        data: Some(data),
        optional_trusted_packet_sequence_id: Some(sequence),
        ..TracePacket::default()
    }
}

/// Adds a message: an instant where it was sent, another where it arrived, and a flow from the one to the
/// other.
fn add_message(message: &Message, flow: u64, tracks: &mut Tracks, timed: &mut Vec<Timed>) {
    let words = |rest: String| format!("{}{rest}", message.words);
    let fate = match message.fate {
        Fate::Arrived { .. } => String::new(),
        Fate::Held => " (held by a cut link)".to_owned(),
        Fate::Lost { .. } => " (lost)".to_owned(),
    };
    let mut sent = instant(message.sent.0, tracks.track(&message.from, SENDS), words(fate));
    if let Fate::Arrived { at, .. } = message.fate {
        sent.event.flow_ids = vec![flow];
        let mut arrived = instant(at.0, tracks.track(&message.to, RECEIVES), words(String::new()));
        arrived.event.terminating_flow_ids = vec![flow];
        timed.push(arrived);
    }
    timed.push(sent);
}

fn instant(at: u64, track: u64, name: String) -> Timed {
    Timed { at, rank: 1, event: event(Type::Instant, track, Some(name)) }
}

fn event(kind: Type, track: u64, name: Option<String>) -> TrackEvent {
    let name_field = name.map(NameField::Name);
    TrackEvent { r#type: Some(kind.into()), track_uuid: Some(track), name_field, ..TrackEvent::default() }
}
