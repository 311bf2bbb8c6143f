//! Validates how many may hold a lock at once: permits, readers, and the limit of a queue.

use std::ops::RangeInclusive;

use sim::{FieldPath, Invalid};

use super::super::options::Options;
use super::super::scene::LabScene;
use super::super::servers::Recipe;
use super::super::worker::{ReleaseMode, Worker, WorkerMode};

/// The numbers of permits of a semaphore.
const PERMITS: RangeInclusive<u32> = 2..=9;

/// The limits of a queue.
const WAITERS: RangeInclusive<u32> = 1..=99;

impl LabScene<'_> {
    /// Checks that the lock can be a semaphore.
    pub(super) fn check_permits(&self) -> Result<(), Invalid> {
        let Options { permits, system, etcd, workers, .. } = &self.options;
        let Some(permits) = permits else { return Ok(()) };
        let why = match () {
            () if !PERMITS.contains(permits) => {
                format!("a semaphore has {} to {} permits", PERMITS.start(), PERMITS.end())
            }
            () if !system.get().has_permits() => format!("`{system}` has no semaphores"),
            () if etcd.recipe == Recipe::Service => "recipe = \"service\" has no semaphores".into(),
            () if workers.iter().any(releases_by_get_del) => {
                "release = \"get-del\" deletes the key of a mutex".into()
            }
            () => return Ok(()),
        };
        Err(FieldPath::top("permits").says(format!("`permits` = {permits}: {why}")))
    }

    /// Checks that the lock can have readers, and that `shared` is set only where it can.
    pub(super) fn check_readers(&self) -> Result<(), Invalid> {
        let Options { readers, permits, system, etcd, workers, .. } = &self.options;
        let why = match () {
            () if !readers => return self.check_no_readers(),
            () if permits.is_some() => "a semaphore has no readers: leave out `permits`".into(),
            () if !system.get().has_readers() => format!("`{system}` has no locks with readers"),
            () if etcd.recipe == Recipe::Service => "recipe = \"service\" has no readers".into(),
            () if workers.iter().any(releases_by_get_del) => {
                "release = \"get-del\" deletes the key of a mutex".into()
            }
            () => return self.check_readers_lock_one(),
        };
        Err(FieldPath::top("readers").says(format!("`readers` = true: {why}")))
    }

    /// Checks that the lock can have a limit of its waiters, and that all workers lock by it.
    pub(super) fn check_queue(&self) -> Result<(), Invalid> {
        let Options { waiters_max, readers, system, etcd, workers, .. } = &self.options;
        let Some(waiters) = waiters_max else { return Ok(()) };
        let locks = |worker: &Worker| worker.locks_several() || worker.mode == WorkerMode::default();
        let why = match () {
            () if !WAITERS.contains(waiters) => {
                format!("a queue has {} to {} places", WAITERS.start(), WAITERS.end())
            }
            () if *readers => "a lock with readers has no limit of its waiters".into(),
            () if !system.get().has_permits() => format!("`{system}` has no queues"),
            () if etcd.recipe == Recipe::Service => "recipe = \"service\" has no limit of its waiters".into(),
            () if workers.iter().any(releases_by_get_del) => "release = \"get-del\" wakes no waiter".into(),
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
}

fn releases_by_get_del(worker: &Worker) -> bool {
    worker.release == ReleaseMode::GetDel
}
