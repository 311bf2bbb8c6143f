//! `ran_twice`: a task was committed twice, or started again after its commit was acknowledged. `task_lost`:
//! a task that had to run was passed over.
//!
//! A task is a unit of work that must take effect once: a tick of a schedule, a job of a queue. Its commit is
//! the write that `task_sent` announces, once the resource has accepted it; a store without events is judged
//! by `task_ended` with the outcome `done`. The write may go to another resource than that of the task's key,
//! such as one for each job: `write_sent`, of the same grant and number, names it. Two writes of one grant
//! with different numbers commit a task twice, too: a write that is repeated after a lost answer keeps its
//! number. A task may start again as long as no commit of it was acknowledged: its worker may have died. A
//! worker of another grant whose token is not above that of the commit may start late, since it has claimed
//! before: it paused in between, and its commit is refused.
//!
//! A task is lost if a worker finds that all tasks up to its number are done (`tasks_passed`), while it was
//! due and has no commit, was not skipped by the policy, and was not given up (`dead`). A task that one
//! worker has skipped is not due any more: another that finds it due later has an older answer. Of a queue,
//! only the tasks count that were due before the worker asked (the step `asked`): the answer may be older
//! than a task.
//! A task is not lost while a worker runs it, which may still commit it: from its start, or from its question
//! to the queue, until the worker is done with it (the step `released`), finds that none is left, asks again,
//! or dies. The task stays due then, and is judged when it is passed over again, or at the end of the history
//! if nobody has it any more.
//!
//! Source: exactly-once effect by a durable transition, Computing Series, part 018, sections 22 and 23;
//! Helland, "Idempotence Is Not a Medical Condition" (2012).

use std::collections::{BTreeMap, BTreeSet};

use super::Rules;
use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use crate::events::{Event, Nanos};
use crate::vocabulary::{Kind, Name};

/// The tasks of all keys.
#[derive(Default)]
pub(super) struct Tasks<'h> {
    works: BTreeMap<&'h Name, Work<'h>>,
    /// The commits that processes have announced, until they send the writes.
    announced: BTreeMap<(&'h Name, By<'h>, Option<u64>), (&'h Name, u64)>,
    /// The tasks that writes to other resources commit, by the resource.
    elsewhere: BTreeMap<(&'h Name, By<'h>, Option<u64>), (&'h Name, u64)>,
    /// The time at which each process asked each queue for its next task last.
    asked: BTreeMap<&'h Name, BTreeMap<&'h Name, Nanos>>,
    /// The queue of which each process may have claimed a task that it has not started yet.
    claiming: BTreeMap<&'h Name, &'h Name>,
}

/// The tasks of one key.
#[derive(Default)]
struct Work<'h> {
    /// The task that each write commits.
    sent: BTreeMap<(By<'h>, Option<u64>), u64>,
    committed: BTreeMap<u64, Commit<'h>>,
    /// The tasks that must run and have no commit, with the time since which they are due and the process
    /// that said so.
    due: BTreeMap<u64, (Nanos, &'h Name)>,
    /// The number up to which the policy has skipped the tasks.
    skipped: Option<u64>,
    /// The process that started each task last.
    started: BTreeMap<u64, &'h Name>,
    /// The task that each process runs.
    running: BTreeMap<&'h Name, u64>,
    /// The last answer that passed over each task while a worker had it, with the process that got it.
    passed: BTreeMap<u64, (Pass, &'h Name)>,
    /// The process that died last between its question for a task and the start of that task.
    dropped: Option<&'h Name>,
    /// The tasks that were given up.
    dead: BTreeSet<u64>,
    /// The runs that have made a verdict.
    convicted: BTreeSet<(u64, By<'h>)>,
}

/// A grant: its owner and its token.
type By<'h> = (Option<&'h Name>, u64);

struct Commit<'h> {
    by: By<'h>,
    /// The number of the write, if it is known.
    seq: Option<u64>,
    process: Name,
    at: Nanos,
    /// The time at which a worker had the answer.
    acknowledged: Option<Nanos>,
}

impl Commit<'_> {
    /// Returns true if the numbers of both writes are known, and differ.
    fn is_another_write(&self, seq: Option<u64>) -> bool {
        self.seq.zip(seq).is_some_and(|(one, other)| one != other)
    }
}

impl<'h> Judge<'h> for Tasks<'h> {
    fn of(_: &Rules) -> Option<Self> {
        Some(Self::default())
    }

    fn observe(&mut self, event: &'h Event, state: &State<'h>, verdicts: &mut Verdicts) {
        let at = event.at;
        match &event.kind {
            Kind::TaskDue { key, task } => {
                let work = self.of(key);
                let is_skipped = work.skipped >= Some(*task);
                if !is_skipped && !work.committed.contains_key(task) && !work.dead.contains(task) {
                    work.due.entry(*task).or_insert((at, &event.process));
                }
            }
            Kind::TaskStarted { key, owner, token, task } => {
                self.claiming.remove(&event.process);
                let run = Run { key, task: *task, by: (owner.as_ref(), *token), seq: None, at };
                self.of(key).start(run, &event.process, verdicts);
            }
            Kind::TaskSent { key, owner, token, seq, task } => {
                let by = (owner.as_ref(), *token);
                self.of(key).sent.insert((by, *seq), *task);
                self.announced.insert((&event.process, by, *seq), (key, *task));
            }
            Kind::WriteSent { key, owner, token, seq } => {
                let (by, seq) = ((owner.as_ref(), *token), *seq);
                let announced = self.announced.remove(&(&event.process, by, seq));
                if let Some(task) = announced.filter(|(of, _)| *of != key) {
                    self.elsewhere.insert((key, by, seq), task);
                }
            }
            Kind::WriteAccepted { key, owner, token, seq, .. } => {
                let by = (owner.as_ref(), *token);
                let here = || self.works.get(key)?.sent.get(&(by, *seq)).map(|task| (key, *task));
                let Some((key, task)) = self.elsewhere.get(&(key, by, *seq)).copied().or_else(here) else {
                    return;
                };
                let work = self.of(key);
                let process = state.holders.process(key, owner.as_ref(), *token);
                work.commit(Run { key, task, by, seq: *seq, at }, process, verdicts);
            }
            Kind::TaskEnded { key, owner, token, task, outcome } => {
                let run = Run { key, task: *task, by: (owner.as_ref(), *token), seq: None, at };
                let outcome = outcome.as_ref().map(Name::as_str);
                self.of(key).end(run, &event.process, outcome, verdicts);
            }
            Kind::WorkerStep { step, key: Some(key), .. } if step.as_str() == "asked" => {
                self.stop(&event.process);
                self.asked.entry(&event.process).or_default().insert(key, at);
                self.claiming.insert(&event.process, key);
            }
            Kind::WorkerStep { step, .. } if step.as_str() == "released" => self.stop(&event.process),
            Kind::ProcessCrashed { .. } => self.die(&event.process),
            Kind::TasksPassed { key, task, outcome } => {
                self.stop(&event.process);
                let asked = self.asked.get(&event.process).and_then(|queues| queues.get(key)).copied();
                let is_skipped = outcome.as_ref().is_some_and(|outcome| outcome.as_str() == "skipped");
                let is_claimed = self.claiming.values().any(|of| *of == key);
                let pass = Pass { last: *task, at, asked, is_skipped, is_claimed };
                self.of(key).pass(key, pass, &event.process, verdicts);
            }
            _ => {}
        }
    }

    fn finish(&mut self, _: Nanos, _: &State<'h>, verdicts: &mut Verdicts) {
        let Self { works, claiming, .. } = self;
        for (key, work) in works {
            if !claiming.values().any(|of| of == key) {
                work.finish(key, verdicts);
            }
        }
    }
}

impl<'h> Tasks<'h> {
    /// Notes that the process has died, maybe with a task that it had claimed.
    fn die(&mut self, process: &'h Name) {
        if let Some(queue) = self.claiming.remove(process) {
            self.of(queue).dropped = Some(process);
        }
        self.stop(process);
    }

    /// Notes that the process has no task any more.
    fn stop(&mut self, process: &Name) {
        self.claiming.remove(process);
        self.works.values_mut().for_each(|work| _ = work.running.remove(process));
    }

    fn of(&mut self, key: &'h Name) -> &mut Work<'h> {
        self.works.entry(key).or_default()
    }
}

/// An answer that no task up to a number is left.
#[derive(Clone, Copy)]
struct Pass {
    last: u64,
    at: Nanos,
    /// The time at which the worker had asked, if it did.
    asked: Option<Nanos>,
    /// True if the policy skips the tasks.
    is_skipped: bool,
    /// True if another worker may have claimed a task, and has not started it yet.
    is_claimed: bool,
}

/// A run of a task by the holder of a grant.
#[derive(Clone, Copy)]
struct Run<'h> {
    key: &'h Name,
    task: u64,
    by: By<'h>,
    /// The number of the write that commits it, if it is known.
    seq: Option<u64>,
    at: Nanos,
}

impl<'h> Work<'h> {
    fn start(&mut self, run: Run<'h>, process: &'h Name, verdicts: &mut Verdicts) {
        self.started.insert(run.task, process);
        self.running.insert(process, run.task);
        let is_later = |commit: &&Commit<'_>| run.by.1 > commit.by.1 || run.by == commit.by;
        let committed = self.committed.get(&run.task).filter(is_later);
        let Some((commit, acknowledged)) = committed.and_then(|commit| Some((commit, commit.acknowledged?)))
        else {
            return;
        };
        if self.convicted.insert((run.task, run.by)) {
            let detail = format!(
                "{process} (token {}) started task {} at {}, and {} (token {}) had the answer to its commit \
                 at {acknowledged}",
                run.by.1, run.task, run.at, commit.process, commit.by.1,
            );
            let processes = both(process, &commit.process);
            verdicts.convict(VerdictKind::RanTwice, run.at, run.key, &processes, detail);
        }
    }

    fn commit(&mut self, run: Run<'h>, process: Name, verdicts: &mut Verdicts) {
        let Run { task, by, seq, at, .. } = run;
        self.due.remove(&task);
        match self.committed.get(&task) {
            None => drop(self.committed.insert(task, Commit { by, seq, process, at, acknowledged: None })),
            Some(first) if first.by == by && !first.is_another_write(seq) => {}
            Some(first) => {
                if self.convicted.insert((task, by)) {
                    let detail = format!(
                        "{process} (token {}) committed task {task} at {at}, and {} (token {}) had committed \
                         it at {}",
                        by.1, first.process, first.by.1, first.at,
                    );
                    let processes = both(&process, &first.process);
                    verdicts.convict(VerdictKind::RanTwice, at, run.key, &processes, detail);
                }
            }
        }
    }

    fn end(&mut self, run: Run<'h>, process: &Name, outcome: Option<&str>, verdicts: &mut Verdicts) {
        match outcome {
            Some("done") => {
                self.commit(run, process.clone(), verdicts);
                if let Some(commit) = self.committed.get_mut(&run.task) {
                    commit.acknowledged.get_or_insert(run.at);
                }
            }
            Some("dead") => {
                self.due.remove(&run.task);
                self.dead.insert(run.task);
            }
            _ => {}
        }
    }

    /// Ends the tasks of an answer to `process`: those that were due when it asked, and that nobody runs.
    fn pass(&mut self, key: &'h Name, pass: Pass, process: &'h Name, verdicts: &mut Verdicts) {
        if pass.is_skipped {
            self.skipped = self.skipped.max(Some(pass.last));
        }
        let is_asked = |since: Nanos| pass.asked.is_none_or(|asked| since < asked);
        let of_answer = self.due.range(..=pass.last).filter(|(_, (since, _))| is_asked(*since));
        for task in of_answer.map(|(task, _)| *task).collect::<Vec<_>>() {
            if pass.is_skipped {
                self.due.remove(&task);
            } else if pass.is_claimed || self.is_run(task) {
                self.passed.insert(task, (pass, process));
            } else {
                self.lose(key, task, (pass, process), verdicts);
            }
        }
    }

    /// Judges the tasks that were passed over while a worker had them, and that no worker has any more.
    fn finish(&mut self, key: &'h Name, verdicts: &mut Verdicts) {
        for (task, pass) in std::mem::take(&mut self.passed) {
            if !self.is_run(task) {
                self.lose(key, task, pass, verdicts);
            }
        }
    }

    fn is_run(&self, task: u64) -> bool {
        self.running.values().any(|running| *running == task)
    }

    /// Convicts the processes which had to do with a task that is due, and that an answer passed over.
    fn lose(&mut self, key: &'h Name, task: u64, (pass, process): (Pass, &'h Name), verdicts: &mut Verdicts) {
        let Some((since, by)) = self.due.remove(&task) else { return };
        let Pass { last, at, .. } = pass;
        let detail = format!(
            "task {task} was due at {since} by {by}, and {process} found at {at} that none{} is left: it has no \
             commit, and no policy skipped it",
            if last == u64::MAX { String::new() } else { format!(" up to {last}") }
        );
        // The worker that had it, and did not commit it, has a part in the loss.
        let runner = self.started.get(&task).copied().or(self.dropped);
        let runner = runner.filter(|runner| *runner != process);
        let processes: Vec<_> = [Some(process), runner].into_iter().flatten().collect();
        verdicts.convict(VerdictKind::TaskLost, at, key, &processes, detail);
    }
}

/// Returns both processes, or the one that they are.
fn both<'a>(one: &'a Name, other: &'a Name) -> Vec<&'a Name> {
    if one == other { vec![one] } else { vec![one, other] }
}
