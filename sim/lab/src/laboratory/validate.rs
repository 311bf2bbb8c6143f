//! Validates schedules: names exist, numbers make sense, and no option is a silent no-op.
//!
//! `triggers` validates the triggers of faults; each fault validates its own action.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use sim::faults::NETWORK;
use sim::sim::{Expect, Outcome};
use sim::{FieldPath, Invalid, Schedule, Span};

use super::arm::{ARMS, Arm};
use super::cron::Cron;
use super::options::Options;
use super::point::ProcessKind;
use super::scene::LabScene;
use super::servers::Recipe;
use super::system::System;
use super::worker::{ReleaseMode, Worker, WorkerMode};

/// The most workers of a schedule. Each takes some 4 MB.
const WORKERS_MAX: usize = 500;

/// The numbers of permits of a semaphore.
const PERMITS: RangeInclusive<u32> = 2..=9;

/// The limits of a queue.
const WAITERS: RangeInclusive<u32> = 1..=99;

/// The shortest TTL, well above the drift margin.
const TTL_MIN: Span = Span::from_millis(10);
/// The longest TTL: schedules run for minutes.
const TTL_MAX: Span = Span::from_secs(3600);
/// The longest name of a worker in bytes: `dlock` allows as many in owner tokens.
const NAME_BYTES_MAX: usize = 64;

/// Checks that the schedule can be run. [`parse`](super::parse) has done this already.
///
/// # Errors
///
/// [`Invalid`] for the first rule that it breaks, in the order of the file.
pub fn validate(schedule: &Schedule<Options>) -> Result<(), Invalid> {
    LabScene(schedule).validate()
}

impl LabScene<'_> {
    fn validate(&self) -> Result<(), Invalid> {
        self.check_shared(&ARMS)?;
        check_ttl(&FieldPath::top("ttl"), self.options.ttl)?;
        self.options.system.get().check_ttl(&FieldPath::top("ttl"), self.options.ttl)?;
        self.check_keys()?;
        if let Some(within) = self.options.within {
            check_span("within", within)?;
        }
        self.check_servers()?;
        self.check_cron()?;
        self.check_workers()?;
        self.check_faults()?;
        check_expect(self, &self.expect)
    }

    fn check_keys(&self) -> Result<(), Invalid> {
        let path = FieldPath::top("keys");
        if self.options.keys.is_empty() {
            return Err(path.says("`keys` is empty: workers need a key to lock"));
        }
        let mut seen = BTreeSet::new();
        for (at, key) in self.options.keys.iter().enumerate() {
            let path = path.index(at);
            let lock_key = key.split_once(':').map(|(kind, id)| dlock::LockKey::new(kind, id));
            match lock_key {
                None => {
                    return Err(path.says(format!("`{key}` is no key: write type:id, such as orders:42")));
                }
                Some(Err(error)) => return Err(path.says(format!("`{key}` is no key: {error}"))),
                Some(Ok(_)) if !seen.insert(key) => {
                    return Err(path.says(format!("two keys are called `{key}`")));
                }
                Some(Ok(_)) => {}
            }
        }
        Ok(())
    }

    /// Checks that the lock can be a semaphore.
    fn check_permits(&self) -> Result<(), Invalid> {
        let Options { permits, system, etcd, workers, .. } = &self.options;
        let Some(permits) = permits else { return Ok(()) };
        let by_get_del = |worker: &Worker| worker.release == ReleaseMode::GetDel;
        let why = match () {
            () if !PERMITS.contains(permits) => {
                format!("a semaphore has {} to {} permits", PERMITS.start(), PERMITS.end())
            }
            () if !system.get().has_permits() => format!("`{system}` has no semaphores"),
            () if etcd.recipe == Recipe::Service => "recipe = \"service\" has no semaphores".into(),
            () if workers.iter().any(by_get_del) => "release = \"get-del\" deletes the key of a mutex".into(),
            () => return Ok(()),
        };
        Err(FieldPath::top("permits").says(format!("`permits` = {permits}: {why}")))
    }

    /// Checks that the lock can have readers, and that workers read under no other.
    fn check_readers(&self) -> Result<(), Invalid> {
        let Options { readers, permits, system, etcd, workers, .. } = &self.options;
        let why = match () {
            () if !readers => return self.check_no_readers(),
            () if permits.is_some() => "a semaphore has no readers: leave out `permits`".into(),
            () if !system.get().has_readers() => format!("`{system}` has no locks with readers"),
            () if etcd.recipe == Recipe::Service => "recipe = \"service\" has no readers".into(),
            () if workers.iter().any(|worker| worker.release == ReleaseMode::GetDel) => {
                "release = \"get-del\" deletes the key of a mutex".into()
            }
            () => return self.check_readers_lock_one(),
        };
        Err(FieldPath::top("readers").says(format!("`readers` = true: {why}")))
    }

    /// Checks that the lock can have a limit of its waiters, and that all workers lock by it.
    fn check_queue(&self) -> Result<(), Invalid> {
        let Options { waiters_max, readers, permits, system, etcd, workers, .. } = &self.options;
        let Some(waiters) = waiters_max else { return Ok(()) };
        let locks = |worker: &Worker| worker.locks_several() || worker.mode == WorkerMode::default();
        let why = match () {
            () if !WAITERS.contains(waiters) => {
                format!("a queue has {} to {} places", WAITERS.start(), WAITERS.end())
            }
            () if *readers => "a lock with readers has no limit of its waiters".into(),
            () if !system.get().has_permits() => format!("`{system}` has no queues"),
            () if *system == System::REDIS && permits.is_some() => {
                "a semaphore on `redis` has no queue".into()
            }
            () if etcd.recipe == Recipe::Service => "recipe = \"service\" has no limit of its waiters".into(),
            () if workers.iter().any(|worker| worker.release == ReleaseMode::GetDel) => {
                "release = \"get-del\" wakes no waiter".into()
            }
            () if !workers.iter().all(locks) => "only workers that lock a key or several know it".into(),
            () => return Ok(()),
        };
        Err(FieldPath::top("waiters_max").says(format!("`waiters_max` = {waiters}: {why}")))
    }

    fn check_no_readers(&self) -> Result<(), Invalid> {
        let Some(at) = self.options.workers.iter().position(|worker| worker.shared) else { return Ok(()) };
        let name = &self.options.workers[at].name;
        let problem = format!("`shared` of `{name}` needs the schedule's `readers = true`");
        Err(FieldPath::top("worker").index(at).key("shared").says(problem))
    }

    fn check_readers_lock_one(&self) -> Result<(), Invalid> {
        let locks_several = |worker: &Worker| worker.shared && worker.locks_several();
        let Some(at) = self.options.workers.iter().position(locks_several) else { return Ok(()) };
        let name = &self.options.workers[at].name;
        let problem = format!("`shared` of `{name}`: several keys are locked for writing together");
        Err(FieldPath::top("worker").index(at).key("shared").says(problem))
    }

    /// Checks that all that speaks to the lock servers can do so over TLS.
    fn check_tls(&self) -> Result<(), Invalid> {
        let Options { tls, system, etcd, mutant, workers, .. } = &self.options;
        let plain = |worker: &Worker| worker.release == ReleaseMode::GetDel;
        let why = match () {
            () if !tls => return Ok(()),
            () if system.get().tls_scheme().is_none() => format!("the servers of `{system}` don't speak TLS"),
            () if etcd.recipe == Recipe::Service => "the client of recipe = \"service\" speaks no TLS".into(),
            () if mutant.is_some() => "a mutant speaks to its servers without TLS".into(),
            () if workers.iter().any(plain) => "release = \"get-del\" sends its commands without TLS".into(),
            () => return Ok(()),
        };
        Err(FieldPath::top("tls").says(format!("`tls` = true: {why}")))
    }

    /// Checks the options of the lock servers: no table of another system is set.
    fn check_servers(&self) -> Result<(), Invalid> {
        let system = self.options.system.get();
        system.check(&self.options)?;
        self.check_tls()?;
        self.check_permits()?;
        self.check_readers()?;
        self.check_queue()?;
        match self.options.tables().find(|table| system.table() != Some(table)) {
            None => Ok(()),
            Some(table) => {
                let problem = format!("`{table}` does not apply to `{}`", self.options.system);
                Err(FieldPath::top(table).says(problem))
            }
        }
    }

    /// Refuses a cron that nobody fires.
    fn check_cron(&self) -> Result<(), Invalid> {
        let is_idle = self.options.cron != Cron::default() && !self.options.workers.iter().any(Worker::fires);
        if is_idle {
            return Err(FieldPath::top("cron").says("`cron` needs a worker with `mode = \"cron\"`"));
        }
        Ok(())
    }

    fn check_workers(&self) -> Result<(), Invalid> {
        let path = FieldPath::top("worker");
        if self.options.workers.is_empty() {
            return Err(path.says("the schedule has no worker: add a [[worker]]"));
        }
        let count = self.options.workers.len();
        if count > WORKERS_MAX {
            let problem = format!("{count} workers are too many: one run has memory for {WORKERS_MAX}");
            return Err(path.says(problem));
        }
        let mut seen = BTreeSet::new();
        for (at, worker) in self.options.workers.iter().enumerate() {
            let path = path.index(at);
            check_name(&path, &worker.name)?;
            if !seen.insert(&worker.name) {
                return Err(path.key("name").says(format!("two workers are called `{}`", worker.name)));
            }
            self.check_worker(&path, worker)?;
        }
        Ok(())
    }

    fn check_worker(&self, path: &FieldPath, worker: &Worker) -> Result<(), Invalid> {
        let name = &worker.name;
        if worker.starts >= self.limit {
            let problem = format!(
                "`{name}` starts at {}, when the run is over (`limit` = {})",
                worker.starts, self.limit
            );
            return Err(path.key("starts").says(problem));
        }
        if let Some(key) = worker.key.as_ref().filter(|key| !self.options.keys.contains(key)) {
            let problem =
                format!("unknown key `{key}` of `{name}`: the schedule has {}", self.options.keys.join(", "));
            return Err(path.key("key").says(problem));
        }
        for (field, count) in [("rounds", worker.rounds), ("writes", worker.writes)] {
            if count == 0 {
                return Err(path
                    .key(field)
                    .says(format!("`{field}` of `{name}` is 0: it must be 1 at least")));
            }
        }
        if worker.release == ReleaseMode::GetDel && !self.options.system.get().has_get_del() {
            let problem = format!(
                "`release` = \"get-del\" of `{name}`: it does not apply to `{}`",
                self.options.system
            );
            return Err(path.key("release").says(problem));
        }
        self.check_mode(path, worker)?;
        self.check_lease(path, worker)?;
        check_cancels(path, worker)
    }

    /// Checks that the worker's workload exists, and that the worker's options apply to it.
    fn check_mode(&self, path: &FieldPath, worker: &Worker) -> Result<(), Invalid> {
        let (name, mode) = (&worker.name, worker.mode.name());
        let Some(workload) = worker.mode.workload() else {
            let known = WorkerMode::names().collect::<Vec<_>>().join(", ");
            return Err(path.key("mode").says(format!("unknown worker mode `{mode}`: known are {known}")));
        };
        workload.check(path, worker, &self.options)?;
        let (round, other) = (workload.round(), worker.option_of_others());
        if workload.acquires() {
            let Some((field, other)) = other else { return Ok(()) };
            return Err(path
                .key(field)
                .says(format!("`{field}` needs `mode = \"{other}\"`: `{name}` {round}")));
        }
        match worker.option_of_locks().or(other.map(|(field, _)| field)) {
            None => Ok(()),
            Some(field) => {
                let problem = format!("`{field}` does not apply to `mode = \"{mode}\"`: `{name}` {round}");
                Err(path.key(field).says(problem))
            }
        }
    }

    fn check_lease(&self, path: &FieldPath, worker: &Worker) -> Result<(), Invalid> {
        let name = &worker.name;
        let spans = [
            ("deadline", Some(worker.deadline)),
            ("retry_every", worker.retry_every),
            ("renew_cap", worker.renew_cap),
        ];
        for (field, span) in spans {
            if span.is_some_and(|span| span.is_zero()) {
                return Err(path.key(field).says(format!("`{field}` of `{name}` is 0s: give it some time")));
            }
        }
        if let Some(ttl) = worker.ttl {
            check_ttl(&path.key("ttl"), ttl)?;
            self.options.system.get().check_ttl(&path.key("ttl"), ttl)?;
        }
        if worker.renew_cap.is_some() && !worker.renew {
            return Err(path
                .key("renew_cap")
                .says(format!("`renew_cap` needs `renew = true`: `{name}` does not renew")));
        }
        let ttl = self.options.ttl_of(worker);
        match self.options.drift_margin.filter(|margin| *margin >= ttl) {
            None => Ok(()),
            Some(margin) => {
                let problem =
                    format!("`drift_margin` = {margin} leaves nothing of the TTL of `{name}`, {ttl}");
                Err(FieldPath::top("drift_margin").says(problem))
            }
        }
    }
}

fn check_span(field: &'static str, span: Span) -> Result<(), Invalid> {
    if span.is_zero() {
        Err(FieldPath::top(field).says(format!("`{field}` is 0s: give it some time")))
    } else {
        Ok(())
    }
}

/// Checks the limits of a TTL. `dlock` also refuses a TTL that its drift margin uses up, or above a year.
fn check_ttl(path: &FieldPath, ttl: Span) -> Result<(), Invalid> {
    if (TTL_MIN..=TTL_MAX).contains(&ttl) {
        return Ok(());
    }
    Err(path.says(format!("`ttl` = {ttl}: it must be from {TTL_MIN} to {TTL_MAX}")))
}

/// Checks a worker's name. It is part of owner tokens, traces and expectations, so it must be readable, and
/// must not be the name of a server.
fn check_name(path: &FieldPath, name: &str) -> Result<(), Invalid> {
    if name.is_empty() {
        return Err(path.says("a worker has no name: write name = \"a\""));
    }
    let letters = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    let problem = if name.len() > NAME_BYTES_MAX {
        format!("`{name}` is too long for a worker's name: {NAME_BYTES_MAX} bytes are allowed")
    } else if !letters || name.starts_with('-') {
        format!("`{name}` is no name for a worker: take lower-case letters, digits and dashes")
    } else if let Some(owner) = reserved(name) {
        format!("`{name}` is no name for a worker: {owner} is called so")
    } else {
        return Ok(());
    };
    Err(path.key("name").says(problem))
}

/// The names of the servers of all systems, without their numbers.
static SERVERS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let servers = System::all().flat_map(|system| Options::new(system, TTL_MAX, Vec::new()).servers());
    servers.map(|name| name.trim_end_matches(|c: char| c == '-' || c.is_ascii_digit()).to_owned()).collect()
});

/// Returns a noun for the process that has `name` in any schedule, if there is one. Servers are numbered
/// (`redis-1`, `replica-1`, `etcd-1`); a name without a number is that of a cluster, or the address of the
/// lock. Events of links belong to `network`, and events of no process to `harness`.
fn reserved(name: &str) -> Option<&'static str> {
    let is_number = |rest: &str| {
        let number = rest.strip_prefix('-');
        rest.is_empty() || number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_server = |kind: &&ProcessKind| name.strip_prefix(kind.name()).is_some_and(is_number);
    let servers = ProcessKind::ALL.iter().filter(|kind| kind.is_server());
    match name {
        NETWORK => Some("the network"),
        "harness" => Some("the simulator itself"),
        _ if name == ProcessKind::Resource.name() => Some(ProcessKind::Resource.noun()),
        _ => servers.into_iter().find(is_server).map(|kind| kind.noun()).or_else(|| {
            let is_other = |server: &String| name.strip_prefix(server.as_str()).is_some_and(is_number);
            SERVERS.iter().any(is_other).then(|| ProcessKind::Server.noun())
        }),
    }
}

fn check_cancels(path: &FieldPath, worker: &Worker) -> Result<(), Invalid> {
    let (path, name) = (path.key("cancel_at"), &worker.name);
    if let Some(at) = worker.cancel_at.iter().position(|pending| *pending == 0) {
        return Err(path
            .index(at)
            .says(format!("`cancel_at` of `{name}` holds a 0: pendings are counted from 1")));
    }
    if worker.cancel_at.len() as u64 > u64::from(worker.rounds) {
        let problem = format!(
            "`cancel_at` of `{name}` has {} entries for {} rounds",
            worker.cancel_at.len(),
            worker.rounds
        );
        return Err(path.says(problem));
    }
    Ok(())
}

fn check_expect(schedule: &Schedule<Options>, expect: &Expect) -> Result<(), Invalid> {
    let path = FieldPath::top("expect");
    if let Some(outcome) = expect.of(Arm::Unfenced.name()) {
        let path = path.key("unfenced");
        for (field, writes) in [("refused", &outcome.refused), ("refused_reads", &outcome.refused_reads)] {
            if let Some(first) = writes.as_ref().and_then(|writes| writes.first()) {
                let problem = format!("`{field}` holds {first}: a resource without fencing refuses nothing");
                return Err(path.key(field).says(problem));
            }
        }
        check_outcome(schedule, &path, outcome)?;
    }
    match expect.of(Arm::Fenced.name()) {
        Some(outcome) => check_outcome(schedule, &path.key("fenced"), outcome),
        None => Ok(()),
    }
}

fn check_outcome(schedule: &Schedule<Options>, path: &FieldPath, outcome: &Outcome) -> Result<(), Invalid> {
    let lists = [
        ("accepted", &outcome.accepted),
        ("refused", &outcome.refused),
        ("refused_reads", &outcome.refused_reads),
        ("repeated", &outcome.repeated),
    ];
    let names = || schedule.options.workers.iter().map(|worker| worker.name.as_str());
    for (field, writes) in lists {
        for (at, write) in writes.iter().flatten().enumerate() {
            if !names().any(|name| name == write.worker.as_str()) {
                let known = names().collect::<Vec<_>>().join(", ");
                let problem =
                    format!("unknown worker `{}` in `{field}`: the schedule has {known}", write.worker);
                return Err(path.key(field).index(at).says(problem));
            }
        }
    }
    Ok(())
}
