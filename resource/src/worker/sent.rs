//! A write of a section, for the log.

use dlock::{FencingToken, LockKey, Owner};
use history::emit;

use super::Ending;
use crate::client::{ClientError, PutAnswer};
use crate::fence::{Refusal, WriteSeq};

/// Returns the ending of the section after an answer, and the value of the field `outcome`.
pub(super) fn judge(answer: &Result<PutAnswer, ClientError>) -> (Ending, &'static str) {
    match answer {
        Ok(PutAnswer::Accepted { .. }) => (Ending::Done, "accepted"),
        Ok(PutAnswer::Refused(refusal @ Refusal::Jump { .. })) => (Ending::Jumped, refusal.as_str()),
        Ok(PutAnswer::Refused(refusal)) => (Ending::Refused, refusal.as_str()),
        Err(error) if error.is_timeout() => (Ending::Unanswered, "timeout"),
        Err(_) => (Ending::Unanswered, "error"),
    }
}

/// A write, for the log.
pub(super) struct Sent<'a> {
    pub(super) key: &'a LockKey,
    pub(super) owner: &'a Owner,
    pub(super) token: FencingToken,
    pub(super) seq: Option<WriteSeq>,
}

impl Sent<'_> {
    pub(super) fn emit_sent(&self) {
        emit!(WriteSent {
            key: self.key.id_hash(),
            owner: self.owner.prefix(),
            token: self.token.as_u64(),
            seq: self.seq.map(WriteSeq::as_u64),
        });
    }

    pub(super) fn emit_answered(&self, outcome: &str) {
        emit!(WriteAnswered {
            key: self.key.id_hash(),
            owner: self.owner.prefix(),
            token: self.token.as_u64(),
            seq: self.seq.map(WriteSeq::as_u64),
            outcome: outcome,
        });
    }
}
