//! A schedule of the laboratory as the scene of its faults.

use std::ops::Deref;

use sim::faults::{Call, Role, Scene};
use sim::{Schedule, Span};

use super::options::Options;
use super::point::{Point, ProcessKind};
use super::postgres::GREETING;
use super::servers::{Durability, Store};
use super::system::System;
use super::worker::ReleaseMode;

/// A schedule of the laboratory: its rules, and the scene of its faults.
pub struct LabScene<'a>(pub &'a Schedule<Options>);

impl Deref for LabScene<'_> {
    type Target = Schedule<Options>;

    fn deref(&self) -> &Schedule<Options> {
        self.0
    }
}

impl LabScene<'_> {
    fn durability(&self) -> Durability {
        self.options.system.get().durability(&self.options)
    }

    /// Returns true for a lock server.
    fn is_server(&self, process: &str) -> bool {
        self.options.kind_of(process).is_some_and(ProcessKind::is_server)
    }

    /// Returns true for the PostgreSQL server, whose disk has all that it has acknowledged.
    fn is_postgres(&self, process: &str) -> bool {
        self.options.kind_of(process) == Some(ProcessKind::Postgres)
    }
}

impl Scene for LabScene<'_> {
    fn processes(&self) -> Vec<String> {
        self.options.processes()
    }

    fn role(&self, process: &str) -> Option<Role> {
        // A cluster as a whole is no process.
        if self.options.cluster() == Some(process) {
            return None;
        }
        self.options.kind_of(process).map(|kind| match kind {
            ProcessKind::Worker => Role::Client,
            ProcessKind::Resource => Role::Resource,
            _ => Role::Server,
        })
    }

    fn link(&self, from: &str, to: &str) -> Result<(), String> {
        let is_link = match (Scene::role(self, from), Scene::role(self, to)) {
            (Some(Role::Client), Some(Role::Client)) => false,
            (Some(Role::Client), _) | (_, Some(Role::Client)) => true,
            (Some(Role::Resource), _) | (_, Some(Role::Resource)) => false,
            _ if self.is_postgres(from) || self.is_postgres(to) => false,
            // The nodes of Redlock are independent.
            _ => self.options.system.get().has_links(),
        };
        if is_link {
            return Ok(());
        }
        Err("workers talk to lock servers, to PostgreSQL and to the resource, and lock servers of a cluster \
             to each other"
            .into())
    }

    fn needs_no_greeting(&self, server: &str) -> Result<(), String> {
        if self.is_postgres(server) {
            return Err(GREETING.to_owned());
        }
        let hosts = self.options.system.get().hosts(&self.options, &[]);
        let host = hosts.iter().find(|(name, _)| name == server);
        host.and_then(|(_, host)| host.greeting()).map_or(Ok(()), |greeting| Err(greeting.to_owned()))
    }

    fn disk(&self, process: &str) -> Result<(), String> {
        match self.options.kind_of(process) {
            Some(ProcessKind::Worker) => Err("a worker".into()),
            Some(ProcessKind::Resource) if self.options.resource.store == Store::Memory => {
                Err("resource.store = \"memory\"".into())
            }
            Some(ProcessKind::Resource | ProcessKind::Postgres) | None => Ok(()),
            Some(_) => match self.durability() {
                Durability::None(why) => Err(why.into()),
                _ => Ok(()),
            },
        }
    }

    fn action(&self, process: &str, action: &str) -> Result<(), String> {
        let offered = self.options.system.get().actions();
        if self.options.kind_of(process).is_some_and(|kind| offered.contains(&(action, kind))) {
            return Ok(());
        }
        Err(match action {
            "promote" if !self.options.redis.replica => "the schedule has no replica (redis.replica)".into(),
            "promote" => "it is no replica".into(),
            "lead" => format!("only members of {} have a leader", System::offering(action).join(" and ")),
            _ => format!("no server can {action}"),
        })
    }

    fn acquires(&self, process: &str) -> Result<(), String> {
        match self.options.worker(process) {
            Some(worker) if worker.acquires() => Ok(()),
            Some(worker) => Err(format!("its `mode` is {}, it acquires nothing", worker.mode.name())),
            None => Err("only workers acquire".into()),
        }
    }

    fn calls(&self, process: &str, call: Call) -> Result<(), String> {
        self.acquires(process)?;
        let Some(worker) = self.options.worker(process) else { return Ok(()) };
        match call {
            Call::Renew if !worker.renew && !worker.leads() => Err("its `renew` is false".into()),
            Call::Release if worker.release == ReleaseMode::None => Err("its `release` is none".into()),
            _ => Ok(()),
        }
    }

    fn evictable(&self) -> Result<&[String], String> {
        if self.options.system.get().evicts() {
            return Ok(&self.options.keys);
        }
        Err(format!("`{}`: it evicts nothing", self.options.system))
    }

    fn forgets(&self, process: &str, power_loss: bool) -> bool {
        let forgets = match self.durability() {
            Durability::None(_) => true,
            Durability::Written => power_loss,
            Durability::Acknowledged | Durability::Majority => false,
        };
        forgets && self.is_server(process)
    }

    fn expires_keys(&self, process: &str) -> bool {
        self.is_server(process) && self.options.system.get().expires_keys()
    }

    fn knows_margins(&self) -> bool {
        true
    }

    fn scale(&self) -> Span {
        self.options.ttl
    }

    fn rounds(&self, process: &str) -> u32 {
        self.options.worker(process).map_or(3, |worker| worker.rounds)
    }

    fn has_leader(&self) -> bool {
        self.options.cluster().is_some()
    }

    fn speakers(&self) -> Vec<String> {
        self.options.system.get().speakers(&self.options)
    }

    fn points(&self, process: &str) -> Vec<String> {
        names(self.points_of(process).filter(worth_aiming_at))
    }

    fn points_inside(&self, client: &str) -> Vec<String> {
        let is_inside =
            |point: &Point| (Point::Granted..=Point::Checked).contains(point) && *point != Point::NotGranted;
        names(self.points_of(client).filter(is_inside))
    }

    fn points_of_reply(&self, process: &str) -> Vec<String> {
        if self.is_postgres(process) {
            return names([Point::Accepted]);
        }
        let last = if self.has_leader() { Point::Granted } else { Point::EvalSha };
        match Scene::role(self, process) {
            Some(Role::Resource) => names([Point::Accepted]),
            _ => names([Point::Granted, Point::Granted, Point::Deleted, last]),
        }
    }

    fn may_lose_power(&self, process: &str) -> bool {
        self.is_postgres(process)
            || matches!(self.durability(), Durability::Written | Durability::Acknowledged)
    }
}

fn names(points: impl IntoIterator<Item = Point>) -> Vec<String> {
    points.into_iter().map(|point| point.name().to_owned()).collect()
}

/// Returns true if most runs pass the point. Locks work by scripts, so the only such commands are those that
/// run a script.
fn worth_aiming_at(point: &Point) -> bool {
    matches!(point, Point::Eval | Point::EvalSha)
        || !(point.is_command() || matches!(point, Point::NotGranted | Point::Lost))
}
