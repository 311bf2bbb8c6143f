//! The rules for what a fault does: what it is done to must exist, and be of a kind to which it can be done.

use super::error::Place;
use super::{Invalid, Kind, Link, Persistence, Schedule, Shift, Span, Store, System, What, WorkerMode};

/// A clock faster or slower than this says more about the schedule than about clocks.
const FACTOR_MAX: f64 = 1000.0;

impl Schedule {
    /// Checks what the fault numbered `at` does.
    pub(super) fn check_what(&self, place: &Place, at: usize, what: &What) -> Result<(), Invalid> {
        self.check_names(place, what)?;
        check_lasts(place, what)?;
        match what {
            What::Resume { process } => self.check_resume(place, process),
            What::Crash { process, power_loss, restart_after } => {
                self.check_power_loss(place, process, *power_loss)?;
                self.check_end(place.key("crash"), at, process, *restart_after)
            }
            What::Stop { process, restart_after } => {
                check_stop(place, process)?;
                self.check_end(place.key("stop"), at, process, *restart_after)
            }
            What::Cut { link, .. } => self.check_link(place.key("cut"), link),
            What::Delay { link, by, .. } => {
                self.check_link(place.key("delay"), link)?;
                nonzero(place.key("by"), "by", *by)
            }
            What::Partition { groups, .. } => check_groups(place.key("partition"), groups),
            What::Reset { link } => self.check_link(place.key("reset"), link),
            What::Step { by, .. } => check_shift(place, *by),
            What::Slew { by, over, .. } => {
                check_shift(place, *by)?;
                nonzero(place.key("over"), "over", *over)
            }
            What::Rate { factor, .. } => check_factor(place.key("factor"), *factor),
            What::Promote { replica } => self.check_promote(place.key("promote"), at, replica),
            What::Lead { member } => check_lead(place.key("lead"), member),
            What::Evict { key, .. } => self.check_evict(place.key("evict"), key),
            What::Cancel { worker } => self.check_cancel(place.key("cancel"), worker),
            What::Pause { .. } => Ok(()),
        }
    }

    fn check_names(&self, place: &Place, what: &What) -> Result<(), Invalid> {
        let verb = what.verb();
        let place = place.key(verb);
        // The absence of any replica says more than the absence of this name.
        if let What::Promote { replica } = what
            && !self.redis.replica
        {
            return Err(
                place.says(format!("`promote` of `{replica}`: the schedule has no replica (redis.replica)"))
            );
        }
        if let What::Partition { groups, .. } = what {
            for (group, members) in groups.iter().enumerate() {
                for (member, name) in members.iter().enumerate() {
                    self.check_process(place.index(group).index(member), name, verb)?;
                }
            }
            return Ok(());
        }
        let names = what.processes();
        for (at, name) in names.iter().enumerate() {
            let place = if names.len() > 1 { place.index(at) } else { place.clone() };
            self.check_process(place, name, verb)?;
        }
        Ok(())
    }

    fn check_resume(&self, place: &Place, name: &str) -> Result<(), Invalid> {
        let pauses = |what: &What| matches!(what, What::Pause { process, .. } if process == name);
        if self.faults.iter().any(|fault| pauses(&fault.what)) {
            return Ok(());
        }
        Err(place.key("resume").says(format!("`resume` of `{name}`: no fault pauses it")))
    }

    fn check_power_loss(&self, place: &Place, name: &str, power_loss: bool) -> Result<(), Invalid> {
        let diskless = match Kind::of(name) {
            Kind::Worker => Some("a worker"),
            Kind::Resource if self.resource.store == Store::Memory => Some("resource.store = \"memory\""),
            Kind::Redis | Kind::Replica if self.redis.persistence == Persistence::None => {
                Some("redis.persistence = \"none\"")
            }
            _ => None,
        };
        match diskless.filter(|_| power_loss) {
            None => Ok(()),
            Some(why) => {
                let problem =
                    format!("`power_loss` does not apply to `{name}`: it keeps nothing on a disk ({why})");
                Err(place.key("power_loss").says(problem))
            }
        }
    }

    /// What has gone for good can't go again.
    fn check_end(&self, place: Place, at: usize, name: &str, restart: Option<Span>) -> Result<(), Invalid> {
        let for_good = |what: &What| match what {
            What::Crash { process, restart_after: None, .. }
            | What::Stop { process, restart_after: None } => process == name,
            _ => false,
        };
        let before = &self.faults[..at.min(self.faults.len())];
        if restart.is_none() && before.iter().any(|fault| for_good(&fault.what)) {
            return Err(
                place.says(format!("`{name}` goes for good twice: give one of the two a `restart_after`"))
            );
        }
        Ok(())
    }

    fn check_link(&self, place: Place, link: &Link) -> Result<(), Invalid> {
        let Link { from, to } = link;
        if from == to {
            return Err(place.says(format!("`{from}` has no link to itself")));
        }
        if linked(self.system, Kind::of(from), Kind::of(to)) {
            return Ok(());
        }
        Err(place.says(format!(
            "there is no link from `{from}` to `{to}`: workers talk to lock servers and to the resource, and lock \
             servers of a cluster to each other"
        )))
    }

    fn check_promote(&self, place: Place, at: usize, name: &str) -> Result<(), Invalid> {
        if Kind::of(name) != Kind::Replica {
            return Err(place.says(format!("`promote` of `{name}`: it is no replica")));
        }
        let before = &self.faults[..at.min(self.faults.len())];
        if before.iter().any(|fault| matches!(fault.what, What::Promote { .. })) {
            return Err(place.says(format!("`{name}` is promoted twice")));
        }
        Ok(())
    }

    fn check_cancel(&self, place: Place, name: &str) -> Result<(), Invalid> {
        match self.worker(name).map(|worker| worker.mode) {
            Some(WorkerMode::Lock) => Ok(()),
            Some(WorkerMode::Cas) => {
                Err(place.says(format!("`cancel` of `{name}`: its `mode` is cas, it acquires nothing")))
            }
            None => Err(place.says(format!("`cancel` of `{name}`: only workers acquire"))),
        }
    }

    fn check_evict(&self, place: Place, key: &str) -> Result<(), Invalid> {
        if !matches!(self.system, System::Redis | System::Redlock) {
            return Err(place.says(format!("`evict` does not apply to `{}`: it evicts nothing", self.system)));
        }
        if self.keys.iter().any(|known| known == key) {
            return Ok(());
        }
        Err(place.says(format!("unknown key `{key}` in `evict`: the schedule has {}", self.keys.join(", "))))
    }
}

/// Whether processes of these kinds talk to each other.
fn linked(system: System, one: Kind, other: Kind) -> bool {
    match (one, other) {
        (Kind::Worker, Kind::Worker) => false,
        (Kind::Worker, _) | (_, Kind::Worker) => true,
        (Kind::Resource, _) | (_, Kind::Resource) => false,
        // The nodes of Redlock know nothing of each other.
        _ => system != System::Redlock,
    }
}

/// A fault that is over at once would be none.
fn check_lasts(place: &Place, what: &What) -> Result<(), Invalid> {
    match what {
        What::Pause { lasts: Some(lasts), .. }
        | What::Cut { lasts: Some(lasts), .. }
        | What::Delay { lasts: Some(lasts), .. }
        | What::Partition { lasts: Some(lasts), .. }
        | What::Rate { lasts: Some(lasts), .. } => nonzero(place.key("for"), "for", *lasts),
        _ => Ok(()),
    }
}

fn check_stop(place: &Place, name: &str) -> Result<(), Invalid> {
    if Kind::of(name) != Kind::Worker {
        return Ok(());
    }
    Err(place.key("stop").says(format!("`stop` does not apply to the worker `{name}`: crash or pause it")))
}

fn check_groups(place: Place, groups: &[Vec<String>]) -> Result<(), Invalid> {
    if groups.len() < 2 || groups.iter().any(Vec::is_empty) {
        return Err(place.says("`partition` needs two groups at least, none of them empty"));
    }
    let mut names: Vec<&String> = groups.iter().flatten().collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(place.says(format!("`{}` stands twice in one `partition`", pair[0]))),
    }
}

fn check_shift(place: &Place, by: Shift) -> Result<(), Invalid> {
    if by.as_nanos() != 0 {
        return Ok(());
    }
    Err(place.key("by").says("`by` is 0s: the fault would do nothing"))
}

fn check_factor(place: Place, factor: f64) -> Result<(), Invalid> {
    if !(1.0 / FACTOR_MAX..=FACTOR_MAX).contains(&factor) {
        return Err(
            place.says(format!("`factor` = {factor}: it must be from {} to {FACTOR_MAX}", 1.0 / FACTOR_MAX))
        );
    }
    if factor == 1.0 {
        return Err(place.says("`factor` is 1: the fault would do nothing"));
    }
    Ok(())
}

fn check_lead(place: Place, name: &str) -> Result<(), Invalid> {
    if matches!(Kind::of(name), Kind::Etcd | Kind::ZooKeeper) {
        return Ok(());
    }
    Err(place.says(format!("`lead` of `{name}`: only members of etcd and ZooKeeper have a leader")))
}

fn nonzero(place: Place, field: &str, span: Span) -> Result<(), Invalid> {
    if span.is_zero() {
        return Err(place.says(format!("`{field}` is 0s: the fault would do nothing")));
    }
    Ok(())
}
