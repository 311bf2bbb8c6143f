//! A check for queues that lose a job with its worker: once a worker has died in the middle of a job, no
//! other finds the queue empty before the job ran again.
//!
//! The verdict `task_lost` shows more than that. A queue that forgets a job when it is taken looks empty
//! while the job runs, so that another worker concludes too early that all jobs are done; this takes no
//! fault.

use std::collections::{BTreeMap, BTreeSet};

use sim::{Check, Event, Evidence, Kind, Name, Nanos};

/// Returns the check that no worker finds the queue empty after another one has died in a job.
///
/// A worker has died in a job if it crashed after it had claimed the job and before it sent the commit. Only
/// a worker that asked after the crash counts. Nothing is judged once a server may have lost the queue: once
/// a process that is no worker of a queue has crashed, or a replica was promoted.
pub(super) fn job_outlives_worker() -> impl Check {
    |evidence: &Evidence<'_>| {
        let mut runs = Runs::default();
        for event in evidence.events {
            if runs.may_lose_queue(event) {
                break;
            }
            if let Some(problem) = runs.observe(event) {
                return Err(problem);
            }
        }
        Ok(())
    }
}

/// The runs of jobs, and the workers that make them. A job is known by its resource.
#[derive(Default)]
struct Runs<'e> {
    workers: BTreeSet<&'e Name>,
    /// The queue that each worker last asked for a job, and the time at which it asked.
    asked: BTreeMap<&'e Name, (&'e Name, Nanos)>,
    /// The job that each worker runs, until it sends the commit.
    running: BTreeMap<&'e Name, &'e Name>,
    /// The jobs of which a commit was sent: they may be done.
    sent: BTreeSet<&'e Name>,
    /// The jobs whose worker has died, each with its end.
    cut: BTreeMap<&'e Name, Cut<'e>>,
}

/// The end of a run by the death of its worker.
struct Cut<'e> {
    queue: &'e Name,
    worker: &'e Name,
    at: Nanos,
}

impl<'e> Runs<'e> {
    /// Returns true if a server may have lost the queue with this event.
    fn may_lose_queue(&self, event: &Event) -> bool {
        match &event.kind {
            Kind::ServerPromoted { .. } | Kind::ServerStopped { .. } => true,
            Kind::ProcessCrashed { .. } => !self.workers.contains(&event.process),
            _ => false,
        }
    }

    /// Returns the problem with the event, if the check does not hold.
    fn observe(&mut self, event: &'e Event) -> Option<String> {
        let (at, process) = (event.at, &event.process);
        match &event.kind {
            Kind::WorkerStep { step, key: Some(key), .. } => self.step(process, step.as_str(), key, at),
            Kind::TaskDue { .. } => _ = self.workers.insert(process),
            Kind::TaskSent { .. } => self.sent.extend(self.running.remove(process)),
            Kind::TaskEnded { .. } => _ = self.running.remove(process),
            Kind::ProcessCrashed { .. } => self.die(process, at),
            // A queue is empty up to the largest number; ticks of a cron end at one of their own.
            Kind::TasksPassed { key, task: u64::MAX, .. } => {
                let asked = self.asked.get(process).map(|(_, at)| *at).unwrap_or_default();
                let is_lost = |cut: &&Cut<'_>| cut.queue == key && cut.at < asked;
                let Cut { worker, at: died, .. } = self.cut.values().find(is_lost)?;
                return Some(format!(
                    "{worker} died at {died} in a job that nobody has run since, and {process} found the \
                     queue empty at {at}"
                ));
            }
            _ => {}
        }
        None
    }

    fn step(&mut self, worker: &'e Name, step: &str, key: &'e Name, at: Nanos) {
        match step {
            "asked" => {
                self.workers.insert(worker);
                self.asked.insert(worker, (key, at));
            }
            "granted" if self.asked.contains_key(worker) => {
                self.cut.remove(key);
                self.running.insert(worker, key);
            }
            "released" => _ = self.running.remove(worker),
            _ => {}
        }
    }

    fn die(&mut self, worker: &'e Name, at: Nanos) {
        let job = self.running.remove(worker).filter(|job| !self.sent.contains(job));
        if let (Some(job), Some((queue, _))) = (job, self.asked.remove(worker)) {
            self.cut.insert(job, Cut { queue, worker, at });
        }
    }
}
