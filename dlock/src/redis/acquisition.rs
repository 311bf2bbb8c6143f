//! One acquisition on one Redis.

use std::sync::{Arc, LazyLock};

use dlock_runtime::{Instant, Runtime, probes, reached, sometimes, timeout_at};

use super::batch::Batcher;
use super::listener::Listener;
use super::node::{self, Node};
use super::options::{TokenSource, Waiting};
use super::reply::Grant;
use super::requests::Requests;
use super::script::{Arg, Call, Script, StoredKey};
use crate::backend::{Acquisition, Answer, Claim, Released, Renewal};
use crate::error::BackendError;

static ACQUIRE_BY_TIME: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("acquire_by_time.lua")));
static RENEW: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("renew.lua")));
static RELEASE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("release.lua")));

/// The state that all acquisitions of one client share.
pub(crate) struct Client<R> {
    pub(super) node: Node<R>,
    pub(super) batcher: Arc<Batcher>,
    pub(super) listener: Listener,
}

/// One attempt to hold one lease on one Redis.
pub struct RedisAcquisition<R: Runtime> {
    client: Arc<Client<R>>,
    tokens: TokenSource,
    waiting: Waiting,
    claim: Claim,
    requests: Requests,
}

/// The answer to a request for a lease.
pub(crate) struct Granting {
    pub(crate) answer: Answer,
    /// The other owner that holds the lease, if the script returns it.
    pub(crate) holder: Option<Box<str>>,
}

impl<R: Runtime> RedisAcquisition<R> {
    pub(super) fn new(client: &Arc<Client<R>>, tokens: TokenSource, waiting: Waiting, claim: Claim) -> Self {
        Self { client: Arc::clone(client), tokens, waiting, claim, requests: Requests::default() }
    }

    /// Requests the lease by the script of `call`.
    pub(crate) async fn grant(
        &mut self,
        call: Call<'_>,
        deadline: Instant,
    ) -> Result<Granting, BackendError> {
        let Self { client, claim, requests, .. } = self;
        let before_send = |connection: &_, now| requests.sending(connection, now, claim.ttl);
        let reply = client.node.eval(call, deadline, before_send).await?;
        self.granted(&reply)
    }

    /// Returns whether the server is known to have granted a lease that has not been ended since.
    pub(crate) fn is_granted(&self) -> bool {
        self.requests.is_granted()
    }

    /// Notes that the server holds no lease of this owner.
    pub(crate) fn gone(&mut self) {
        self.requests.gone();
    }

    /// Requests the lease with a token from the counter, together with other acquires if there are many.
    async fn grant_by_counter(&mut self, deadline: Instant) -> Result<Granting, BackendError> {
        let Self { client, claim, requests, .. } = self;
        sometimes!(client.node.runtime(), asked_again_unanswered, requests.are_open());
        let before_send = |connection: &_, now| requests.sending(connection, now, claim.ttl);
        let Client { node, batcher, .. } = &**client;
        let claim = &*claim;
        let send = |connection| async move { batcher.acquire(node.runtime(), claim, &connection).await };
        let reply = node.exchange(None, deadline, before_send, send).await?;
        self.granted(&reply)
    }

    async fn grant_by_time(&mut self, deadline: Instant) -> Result<Granting, BackendError> {
        let Claim { key, owner, ttl } = self.claim.clone();
        let keys = [StoredKey::owner(&key), StoredKey::fence(&key)];
        let args = [Arg::Text(owner.as_str()), Arg::Millis(ttl)];
        self.grant(Call { script: &ACQUIRE_BY_TIME, keys: &keys, args: &args }, deadline).await
    }

    fn granted(&mut self, reply: &node::Reply) -> Result<Granting, BackendError> {
        let requests = &mut self.requests;
        let first_sent = requests.first_sent().unwrap_or(reply.sent_at);
        let grant = match reply.grant() {
            // A script that fails may have locked before it did: the request stays open.
            Err(error) if !error.is_passing() => return Err(error),
            grant => grant,
        };
        requests.answered(&reply.connection);
        let (answer, holder) = match grant? {
            Grant::New { token } => {
                requests.granted();
                (Answer::Granted { token, since: reply.sent_at, left: self.claim.ttl }, None)
            }
            Grant::Known { token, left } => {
                reached!(self.client.node.runtime(), reply_lost_after_grant);
                requests.recognised();
                let left = left + reply.sent_at.saturating_since(first_sent);
                (Answer::Granted { token, since: first_sent, left }, None)
            }
            Grant::Held { left, by } => {
                requests.refused();
                (Answer::Held { left }, by)
            }
        };
        Ok(Granting { answer, holder })
    }

    async fn send_release(&self, deadline: Instant) -> Result<node::Reply, BackendError> {
        let Client { node, batcher, .. } = &*self.client;
        let key = &self.claim.key;
        let keys = [StoredKey::owner(key)];
        let args = [Arg::Text(self.claim.owner.as_str()), Arg::Stored(StoredKey::freed(key))];
        let args = if self.waiting == Waiting::Called { &args[..] } else { &args[..1] };
        let call = Call { script: &RELEASE, keys: &keys, args };
        let Some(followed) = self.requests.connection_to_follow() else {
            return node.eval(call, deadline, |_, _| ()).await;
        };
        reached!(node.runtime(), release_follows_request);
        let send = |connection: Arc<_>| async move {
            // It follows a request that may be about to be sent.
            batcher.handed_over().await;
            node::eval_text(&connection, call).await
        };
        let reply = node.exchange(Some(Arc::clone(followed)), deadline, |_, _| (), send).await;
        sometimes!(node.runtime(), followed_connection_failed, reply.is_err());
        if reply.is_err() {
            // The next try uses another connection.
            followed.give_up();
        }
        reply
    }
}

impl<R: Runtime> Acquisition for RedisAcquisition<R> {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let granting = match self.tokens {
            TokenSource::Counter => self.grant_by_counter(deadline).await,
            TokenSource::ServerTime => self.grant_by_time(deadline).await,
        };
        Ok(granting?.answer)
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        let Client { node, listener, .. } = &*self.client;
        if self.waiting == Waiting::Polled {
            node.runtime().sleep_until(deadline).await;
            return Ok(());
        }
        let ticket = self.requests.ticket(|| listener.join(&self.claim.key.freed_channel()));
        listener.listen(node.runtime(), node.address(), node.info());
        // An error changes nothing: the next request is worthwhile either way.
        let called = timeout_at(node.runtime(), deadline, ticket.called()).await;
        sometimes!(node.runtime(), woken_by_release, called.is_ok());
        sometimes!(node.runtime(), retried_without_message, called.is_err());
        Ok(())
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        let Claim { key, owner, ttl } = &self.claim;
        let keys = [StoredKey::owner(key)];
        let args = [Arg::Text(owner.as_str()), Arg::Millis(*ttl)];
        let call = Call { script: &RENEW, keys: &keys, args: &args };
        let reply = self.client.node.eval(call, deadline, |_, _| ()).await?;
        Ok(if reply.is_done()? {
            Renewal::Extended { since: reply.sent_at, left: *ttl }
        } else {
            Renewal::NotOwner
        })
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        self.requests.stop_waiting();
        let reply = self.send_release(deadline).await?;
        let is_done = reply.is_done()?;
        self.requests.answered(&reply.connection);
        if is_done {
            self.requests.ended();
        }
        Ok(if is_done { Released::Done } else { Released::NotOwner })
    }

    fn may_be_held(&self) -> bool {
        self.requests.are_open()
    }
}

probes! {
    /// A request met the lease of the owner's unanswered one: the reply was lost after the grant.
    reached reply_lost_after_grant;
    /// A lease was requested while an earlier request of the same owner was unanswered.
    sometimes asked_again_unanswered;
    /// A release was sent on the connection of an unanswered request, so that it follows it.
    reached release_follows_request;
    /// The connection on which a release followed a request failed: the next release may overtake it.
    sometimes followed_connection_failed;
    /// A waiter was woken by the message of a release.
    sometimes woken_by_release;
    /// A waiter heard of no release, and asked again after its backoff.
    sometimes retried_without_message;
}
