//! The steps of a run: every point that its processes pass, in order. A search places faults at them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use history::Name;
use serde::{Deserialize, Serialize};

use super::point;
use crate::world::process::ProcessId;
use crate::world::{World, lock};

/// A point that a process passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The true time, in nanoseconds since the run began.
    pub at: u64,
    /// The process, or the cluster that the history names instead.
    pub process: Name,
    /// The name of the point.
    pub point: Name,
    /// The number of this passing among those of the process, from 1.
    pub nth: u32,
    /// The processes that had a turn since the previous step, of any process.
    pub(crate) ran: Group,
    /// The processes that read their wall clock since the previous step.
    pub(crate) read_wall: Group,
}

/// A set of processes, by their numbers in the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Group(u64);

impl Group {
    /// Adds a process. All numbers from 63 on count as one process.
    pub(crate) fn insert(&mut self, number: usize) {
        self.0 |= 1 << number.min(63);
    }

    /// Returns true if some process is in both groups.
    pub(crate) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl Step {
    /// Returns the process at the other end of the connection, for a step of the network.
    pub fn peer(&self) -> Option<&str> {
        point::peer(self.point.as_str())
    }

    /// Returns true if both are the same passing of the same point.
    pub fn is_same_point(&self, other: &Self) -> bool {
        (&self.process, &self.point, self.nth) == (&other.process, &other.point, other.nth)
    }
}

/// The recorder of the steps of one run. Clones record the same run.
#[derive(Clone)]
pub(super) struct Steps {
    world: World,
    state: Arc<Mutex<State>>,
}

struct State {
    steps: Vec<Step>,
    /// The number of times that each process passed each point.
    passed: BTreeMap<(Name, Name), u32>,
    /// For each process, its turns and readings of the wall clock at the last step.
    counts: Vec<(u64, u64)>,
}

impl Steps {
    /// Creates a recorder for a world with this number of processes.
    pub(super) fn new(world: &World, processes: usize) -> Self {
        let state = State { steps: Vec::new(), passed: BTreeMap::new(), counts: vec![(0, 0); processes] };
        Self { world: world.clone(), state: Arc::new(Mutex::new(state)) }
    }

    pub(super) fn pass(&self, process: &str, point: &str) {
        let mut state = lock(&self.state);
        let State { steps, passed, counts } = &mut *state;
        let (process, point) = (Name::from(process), Name::from(point));
        let nth = passed.entry((process.clone(), point.clone())).or_default();
        *nth += 1;
        let (mut ran, mut read_wall) = (Group::default(), Group::default());
        for (number, before) in counts.iter_mut().enumerate() {
            let now = self.world.process(ProcessId(number)).activity().counts();
            if now.0 != before.0 {
                ran.insert(number);
            }
            if now.1 != before.1 {
                read_wall.insert(number);
            }
            *before = now;
        }
        steps.push(Step { at: self.world.now(), process, point, nth: *nth, ran, read_wall });
    }

    /// Returns the steps, and forgets them.
    pub(super) fn take(&self) -> Vec<Step> {
        std::mem::take(&mut lock(&self.state).steps)
    }
}
