//! A claim of a job, and its events.

use dlock::{LockKey, Owner};
use history::emit;

use crate::KeyError;
use crate::fence::{Job, WriteSeq};
use crate::jobs::{Task, job_key};

/// A claimed job.
pub(super) struct Claim {
    pub(super) job: Job,
    pub(super) owner: Owner,
    /// The names of the queue and of the job in histories: a write goes to the job, the task is one of the
    /// queue.
    queue: String,
    pub(super) resource: String,
}

impl Claim {
    pub(super) fn new(key: &LockKey, job: Job, owner: Owner) -> Result<Self, KeyError> {
        let resource = job_key(key, job.id)?.id_hash();
        Ok(Self { job, owner, queue: key.id_hash().to_owned(), resource })
    }

    /// Returns the job as its work sees it, with this progress.
    pub(super) fn task(&self, progress: Option<Vec<u8>>) -> Task {
        let Job { id, token, attempts, ref payload, .. } = self.job;
        Task { id, token, attempts, payload: super::bytes_of(payload), progress }
    }

    pub(super) fn emit_started(&self) {
        let (key, owner, token) = (self.queue.as_str(), self.owner.prefix(), self.job.token.as_u64());
        emit!(TaskStarted { key: key, owner: owner, token: token, task: self.job.id });
    }

    /// Emits that a part is about to be committed.
    pub(super) fn emit_sent(&self, seq: WriteSeq, is_last: bool) {
        let (owner, token, seq) = (self.owner.prefix(), self.job.token.as_u64(), seq.as_u64());
        if is_last {
            let key = self.queue.as_str();
            emit!(TaskSent { key: key, owner: owner, token: token, seq: seq, task: self.job.id });
        }
        emit!(WriteSent { key: self.resource.as_str(), owner: owner, token: token, seq: seq });
    }

    /// Emits the answer to the commit of a part.
    pub(super) fn emit_answered(&self, seq: WriteSeq, is_last: bool, outcome: &str) {
        let (owner, token, seq) = (self.owner.prefix(), self.job.token.as_u64(), seq.as_u64());
        let answer = if outcome == "done" { "accepted" } else { outcome };
        let resource = self.resource.as_str();
        emit!(WriteAnswered { key: resource, owner: owner, token: token, seq: seq, outcome: answer });
        if is_last {
            self.emit_ended(outcome);
        }
    }

    pub(super) fn emit_ended(&self, outcome: &str) {
        let (key, owner, token) = (self.queue.as_str(), self.owner.prefix(), self.job.token.as_u64());
        emit!(TaskEnded { key: key, owner: owner, token: token, task: self.job.id, outcome: outcome });
    }
}
