//! Traces for Perfetto, read by Perfetto's own schema.

use std::collections::{BTreeMap, BTreeSet};

use history::Fate;
use lab::Arm;
use lab::perfetto::{Shown, perfetto};
use perfetto_trace_proto::trace_packet::Data;
use perfetto_trace_proto::track_event::Type;
use perfetto_trace_proto::{Trace, TrackDescriptor, TrackEvent, track_descriptor, track_event};
use prost::Message;
use sim::Report;

use crate::messages::recorded;

/// A trace, as Perfetto reads it.
struct Read {
    tracks: BTreeMap<u64, TrackDescriptor>,
    events: Vec<(u64, TrackEvent)>,
}

fn read(report: &Report) -> Read {
    let shown = Shown {
        processes: &report.capture.as_ref().unwrap().processes,
        events: &report.events,
        names: &report.names,
        messages: &report.messages,
        end: u64::try_from(report.simulated.as_nanos()).unwrap(),
    };
    let mut read = Read { tracks: BTreeMap::new(), events: Vec::new() };
    for packet in Trace::decode(&*perfetto(&shown)).unwrap().packet {
        match packet.data {
            Some(Data::TrackDescriptor(track)) => {
                assert!(read.events.is_empty(), "a track is described after an event");
                assert!(read.tracks.insert(track.uuid(), track).is_none(), "two tracks have one number");
            }
            Some(Data::TrackEvent(event)) => read.events.push((packet.timestamp.unwrap(), event)),
            other => panic!("unexpected packet: {other:?}"),
        }
    }
    read
}

impl Read {
    /// Returns the names of the process and of the track.
    fn place(&self, uuid: u64) -> (&str, &str) {
        let track = &self.tracks[&uuid];
        (name(&self.tracks[&track.parent_uuid()]), name(track))
    }

    /// Returns the tracks of a process.
    fn lanes(&self, process: &str) -> BTreeSet<&str> {
        let lanes = self.tracks.values().filter(|track| track.parent_uuid.is_some());
        lanes
            .map(|track| self.place(track.uuid()))
            .filter(|(of, _)| *of == process)
            .map(|(_, lane)| lane)
            .collect()
    }
}

fn name(track: &TrackDescriptor) -> &str {
    match &track.static_or_dynamic_name {
        Some(track_descriptor::StaticOrDynamicName::Name(name)) => name,
        other => panic!("no name: {other:?}"),
    }
}

fn label(event: &TrackEvent) -> &str {
    match &event.name_field {
        Some(track_event::NameField::Name(name)) => name,
        _ => "",
    }
}

#[test]
fn each_process_has_lanes_for_its_leases_and_pauses() {
    let read = read(&recorded("gc-pause", Arm::Fenced));
    let lanes = read.lanes("a");
    for lane in
        ["events", "sends", "receives", "paused", "section of orders:42", "trusts its lease of orders:42"]
    {
        assert!(lanes.contains(lane), "{lane}: {lanes:?}");
    }
    assert!(read.lanes("redis-1").contains("stores orders:42"));
}

#[test]
fn every_slice_ends_and_none_overlaps_another() {
    for name in ["gc-pause", "etcd-gc-pause", "sigkill-holder", "redlock-crowd", "majority-crash"] {
        let read = read(&recorded(name, Arm::Fenced));
        assert!(read.events.is_sorted_by_key(|(at, _)| *at), "{name}");
        let mut open: BTreeMap<u64, &str> = BTreeMap::new();
        let mut slices = 0;
        for (_, event) in &read.events {
            match event.r#type() {
                Type::SliceBegin => {
                    slices += 1;
                    let other = open.insert(event.track_uuid(), label(event));
                    assert_eq!(other, None, "{name}: {:?}", read.place(event.track_uuid()));
                }
                Type::SliceEnd => assert!(open.remove(&event.track_uuid()).is_some(), "{name}"),
                kind => assert_eq!(kind, Type::Instant, "{name}"),
            }
        }
        assert!(open.is_empty() && slices > 0, "{name}: {open:?}");
    }
}

#[test]
fn a_pause_is_as_long_as_in_the_schedule() {
    let read = read(&recorded("gc-pause", Arm::Fenced));
    let paused = read.events.iter().filter(|(_, event)| read.place(event.track_uuid()) == ("a", "paused"));
    let times: Vec<u64> = paused.map(|(at, _)| *at).collect();
    assert_eq!(times.len(), 2);
    assert_eq!((times[1] - times[0]) / 1_000_000, 5_000);
}

#[test]
fn a_flow_leads_from_each_message_to_its_arrival() {
    let report = recorded("etcd-minority", Arm::Fenced);
    let read = read(&report);
    let flows = |ids: fn(&TrackEvent) -> &[u64], lane: &'static str| -> BTreeMap<u64, (u64, String)> {
        let of_event = |(at, event): &(u64, TrackEvent)| {
            assert!(ids(event).is_empty() || read.place(event.track_uuid()).1 == lane);
            ids(event).iter().map(|id| (*id, (*at, label(event).to_owned()))).collect::<Vec<_>>()
        };
        read.events.iter().flat_map(of_event).collect()
    };
    let sent = flows(|event| &event.flow_ids, "sends");
    let arrived = flows(|event| &event.terminating_flow_ids, "receives");
    let arrivals =
        report.messages.iter().filter(|message| matches!(message.fate, Fate::Arrived { .. })).count();
    assert!(arrivals > 0 && sent.len() == arrivals && arrived.len() == arrivals);
    for (id, (at, words)) in sent {
        assert!(arrived[&id].0 >= at && arrived[&id].1 == words, "{words}");
    }
}
