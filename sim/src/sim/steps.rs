//! The steps of a run: every point that its processes pass, in order. A search places faults between them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use resource::audit::Name;

use super::point;
use crate::world::{World, lock};

/// A point that a process passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The true time, in nanoseconds since the run began.
    pub at: u64,
    /// The process, or the cluster that the history names in its place.
    pub process: Name,
    /// The name of the point.
    pub point: Name,
    /// Which passing it is, from 1.
    pub nth: u32,
    /// Whether the process has read its wall clock since its step before.
    pub reads_wall: bool,
}

impl Step {
    /// Returns the process at the other end of the connection, if it is a step of the network.
    pub fn peer(&self) -> Option<&str> {
        point::peer(self.point.as_str())
    }

    /// Returns whether both are the same passing of the same point.
    pub fn is_same_point(&self, other: &Self) -> bool {
        (&self.process, &self.point, self.nth) == (&other.process, &other.point, other.nth)
    }
}

/// Records the steps of one run. Clones record the same run.
#[derive(Clone)]
pub(super) struct Steps {
    world: World,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    steps: Vec<Step>,
    /// How often each process passed each point.
    passed: BTreeMap<(Name, Name), u32>,
    /// How often each process had read its wall clock at its last step.
    wall_reads: BTreeMap<Name, u64>,
}

impl Steps {
    pub(super) fn new(world: &World) -> Self {
        Self { world: world.clone(), state: Arc::default() }
    }

    /// Records that the process passes the point.
    pub(super) fn pass(&self, process: &str, point: &str) {
        let reads = self.world.find(process).map(|id| self.world.process(id).wall_reads());
        let mut state = lock(&self.state);
        let State { steps, passed, wall_reads } = &mut *state;
        let (process, point) = (Name::from(process), Name::from(point));
        let nth = passed.entry((process.clone(), point.clone())).or_default();
        *nth += 1;
        let reads_before = reads.and_then(|reads| wall_reads.insert(process.clone(), reads));
        let reads_wall = reads.unwrap_or_default() > reads_before.unwrap_or_default();
        steps.push(Step { at: self.world.now(), process, point, nth: *nth, reads_wall });
    }

    /// Returns the steps, and forgets them.
    pub(super) fn take(&self) -> Vec<Step> {
        std::mem::take(&mut lock(&self.state).steps)
    }
}
