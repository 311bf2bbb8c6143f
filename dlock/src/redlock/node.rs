//! One node's part in each call: futures that own their data, since they may outlive the call.

use dlock_runtime::{Instant, Runtime};

use super::memory::{Memory, Sent};
use super::quorum::{Given, Vote};
use super::scripts::{RAISE, VOTE};
use crate::backend::{Acquisition, Backend, Claim, Released, Renewal};
use crate::error::BackendError;
use crate::redis::{Arg, Call, Grant, Redis, StoredKey, TokenSource};
use crate::token::FencingToken;

/// A request to one node for one claim.
pub(super) struct Node<R: Runtime> {
    pub(super) number: usize,
    pub(super) redis: Redis<R>,
    pub(super) claim: Claim,
    pub(super) memory: Memory<R>,
    /// The deadline of the request.
    pub(super) deadline: Instant,
}

/// A request to a node in a round.
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
    pub(super) fn runtime(&self) -> &R {
        self.redis.runtime()
    }

    /// Asks in a round; the node comes with the answer.
    pub(super) async fn ask(self, question: Question) -> (Self, Reply) {
        let reply = match question {
            Question::Vote(tokens) => Reply::Vote(self.vote(tokens).await),
            Question::Raise(token) => Reply::Raise(self.raise(token).await),
        };
        (self, reply)
    }

    /// Renews the vote for its full TTL; returns false if it was not ours.
    pub(super) async fn renew(self) -> Result<bool, BackendError> {
        let mut sent = self.turn().await?;
        sent.vote.set_ttl(self.claim.ttl);
        match sent.vote.renew(self.deadline).await? {
            Renewal::Extended { .. } => Ok(true),
            Renewal::NotOwner => Ok(false),
        }
    }

    /// Ends the vote; returns false if it was not ours. Sends nothing to a node whose vote is known to have
    /// ended, but does to one whose vote was never requested.
    pub(super) async fn release(self) -> Result<bool, BackendError> {
        let mut sent = self.turn().await?;
        if sent.is_open() || !(sent.asked || sent.released.is_some()) {
            let released = sent.vote.release(self.deadline).await?;
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
        let Claim { key, owner, ttl, .. } = &self.claim;
        let keys = [StoredKey::owner(key), StoredKey::fence(key)];
        let args = [Arg::Text(owner.as_str()), Arg::Millis(*ttl), Arg::Text("time")];
        let args = match tokens {
            // Redlock refuses shared counters in its options.
            TokenSource::Counter | TokenSource::Shared => &args[..2],
            TokenSource::ServerTime => &args[..],
        };
        let call = Call { script: &VOTE, keys: &keys, args };
        let (grant, since) = sent.vote.request_by(call, self.deadline).await?;
        let given = |lowest, left| Vote::Given(Given { lowest, until: since + left });
        Ok(match grant {
            Grant::New { token } => given(token, *ttl),
            Grant::Known { token, left } => given(token, left),
            Grant::Taken { left, by } => Vote::Taken { left, by },
        })
    }

    /// Raises the node's counter to `token`, if it is lower and the vote is still ours; returns whether it
    /// did. The request is not remembered: it has no effect once the vote has ended.
    async fn raise(&self, token: FencingToken) -> Result<bool, BackendError> {
        let Claim { key, owner, .. } = &self.claim;
        let keys = [StoredKey::owner(key), StoredKey::fence(key)];
        let args = [Arg::Text(owner.as_str()), Arg::Number(token.as_u64())];
        self.redis.eval(Call { script: &RAISE, keys: &keys, args: &args }, self.deadline).await
    }

    async fn turn(&self) -> Result<tokio::sync::OwnedMutexGuard<Sent<R>>, BackendError> {
        let sent = self.memory.turn(self.runtime(), self.deadline).await;
        sent.ok_or(BackendError::NoAnswer)
    }
}
