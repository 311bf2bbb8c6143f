//! Random faults of one class: what the systems are compared under.

use crate::entropy::Site;

use super::draw::one_of;
use super::draw_fault::{Draw, Strike, draw_kind};
use super::names::names;
use super::{Fault, Link, Point, Schedule, Span, System, What, When};

names! {
    /// A class of faults.
    pub enum FaultClass as "class of faults" {
        /// A worker stops, mostly inside its critical section, or a server does.
        Pause = "pause",
        /// A worker or a server is killed, and starts again; what servers keep on disk is drawn, too.
        Crash = "crash",
        /// What a worker says does not reach a lock server, or the other way round.
        OneWay = "one-way partition",
        /// A worker is parted from some of the lock servers, or of the members of a cluster one from the others.
        Partition = "partition",
        /// The wall clock of a process is set.
        ClockStep = "clock step",
        /// The clocks of a process run fast or slow.
        ClockRate = "clock rate",
        /// A request is carried out, and its reply is lost.
        LostReply = "lost reply",
        /// An asynchronous replica takes over.
        Failover = "failover",
        /// Another member leads.
        LeaderChange = "leader change",
    }
}

impl FaultClass {
    /// Whether the system can have such a fault.
    pub fn applies_to(self, system: System) -> bool {
        match self {
            Self::Failover => system == System::Redis,
            Self::LeaderChange => matches!(system, System::Etcd | System::ZooKeeper),
            _ => true,
        }
    }

    /// One fault of this class for `schedule`, in as many parts as it takes.
    pub(super) fn draw(self, schedule: &Schedule, site: &mut Site) -> Option<Vec<Fault>> {
        if !self.applies_to(schedule.system) {
            return None;
        }
        let mut draw = Draw { schedule, site };
        Some(match self {
            Self::Pause => draw.one(&[(Strike::HolderPause, 3), (Strike::AnyPause, 1)]),
            Self::Crash => draw.one(&[(Strike::ServerCrash, 2), (Strike::WorkerCrash, 1)]),
            Self::OneWay => draw.one_way(),
            Self::Partition => draw.parted(),
            Self::ClockStep => draw.step(),
            Self::ClockRate => draw.rate(),
            Self::LostReply => draw.every_reply(),
            Self::Failover => vec![draw.strike(Strike::Promote)],
            Self::LeaderChange => vec![draw.strike(Strike::Lead)],
        })
    }
}

impl Draw<'_> {
    fn one(&mut self, kinds: &[(Strike, u64)]) -> Vec<Fault> {
        let kind = draw_kind(self.site, kinds);
        vec![self.strike(kind)]
    }

    fn one_way(&mut self) -> Vec<Fault> {
        let (worker, when, lasts) = (self.worker(), self.when(), Some(self.up_to_ttls(3)));
        let is_deaf = self.site.chance(0.5);
        let cut = |server: String| {
            let link = if is_deaf { Link::new(&server, &worker) } else { Link::new(&worker, &server) };
            Fault { when: when.clone(), what: What::Cut { link, both: false, lasts } }
        };
        self.some_servers().into_iter().map(cut).collect()
    }

    fn parted(&mut self) -> Vec<Fault> {
        let (when, lasts) = (self.when(), Some(self.up_to_ttls(3)));
        let among_members = self.schedule.cluster().is_some() && self.site.chance(0.5);
        let groups = if among_members {
            let member = self.server();
            let others = self.schedule.servers().into_iter().filter(|other| *other != member).collect();
            vec![vec![member], others]
        } else {
            vec![vec![self.worker()], self.some_servers()]
        };
        vec![Fault { when, what: What::Partition { groups, lasts } }]
    }

    fn step(&mut self) -> Vec<Fault> {
        let (process, when, by) = (self.process(), self.when(), self.shift());
        vec![Fault { when, what: What::Step { process, by } }]
    }

    fn rate(&mut self) -> Vec<Fault> {
        let (process, when, lasts) = (self.process(), self.when(), Some(self.up_to_ttls(4)));
        let percent = one_of(self.site, &[50, 90, 99, 101, 110, 200]);
        vec![Fault { when, what: What::Rate { process, factor: f64::from(percent) / 100.0, lasts } }]
    }

    /// The connections of one worker break when a server has carried out a request, before it has answered: whoever it
    /// was that the worker had asked.
    fn every_reply(&mut self) -> Vec<Fault> {
        let (worker, nth) = (self.worker(), 1 + self.site.below(3) as u32);
        let (process, point, servers) = if self.site.chance(0.7) {
            let point = one_of(self.site, &[Point::Granted, Point::Granted, Point::Deleted]);
            let server = self.lock_server();
            let is_cluster = self.schedule.cluster().is_some();
            let answering = if is_cluster { self.schedule.servers() } else { vec![server.clone()] };
            (server, point, answering)
        } else {
            ("resource".to_owned(), Point::Accepted, vec!["resource".to_owned()])
        };
        let reset = |server: String| Fault {
            when: When::After { process: process.clone(), point, nth, plus: Span::ZERO },
            what: What::Reset { link: Link::new(&worker, &server) },
        };
        servers.into_iter().map(reset).collect()
    }

    /// One lock server at least, and maybe all.
    fn some_servers(&mut self) -> Vec<String> {
        let mut servers = self.schedule.servers();
        let count = 1 + self.site.below(servers.len() as u64) as usize;
        while servers.len() > count {
            let out = self.site.below(servers.len() as u64) as usize;
            servers.remove(out);
        }
        servers
    }
}
