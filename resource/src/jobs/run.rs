//! A job under its lease: its parts, and the heartbeats beside them.

use std::future::Future;

use dlock::Runtime;
use dlock::queue::{Jobs, QueuedJob};
use history::emit;

use super::record::{JobGrant, JobRecord, JobRecordError, Part};
use super::{Task, Terms};
use crate::fence::WriteSeq;
use crate::worker::{Pauses, Step};

/// Extends the lease of a job every third of it. Ends if the claim is over.
pub(super) async fn heartbeats<Q: Jobs>(queue: &Q, job: &QueuedJob, terms: &Terms) {
    let runtime = queue.runtime();
    loop {
        runtime.sleep_until(runtime.now() + terms.lease / 3).await;
        // A queue that does not answer may answer the next time: until then the lease goes on, or the
        // resource decides.
        let deadline = runtime.now() + terms.lease / 3;
        if queue.extend(job, terms.lease, deadline).await == Ok(false) {
            return;
        }
    }
}

/// The reason why the parts of a job came to no end.
pub(super) enum Stop<E> {
    Work(String),
    Record(JobRecordError<E>),
}

/// A job under its lease.
pub(super) struct Run<'a, Q, T, P> {
    pub(super) queue: &'a Q,
    pub(super) record: &'a mut T,
    pub(super) pauses: &'a P,
    pub(super) terms: &'a Terms,
    pub(super) job: &'a QueuedJob,
    pub(super) grant: &'a JobGrant,
}

impl<Q: Jobs, T: JobRecord, P: Pauses> Run<'_, Q, T, P> {
    /// Works part by part, and commits each.
    pub(super) async fn parts<F>(
        mut self,
        mut progress: Option<Vec<u8>>,
        mut work: impl FnMut(Task) -> F + Send,
    ) -> Result<(), Stop<T::Error>>
    where
        F: Future<Output = Result<Part, String>> + Send,
    {
        for number in 1.. {
            let QueuedJob { id, token, attempts, ref payload, .. } = *self.job;
            let task = Task { id, token, attempts, payload: payload.clone(), progress: progress.take() };
            let part = work(task).await.map_err(Stop::Work)?;
            self.pause(Step::Worked).await;
            // The numbers begin with 1.
            let Some(seq) = WriteSeq::new(number) else { break };
            self.commit(seq, &part).await.map_err(Stop::Record)?;
            self.pause(Step::Written).await;
            match part {
                Part::Progress(committed) => progress = Some(committed),
                Part::Done(_) => return Ok(()),
            }
        }
        Err(Stop::Work("the job has more parts than numbers".to_owned()))
    }

    async fn commit(&mut self, seq: WriteSeq, part: &Part) -> Result<(), JobRecordError<T::Error>> {
        let is_last = matches!(part, Part::Done(_));
        self.emit_sent(seq, is_last);
        let deadline = self.queue.runtime().now() + self.terms.answer_timeout;
        let answer = self.record.commit(self.grant, seq, part, deadline).await;
        let outcome = match &answer {
            Ok(()) => "done",
            Err(JobRecordError::Refused(refusal)) => refusal.as_str(),
            Err(JobRecordError::Corrupt(_) | JobRecordError::Failed(_)) => "unanswered",
        };
        self.emit_answered(seq, is_last, outcome);
        answer
    }

    /// Emits that a part is about to be committed. The write goes to the resource of the job, the task is
    /// one of the queue.
    fn emit_sent(&self, seq: WriteSeq, is_last: bool) {
        let (owner, token, seq) = (self.job.owner.prefix(), self.job.token.as_u64(), seq.as_u64());
        if is_last {
            let key = self.queue.key().id_hash();
            emit!(TaskSent { key: key, owner: owner, token: token, seq: seq, task: self.job.id });
        }
        let resource = self.grant.key.id_hash();
        emit!(WriteSent { key: resource.as_str(), owner: owner, token: token, seq: seq });
    }

    fn emit_answered(&self, seq: WriteSeq, is_last: bool, outcome: &str) {
        let (owner, token, seq) = (self.job.owner.prefix(), self.job.token.as_u64(), seq.as_u64());
        let (resource, key) = (self.grant.key.id_hash(), self.queue.key().id_hash());
        let answer = if outcome == "done" { "accepted" } else { outcome };
        emit!(WriteAnswered {
            key: resource.as_str(),
            owner: owner,
            token: token,
            seq: seq,
            outcome: answer
        });
        if is_last {
            emit!(TaskEnded { key: key, owner: owner, token: token, task: self.job.id, outcome: outcome });
        }
    }

    async fn pause(&self, step: Step) {
        step.emit(&self.grant.key.id_hash());
        self.pauses.at(step).await;
    }
}
