//! The rules for when a fault strikes: it must be able to.

use super::error::Place;
use super::{
    Fault, Invalid, Kind, Point, ReadMode, ReleaseMode, Schedule, System, What, When, Worker, WorkerMode,
};

impl Schedule {
    /// Checks every fault.
    pub(super) fn check_faults(&self) -> Result<(), Invalid> {
        for (at, fault) in self.faults.iter().enumerate() {
            let place = Place::top("fault").index(at);
            self.check_when(&place.key("when"), &fault.when)?;
            self.check_what(&place.key("what"), at, &fault.what)?;
        }
        Ok(())
    }

    fn check_when(&self, place: &Place, when: &When) -> Result<(), Invalid> {
        match when {
            When::At(at) if *at >= self.limit => {
                let problem = format!("`at` = {at} is when the run is over (`limit` = {})", self.limit);
                Err(place.key("at").says(problem))
            }
            When::At(_) => Ok(()),
            When::After { process, point, nth, plus: _ } => {
                if self.cluster() != Some(process.as_str()) {
                    self.check_process(place.key("process"), process, "when")?;
                }
                if *nth == 0 {
                    return Err(place.key("nth").says("`nth` is 0: passings of a point are counted from 1"));
                }
                self.check_point(place, process, *point, *nth)
            }
        }
    }

    /// The points that the process can pass, given its options.
    pub fn points_of(&self, process: &str) -> impl Iterator<Item = Point> {
        Point::of(Kind::of(process)).filter(move |point| self.never_passes(process, *point).is_none())
    }

    /// Whether a process of that name exists, which `user` refers to.
    pub(super) fn check_process(&self, place: Place, name: &str, user: &str) -> Result<(), Invalid> {
        let known = self.processes();
        if known.iter().any(|known| known == name) {
            return Ok(());
        }
        Err(place
            .says(format!("unknown process `{name}` in `{user}`: the schedule has {}", known.join(", "))))
    }

    fn check_point(&self, place: &Place, process: &str, point: Point, nth: u32) -> Result<(), Invalid> {
        let kind = Kind::of(process);
        let after = place.key("after");
        if !point.applies_to(kind) {
            let known: Vec<_> = Point::of(kind).map(Point::name).collect();
            let problem =
                format!("`{process}` has no point `{point}`: {} has {}", kind.noun(), known.join(", "));
            return Err(after.says(problem));
        }
        if let Some(why) = self.never_passes(process, point) {
            return Err(after.says(format!("`{process}` never passes `{point}`: {why}")));
        }
        let worker = self.worker(process);
        let too_often =
            |worker: &&Worker| worker.mode == WorkerMode::Lock && once_a_round(point) && nth > worker.rounds;
        match worker.filter(too_often).filter(|_| !self.restarts(process)) {
            None => Ok(()),
            Some(worker) => {
                let rounds = worker.rounds;
                let problem = format!(
                    "`nth` = {nth}: `{process}` passes `{point}` once a round and has `rounds` = {rounds}"
                );
                Err(place.key("nth").says(problem))
            }
        }
    }

    /// Why a process never passes a point that its kind has, if the schedule says so.
    fn never_passes(&self, process: &str, point: Point) -> Option<&'static str> {
        match Kind::of(process) {
            Kind::Worker => self.worker(process).and_then(|worker| worker_never_passes(worker, point)),
            Kind::Resource => self.resource_never_passes(point),
            Kind::Replica if !self.promotes(process) => Some("it serves nobody until a `promote`"),
            // Which member carries a request out says nothing of the lock.
            Kind::Etcd if process != Kind::Etcd.name() => Some("the cluster does, as `etcd`"),
            Kind::ZooKeeper if process != Kind::ZooKeeper.name() => Some("the ensemble does, as `zookeeper`"),
            _ if point == Point::Extended && self.system == System::ZooKeeper => {
                Some("ZooKeeper extends sessions, not locks")
            }
            _ => None,
        }
    }

    fn resource_never_passes(&self, point: Point) -> Option<&'static str> {
        let any = |mode: ReadMode| self.workers.iter().any(|worker| worker.read == mode);
        let updates = self.workers.iter().any(|worker| worker.mode == WorkerMode::Cas);
        match point {
            // Without fencing, a fenced read claims nothing and is a plain one.
            Point::Read if !updates && !any(ReadMode::Plain) && !any(ReadMode::Fenced) => {
                Some("no worker has a `read`")
            }
            Point::Claimed if !any(ReadMode::Fenced) => Some("no worker has `read = \"fenced\"`"),
            _ => None,
        }
    }

    fn promotes(&self, name: &str) -> bool {
        let promotes = |fault: &Fault| matches!(&fault.what, What::Promote { replica } if replica == name);
        self.faults.iter().any(promotes)
    }

    fn restarts(&self, name: &str) -> bool {
        self.faults.iter().any(|fault| match &fault.what {
            What::Crash { process, restart_after: Some(_), .. } => process == name,
            _ => false,
        })
    }
}

/// Why the worker never passes the point, if its options say so.
fn worker_never_passes(worker: &Worker, point: Point) -> Option<&'static str> {
    if worker.mode == WorkerMode::Cas {
        let passes = matches!(point, Point::Read | Point::Worked | Point::Sent | Point::Answered);
        return (!passes).then_some("its `mode` is cas, it takes no lock");
    }
    match point {
        Point::Read if worker.read == ReadMode::None => Some("its `read` is none"),
        Point::Checked if !worker.check => Some("its `check` is false"),
        Point::Renewed | Point::Lost if !worker.renew => Some("its `renew` is false"),
        Point::ReleaseRequested | Point::Released if worker.release == ReleaseMode::None => {
            Some("its `release` is none")
        }
        _ => None,
    }
}

/// Whether a worker passes the point at most once a round.
fn once_a_round(point: Point) -> bool {
    !matches!(point, Point::Checked | Point::Sent | Point::Answered | Point::Renewed)
}
