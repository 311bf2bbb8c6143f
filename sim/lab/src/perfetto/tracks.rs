//! The tracks of a trace: one for each process, and below it one for each kind of event.

use perfetto_trace_proto::track_descriptor::{ChildTracksOrdering, StaticOrDynamicName};
use perfetto_trace_proto::{ProcessDescriptor, TrackDescriptor};

/// All tracks, in the order in which they are shown.
pub(super) struct Tracks {
    groups: Vec<Group>,
    /// The number of tracks so far: the next one gets the number after it.
    count: u64,
}

/// A process.
struct Group {
    uuid: u64,
    name: String,
    lanes: Vec<Lane>,
}

struct Lane {
    uuid: u64,
    name: String,
    /// The time until which it has a slice.
    busy_until: u64,
}

impl Tracks {
    /// Returns the tracks of these processes. An event of another name, such as that of a cluster, adds one.
    pub(super) fn new(processes: &[String]) -> Self {
        let mut tracks = Self { groups: Vec::new(), count: 0 };
        for process in processes {
            tracks.group(process);
        }
        tracks
    }

    /// Returns the number of the process's track called `name`.
    pub(super) fn track(&mut self, process: &str, name: &str) -> u64 {
        self.free_track(process, name, u64::MAX, u64::MAX)
    }

    /// Returns the number of a track called `name` that has no other slice from `begin` on, and reserves it
    /// until `end`. Slices must come in the order of their beginnings.
    pub(super) fn free_track(&mut self, process: &str, name: &str, begin: u64, end: u64) -> u64 {
        self.group(process);
        let uuid = self.count + 1;
        let group = self.group(process);
        let is_free = |lane: &&mut Lane| lane.name == name && lane.busy_until <= begin;
        if let Some(lane) = group.lanes.iter_mut().find(is_free) {
            lane.busy_until = end;
            return lane.uuid;
        }
        group.lanes.push(Lane { uuid, name: name.to_owned(), busy_until: end });
        self.count = uuid;
        uuid
    }

    /// Returns the descriptions of all tracks, parents before children.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = TrackDescriptor> {
        let groups = (1..).zip(&self.groups);
        groups.flat_map(|(pid, group)| {
            let name = Some(group.name.clone());
            let process =
                ProcessDescriptor { pid: Some(pid), process_name: name, ..ProcessDescriptor::default() };
            let parent = TrackDescriptor {
                uuid: Some(group.uuid),
                static_or_dynamic_name: Some(StaticOrDynamicName::Name(group.name.clone())),
                process: Some(process),
                child_ordering: Some(ChildTracksOrdering::Explicit.into()),
                sibling_order_rank: Some(pid),
                ..TrackDescriptor::default()
            };
            let lanes = (0..).zip(&group.lanes).map(|(rank, lane)| TrackDescriptor {
                uuid: Some(lane.uuid),
                static_or_dynamic_name: Some(StaticOrDynamicName::Name(lane.name.clone())),
                parent_uuid: Some(group.uuid),
                sibling_order_rank: Some(rank),
                ..TrackDescriptor::default()
            });
            [parent].into_iter().chain(lanes.collect::<Vec<_>>())
        })
    }

    fn group(&mut self, process: &str) -> &mut Group {
        let found = self.groups.iter().position(|group| group.name == process);
        let number = found.unwrap_or_else(|| {
            self.count += 1;
            let (uuid, name) = (self.count, process.to_owned());
            self.groups.push(Group { uuid, name, lanes: Vec::new() });
            self.groups.len() - 1
        });
        &mut self.groups[number]
    }
}
