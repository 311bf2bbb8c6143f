//! One node's part in each call: futures that own what they need, since they may outlive the call.

use super::quorum::{Given, Vote};
use super::trail::{Memory, Sent};
use crate::backend::{Acquisition, Answer, Backend, Claim, Released, Renewal};
use crate::error::BackendError;
use crate::redis::{Redis, Task, TokenSource};
use crate::runtime::{Instant, Runtime};
use crate::token::FencingToken;

/// One node, asked for one claim.
pub(super) struct Node<R: Runtime> {
    pub(super) number: usize,
    pub(super) redis: Redis<R>,
    pub(super) claim: Claim,
    pub(super) memory: Memory<R>,
    /// When the node is given up.
    pub(super) patience: Instant,
}

/// What is asked of a node in a round.
#[derive(Clone, Copy)]
pub(super) enum Question {
    Vote(TokenSource),
    Raise(FencingToken),
}

/// A node's answer in a round.
pub(super) enum Reply {
    Vote(Result<Vote, BackendError>),
    Raise(Result<bool, BackendError>),
}

impl<R: Runtime> Node<R> {
    /// Asks in a round; the node's number comes with the answer.
    pub(super) async fn ask(self, question: Question) -> (usize, Reply) {
        let reply = match question {
            Question::Vote(tokens) => Reply::Vote(self.vote(tokens).await),
            // No memory: what is late changes nothing once the vote has ended.
            Question::Raise(token) => Reply::Raise(self.redis.raise(&self.claim, token, self.patience).await),
        };
        (self.number, reply)
    }

    /// Whether the vote was ours, and lives for its full TTL again.
    pub(super) async fn renew(self) -> Result<bool, BackendError> {
        let mut sent = self.turn().await?;
        match sent.vote.renew(self.patience).await? {
            Renewal::Extended { .. } => Ok(true),
            Renewal::NotOwner => Ok(false),
        }
    }

    /// Whether the vote was ours, and has ended. A node whose vote is known to have ended is not asked again; one whose
    /// vote was never asked for need not be asked at all.
    pub(super) async fn release(self) -> Result<bool, BackendError> {
        let mut sent = self.turn().await?;
        if sent.is_open() || !(sent.asked || sent.released.is_some()) {
            let released = sent.vote.release(self.patience).await?;
            sent.vote.gone();
            if sent.released != Some(Released::Done) {
                sent.released = Some(released);
            }
        }
        Ok(sent.released == Some(Released::Done))
    }

    async fn vote(&self, tokens: TokenSource) -> Result<Vote, BackendError> {
        let mut sent = self.turn().await?;
        sent.asked = true;
        sent.released = None;
        let asked = sent.vote.ask(Task::Vote(tokens), self.patience).await?;
        Ok(match asked.answer {
            Answer::Granted { token, since, left } => {
                Vote::Given(Given { lowest: token, until: since + left })
            }
            Answer::Held { left } => Vote::Held { left, by: asked.holder },
            // Redis keeps no queue.
            Answer::Queued { .. } => Vote::Held { left: None, by: None },
        })
    }

    async fn turn(&self) -> Result<tokio::sync::OwnedMutexGuard<Sent<R>>, BackendError> {
        let sent = self.memory.turn(self.redis.runtime(), self.patience).await;
        sent.ok_or(BackendError::NoAnswer)
    }
}
