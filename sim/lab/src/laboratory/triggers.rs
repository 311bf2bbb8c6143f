//! Validates the triggers of faults: each must be reachable in its schedule.

use sim::faults::{Fault, FaultCheck, Scene, Trigger};
use sim::sim::point;
use sim::{FieldPath, Invalid};

use super::point::{Point, ProcessKind};
use super::scene::LabScene;
use super::worker::Worker;

impl LabScene<'_> {
    /// Checks every fault.
    pub(super) fn check_faults(&self) -> Result<(), Invalid> {
        for (at, fault) in self.faults.iter().enumerate() {
            let path = FieldPath::top("fault").index(at);
            self.check_trigger(&path.key("when"), &fault.when)?;
            let (verb, path) = (fault.what.verb(), &path.key("what"));
            fault.what.check(&FaultCheck { verb, path, scene: self, faults: &self.faults, number: at })?;
        }
        Ok(())
    }

    fn check_trigger(&self, path: &FieldPath, when: &Trigger) -> Result<(), Invalid> {
        match when {
            Trigger::At(at) if *at >= self.limit => {
                let problem = format!("`at` = {at} is when the run is over (`limit` = {})", self.limit);
                Err(path.key("at").says(problem))
            }
            Trigger::At(_) => Ok(()),
            Trigger::After { process, point, nth, plus: _ } => {
                let kind = self.options.kind_of(process).ok_or_else(|| {
                    let known = self.options.processes().join(", ");
                    let problem = format!("unknown process `{process}` in `when`: the schedule has {known}");
                    path.key("process").says(problem)
                })?;
                if *nth == 0 {
                    return Err(path.key("nth").says("`nth` is 0: passings of a point are counted from 1"));
                }
                if let Some(peer) = point::peer(point) {
                    return self.check_network_point(path, process, peer);
                }
                let point = point.parse::<Point>();
                let point = point.map_err(|unknown| path.key("after").says(unknown.to_string()))?;
                self.check_point(path, process, kind, point, *nth)
            }
        }
    }

    /// Checks that the two processes can have a connection, and so points of the network.
    fn check_network_point(&self, path: &FieldPath, process: &str, peer: &str) -> Result<(), Invalid> {
        let path = path.key("after");
        for name in [process, peer] {
            if Scene::role(self, name).is_none() {
                let known = self.options.processes().join(", ");
                return Err(path.says(format!(
                    "`{name}` is no process with a network of its own: the schedule has {known}"
                )));
            }
        }
        let refused = |why| path.says(format!("nothing passes between `{process}` and `{peer}`: {why}"));
        Scene::link(self, process, peer).map_err(refused)
    }

    /// Returns the points that the process can pass, given its options.
    pub(super) fn points_of(&self, process: &str) -> impl Iterator<Item = Point> {
        let points = self.options.kind_of(process).into_iter().flat_map(Point::of);
        points.filter(move |point| self.never_passes(process, *point).is_none())
    }

    fn check_point(
        &self,
        path: &FieldPath,
        process: &str,
        kind: ProcessKind,
        point: Point,
        nth: u32,
    ) -> Result<(), Invalid> {
        let after = path.key("after");
        if !point.applies_to(kind) {
            let known: Vec<_> = Point::of(kind).map(Point::name).collect();
            let problem =
                format!("`{process}` has no point `{point}`: {} has {}", kind.noun(), known.join(", "));
            return Err(after.says(problem));
        }
        if let Some(why) = self.never_passes(process, point) {
            return Err(after.says(format!("`{process}` never passes `{point}`: {why}")));
        }
        let worker = self.options.worker(process);
        let most = |worker: &Worker| u64::from(worker.rounds) * self.options.works_of(worker);
        let too_often =
            |worker: &&Worker| worker.acquires() && once_a_round(point) && u64::from(nth) > most(worker);
        match worker.filter(too_often).filter(|_| !self.restarts(process)) {
            None => Ok(()),
            Some(worker) => {
                let rounds = worker.rounds;
                let problem = format!(
                    "`nth` = {nth}: `{process}` passes `{point}` once a round and has `rounds` = {rounds}"
                );
                Err(path.key("nth").says(problem))
            }
        }
    }

    /// Returns the reason why the process never passes a point of its kind; `None` if it may pass it.
    fn never_passes(&self, process: &str, point: Point) -> Option<&'static str> {
        match self.options.kind_of(process)? {
            ProcessKind::Worker => {
                let worker = self.options.worker(process)?;
                worker.mode.workload()?.never_passes(worker, point)
            }
            ProcessKind::Resource => self.resource_never_passes(point),
            ProcessKind::Postgres => None,
            _ => self.options.system.get().never_passes(self, process, point),
        }
    }

    fn resource_never_passes(&self, point: Point) -> Option<&'static str> {
        let claims = |worker: &Worker| worker.mode.workload().is_some_and(|workload| workload.claims(worker));
        let claims = self.options.workers.iter().any(claims);
        let reads = |worker: &Worker| worker.mode.workload().is_some_and(|workload| workload.reads(worker));
        match point {
            // Without fencing, a fenced read claims nothing and is a plain one.
            Point::Read if !claims && !self.options.workers.iter().any(reads) => {
                Some("no worker has a `read`")
            }
            Point::Claimed if !claims => Some("no worker has `read = \"fenced\"`"),
            _ => None,
        }
    }

    fn restarts(&self, name: &str) -> bool {
        let restarts =
            |fault: &Fault| matches!(fault.what.ends(), Some((process, Some(_))) if process == name);
        self.faults.iter().any(restarts)
    }
}

/// Returns true if a worker passes the point at most once a round.
fn once_a_round(point: Point) -> bool {
    !matches!(point, Point::Checked | Point::Sent | Point::Answered | Point::Renewed)
}
