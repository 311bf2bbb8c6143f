//! Random faults, all of a kind that heals by itself. More often than not they are aimed: at the time between a grant and
//! the write, and at replies about to leave a server, since that is where locks break.

use crate::entropy::Site;

use super::draw::{one_of, span};
use super::{Fault, Kind, Link, Part, Persistence, Point, Schedule, Shift, Span, Store, System, What, When};

/// Faults of every kind, and how often each is drawn. One that a schedule can't have becomes a pause of a holder.
const ANY: [(Strike, u64); 14] = [
    (Strike::HolderPause, 6),
    (Strike::AnyPause, 1),
    (Strike::LostReply, 4),
    (Strike::ServerCrash, 3),
    (Strike::ServerStop, 1),
    (Strike::ResourceCrash, 2),
    (Strike::WorkerCrash, 2),
    (Strike::Cut, 2),
    (Strike::Partition, 2),
    (Strike::Delay, 3),
    (Strike::Clock, 2),
    (Strike::Promote, 1),
    (Strike::Evict, 1),
    (Strike::Cancel, 1),
];

/// The same for systems with a leader, which evict nothing and have no replica.
const ANY_OF_ENSEMBLE: [(Strike, u64); 11] = [
    (Strike::HolderPause, 6),
    (Strike::AnyPause, 2),
    (Strike::LostReply, 4),
    (Strike::ServerCrash, 3),
    (Strike::ResourceCrash, 2),
    (Strike::WorkerCrash, 2),
    (Strike::Cut, 3),
    (Strike::Partition, 3),
    (Strike::Delay, 3),
    (Strike::Clock, 2),
    (Strike::Lead, 2),
];

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strike {
    HolderPause,
    AnyPause,
    LostReply,
    ServerCrash,
    ServerStop,
    ResourceCrash,
    WorkerCrash,
    Cut,
    Partition,
    Delay,
    Clock,
    Promote,
    Evict,
    Cancel,
    Lead,
}

/// A fault for `schedule`, drawn from `site` and from nothing else.
pub(super) fn draw_fault(schedule: &Schedule, site: &mut Site) -> Fault {
    let kinds: &[_] = if schedule.cluster().is_some() { &ANY_OF_ENSEMBLE } else { &ANY };
    let kind = draw_kind(site, kinds);
    Draw { schedule, site }.strike(kind)
}

pub(super) fn draw_kind(site: &mut Site, kinds: &[(Strike, u64)]) -> Strike {
    let mut at = site.below(kinds.iter().map(|(_, weight)| weight).sum());
    for (kind, weight) in kinds {
        if at < *weight {
            return *kind;
        }
        at -= weight;
    }
    Strike::HolderPause
}

/// Draws faults for a schedule.
pub(super) struct Draw<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) site: &'a mut Site,
}

impl Draw<'_> {
    /// A fault of this kind, or the pause of a holder if the schedule can't have one.
    pub(super) fn strike(&mut self, kind: Strike) -> Fault {
        match kind {
            Strike::LostReply => self.lost_reply(),
            Strike::ServerCrash => self.server_crash(),
            Strike::ServerStop => self.server_stop(),
            Strike::ResourceCrash if self.schedule.resource.store == Store::Redb => self.resource_crash(),
            Strike::WorkerCrash => self.worker_crash(),
            Strike::AnyPause => self.any_pause(),
            Strike::Cut => self.cut(),
            Strike::Partition => self.partition(),
            Strike::Delay => self.delay(),
            Strike::Clock => self.clock(),
            Strike::Promote if self.schedule.redis.replica => self.promote(),
            Strike::Evict => self.evict(),
            Strike::Cancel => self.cancel(),
            Strike::Lead => self.lead(),
            Strike::HolderPause | Strike::ResourceCrash | Strike::Promote => self.holder_pause(),
        }
    }

    /// The classic: a holder stops between its grant and its write, often for longer than its lease.
    fn holder_pause(&mut self) -> Fault {
        let process = self.worker();
        let in_section =
            |point: &Point| (Point::Granted..=Point::Checked).contains(point) && *point != Point::NotGranted;
        let points: Vec<_> = self.schedule.points_of(&process).filter(in_section).collect();
        let when = When::After {
            point: one_of(self.site, &points),
            nth: 1,
            plus: Span::ZERO,
            process: process.clone(),
        };
        let when = self.nth_round(when);
        Fault { when, what: What::Pause { process, lasts: Some(self.up_to_ttls(3)) } }
    }

    fn any_pause(&mut self) -> Fault {
        let process = self.process();
        let when = self.when();
        Fault { when, what: What::Pause { process, lasts: Some(self.up_to_ttls(3)) } }
    }

    /// A reset while a reply is on its way, at a lock server or at the resource.
    fn lost_reply(&mut self) -> Fault {
        let is_lock = self.site.chance(0.5);
        let (process, point) = if is_lock {
            let last = if self.schedule.cluster().is_some() { Point::Granted } else { Point::EvalSha };
            (self.lock_server(), one_of(self.site, &[Point::Granted, Point::Granted, Point::Deleted, last]))
        } else {
            ("resource".to_owned(), Point::Accepted)
        };
        let nth = 1 + self.site.below(3) as u32;
        let worker = self.worker();
        // What a cluster does, one of its members answers.
        let server =
            if is_lock && self.schedule.cluster().is_some() { self.server() } else { process.clone() };
        let when = When::After { process, point, nth, plus: Span::ZERO };
        Fault { when, what: What::Reset { link: Link::new(&worker, &server) } }
    }

    fn server_crash(&mut self) -> Fault {
        let (process, when) = (self.server(), self.when());
        let durable = self.schedule.redis.persistence != Persistence::None;
        let power_loss = self.site.chance(0.5) && durable;
        Fault { when, what: What::Crash { process, power_loss, restart_after: Some(self.up_to_ttls(2)) } }
    }

    fn server_stop(&mut self) -> Fault {
        let (process, when) = (self.server(), self.when());
        Fault { when, what: What::Stop { process, restart_after: Some(self.up_to_ttls(2)) } }
    }

    fn resource_crash(&mut self) -> Fault {
        let (process, when, power_loss) = ("resource".into(), self.when(), self.site.chance(0.5));
        Fault { when, what: What::Crash { process, power_loss, restart_after: Some(self.up_to_ttls(2)) } }
    }

    fn worker_crash(&mut self) -> Fault {
        let (process, when) = (self.worker(), self.when());
        let (restarts, after) = (self.site.chance(0.5), self.up_to_ttls(2));
        Fault {
            when,
            what: What::Crash { process, power_loss: false, restart_after: restarts.then_some(after) },
        }
    }

    fn cut(&mut self) -> Fault {
        let (link, when, both) = (self.link(), self.when(), self.site.chance(0.5));
        Fault { when, what: What::Cut { link, both, lasts: Some(self.up_to_ttls(3)) } }
    }

    /// Some workers on one side, all else on the other.
    fn partition(&mut self) -> Fault {
        let when = self.when();
        let mut groups = vec![vec![self.worker()], Vec::new()];
        for process in self.schedule.processes() {
            let side = usize::from(!(Kind::of(&process) == Kind::Worker && self.site.chance(0.3)));
            if process != groups[0][0] {
                groups[side].push(process);
            }
        }
        Fault { when, what: What::Partition { groups, lasts: Some(self.up_to_ttls(3)) } }
    }

    fn delay(&mut self) -> Fault {
        let (link, when, both) = (self.link(), self.when(), self.site.chance(0.3));
        let (by, lasts) = (self.up_to_ttls(2), Some(self.up_to_ttls(1)));
        Fault { when, what: What::Delay { link, by, both, lasts } }
    }

    fn clock(&mut self) -> Fault {
        let (process, when) = (self.process(), self.when());
        let by = self.shift();
        let (over, lasts) = (self.up_to_ttls(3), Some(self.up_to_ttls(3)));
        let percent = one_of(self.site, &[50, 90, 99, 101, 110, 200]);
        let what = match self.site.below(3) {
            0 => What::Step { process, by },
            1 => What::Slew { process, by, over },
            _ => What::Rate { process, factor: f64::from(percent) / 100.0, lasts },
        };
        Fault { when, what }
    }

    fn promote(&mut self) -> Fault {
        Fault { when: self.when(), what: What::Promote { replica: "replica-1".into() } }
    }

    fn lead(&mut self) -> Fault {
        Fault { when: self.when(), what: What::Lead { member: self.server() } }
    }

    fn evict(&mut self) -> Fault {
        let (when, key) = (self.when(), self.site.below(self.schedule.keys.len() as u64) as usize);
        let part = one_of(self.site, &[Some(Part::Owner), Some(Part::Fence), None]);
        Fault { when, what: What::Evict { key: self.schedule.keys[key].clone(), part } }
    }

    /// Just after a worker has begun to acquire.
    fn cancel(&mut self) -> Fault {
        let worker = self.worker();
        let plus = span(self.site, Span::ZERO, Span::from_millis(50));
        let when =
            self.nth_round(When::After { process: worker.clone(), point: Point::Requested, nth: 1, plus });
        Fault { when, what: What::Cancel { worker } }
    }

    /// Aimed twice in three times, else at some time early in the run.
    pub(super) fn when(&mut self) -> When {
        let early = self.up_to_ttls(4);
        let (process, plus) = (self.passer(), self.up_to_ttls(1));
        let points: Vec<_> = self.schedule.points_of(&process).filter(worth_aiming_at).collect();
        let point = one_of(self.site, &points);
        let plus = if self.site.chance(0.3) { plus } else { Span::ZERO };
        let aimed = self.nth_round(When::After { process, point, nth: 1, plus });
        if self.site.chance(0.67) { aimed } else { When::At(early) }
    }

    /// The same in a later round, now and then, of a worker that has one.
    fn nth_round(&mut self, mut when: When) -> When {
        let draw = self.site.below(3) as u32;
        if let When::After { process, nth, .. } = &mut when {
            let rounds = self.schedule.worker(process).map_or(3, |worker| worker.rounds);
            *nth = 1 + draw.min(rounds - 1);
        }
        when
    }

    /// A process whose points are passed: no replica, which serves nobody at first.
    fn passer(&mut self) -> String {
        match self.site.below(4) {
            0 => self.lock_server(),
            1 => "resource".into(),
            _ => self.worker(),
        }
    }

    /// Who tells what happens to locks: a cluster as a whole.
    pub(super) fn lock_server(&mut self) -> String {
        match self.schedule.system {
            System::Redis => "redis-1".into(),
            System::Redlock => self.server(),
            System::Etcd | System::ZooKeeper => self.schedule.cluster().unwrap_or_default().into(),
        }
    }

    pub(super) fn process(&mut self) -> String {
        let mut processes = self.schedule.processes();
        let at = self.site.below(processes.len() as u64) as usize;
        processes.swap_remove(at)
    }

    pub(super) fn server(&mut self) -> String {
        let mut servers = self.schedule.servers();
        let at = self.site.below(servers.len() as u64) as usize;
        servers.swap_remove(at)
    }

    pub(super) fn worker(&mut self) -> String {
        let at = self.site.below(self.schedule.workers.len() as u64) as usize;
        self.schedule.workers[at].name.clone()
    }

    /// From a worker to a server or the resource, or back.
    fn link(&mut self) -> Link {
        let (worker, server) = (self.worker(), self.server());
        let other = if self.site.chance(0.5) { server } else { "resource".into() };
        if self.site.chance(0.5) { Link::new(&worker, &other) } else { Link::new(&other, &worker) }
    }

    pub(super) fn up_to_ttls(&mut self, ttls: u64) -> Span {
        span(self.site, Span::from_millis(1), self.schedule.ttl.times(ttls))
    }

    pub(super) fn shift(&mut self) -> Shift {
        let (by, back) = (self.up_to_ttls(2), self.site.chance(0.5));
        let nanos = i64::try_from(by.as_nanos()).unwrap_or(i64::MAX);
        Shift::from_nanos(if back { -nanos } else { nanos })
    }
}

/// Points that come up in most runs. A lock works by scripts: of the commands, only those that run one do.
fn worth_aiming_at(point: &Point) -> bool {
    matches!(point, Point::Eval | Point::EvalSha)
        || !(point.is_command() || matches!(point, Point::NotGranted | Point::Lost))
}
