//! Validates schedules: names exist, numbers make sense, and no option is a silent no-op.
//!
//! `capacity` validates how many may hold a lock or wait for it, `names` the names of workers; `triggers`
//! validates the triggers of faults; each fault validates its own action.

mod capacity;
mod names;

use std::collections::BTreeSet;

use sim::sim::{Expect, Outcome};
use sim::{FieldPath, Invalid, Schedule, Span};

use super::arm::{ARMS, Arm};
use super::cron::Cron;
use super::options::Options;
use super::scene::LabScene;
use super::servers::Recipe;
use super::worker::{ReleaseMode, Worker, WorkerMode};
use names::check_name;

/// The most workers of a schedule. Each takes some 4 MB.
const WORKERS_MAX: usize = 500;

/// The shortest TTL, well above the drift margin.
const TTL_MIN: Span = Span::from_millis(10);
/// The longest TTL: schedules run for minutes.
const TTL_MAX: Span = Span::from_secs(3600);

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
