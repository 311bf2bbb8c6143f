//! One acquisition on one Redis.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use dlock_runtime::{Instant, Runtime, probes, reached, sometimes, timeout_at};

use super::client::Client;
use super::connection::Connection;
use super::node::Sent;
use super::options::{TokenSource, Waiting};
use super::permit;
use super::queue;
use super::readers;
use super::release::{follow, release, release_by};
use super::reply::{self, Grant, Turn};
use super::requests::Requests;
use super::script::{Arg, Call, Own, Script, StoredKey};
use super::shared::{self, Counter};
use super::unfenced;
use crate::backend::{Acquisition, Answer, Claim, QueueLimit, Released, Renewal, Share};
use crate::error::BackendError;
use crate::token::FencingToken;

static ACQUIRE_BY_TIME: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("acquire_by_time.lua")));
static RENEW: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("renew.lua")).with_own(Own::CompareAndSet));

/// One attempt to hold one lease on one Redis.
pub struct RedisAcquisition<R: Runtime> {
    client: Arc<Client<R>>,
    tokens: TokenSource,
    waiting: Waiting,
    claim: Claim,
    requests: Requests,
    /// The tokens of the permits or readers beside the one that was granted.
    beside: Vec<FencingToken>,
    /// True if the server has the claim among those that wait: a writer bars readers then, and any claim has
    /// a place in a queue.
    waits: bool,
    /// The place in the server's queue at the last answer.
    place: Option<u64>,
    /// The value that the server stores for the lease, if that is more than the owner token.
    stored: Option<Box<str>>,
}

impl<R: Runtime> Acquisition for RedisAcquisition<R> {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        if let Some(limit) = self.claim.queue {
            return self.request_in_turn(limit, deadline).await;
        }
        if self.claim.permits > 1 || self.claim.share.is_some() {
            return self.request_beside(deadline).await;
        }
        if !self.claim.fenced {
            return self.request_unfenced(deadline).await;
        }
        let (grant, since) = match self.tokens {
            TokenSource::Counter => self.request_by_counter(deadline).await?,
            TokenSource::ServerTime => self.request_by_time(deadline).await?,
            TokenSource::Shared => self.request_by_shared(deadline).await?,
        };
        Ok(match grant {
            Grant::New { token } => Answer::Granted { token, since, left: self.claim.ttl },
            Grant::Known { token, left } => Answer::Granted { token, since, left },
            Grant::Taken { left, .. } => Answer::Taken { left },
        })
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        let Client { node, listener, .. } = &*self.client;
        if self.waiting == Waiting::Polled {
            node.runtime().sleep_until(deadline).await;
            return Ok(());
        }
        let ticket = self.requests.ticket(|| listener.join(&self.claim.key.freed_channel()));
        if let Some(place) = self.place {
            ticket.at(place);
        }
        listener.listen(node.runtime(), node.address(), node.info());
        // An error changes nothing: the next request is worthwhile either way.
        let called = timeout_at(node.runtime(), deadline, ticket.called()).await;
        sometimes!(node.runtime(), woken_by_release, called.is_ok());
        sometimes!(node.runtime(), retried_without_message, called.is_err());
        Ok(())
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        let Claim { key, owner, ttl, permits, share, .. } = &self.claim;
        if *permits > 1 {
            return self.renew_by(permit::renew(&self.claim).call(), deadline).await;
        }
        if *share == Some(Share::Shared) {
            return self.renew_by(readers::renew(&self.claim).call(), deadline).await;
        }
        let keys = [StoredKey::owner(key)];
        let stored = self.stored.as_deref().unwrap_or(owner.as_str());
        let args = [Arg::Text(stored), Arg::Millis(*ttl)];
        self.renew_by(Call { script: &RENEW, keys: &keys, args: &args }, deadline).await
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let Self { client, claim, requests, tokens, waiting, .. } = self;
        requests.stop_waiting();
        let (sent, value) = match requests.connection_to_follow() {
            followed if claim.queue.is_some() => {
                let parts = queue::release(claim, *waiting == Waiting::Called);
                release_by(client, followed, &parts, deadline).await
            }
            followed if claim.permits > 1 => {
                let parts = permit::release(claim, *waiting == Waiting::Called);
                release_by(client, followed, &parts, deadline).await
            }
            followed if let Some(share) = claim.share => {
                let parts = readers::release(claim, share, *waiting == Waiting::Called);
                release_by(client, followed, &parts, deadline).await
            }
            followed if claim.fenced && *tokens == TokenSource::Shared => {
                let parts = shared::release(claim, *waiting == Waiting::Called);
                release_by(client, followed, &parts, deadline).await
            }
            None => release(client, claim, deadline).await,
            Some(connection) => follow(client, connection, claim, deadline).await,
        }?;
        let is_done = reply::is_done(&value)?;
        requests.answered(&sent.connection);
        self.waits = false;
        if is_done {
            requests.released();
        }
        Ok(if is_done { Released::Done } else { Released::NotOwner })
    }

    fn set_ttl(&mut self, ttl: Duration) {
        self.claim.ttl = ttl;
    }

    fn beside(&self) -> Vec<FencingToken> {
        self.beside.clone()
    }

    fn needs_cleanup(&self) -> bool {
        self.requests.are_open() || self.waits
    }
}

impl<R: Runtime> RedisAcquisition<R> {
    pub(super) fn new(client: &Arc<Client<R>>, tokens: TokenSource, waiting: Waiting, claim: Claim) -> Self {
        let (client, requests) = (Arc::clone(client), Requests::default());
        let (beside, waits, place, stored) = (Vec::new(), false, None, None);
        Self { client, tokens, waiting, claim, requests, beside, waits, place, stored }
    }

    /// Returns whether the server is known to have granted a lease that has not been released since.
    pub(crate) fn is_granted(&self) -> bool {
        self.requests.is_granted()
    }

    /// Notes that the server has no lease of this owner.
    pub(crate) fn gone(&mut self) {
        self.requests.gone();
    }

    /// Requests the lease with a token from the counter, together with other acquires if there are many.
    async fn request_by_counter(&mut self, deadline: Instant) -> Result<(Grant, Instant), BackendError> {
        let Self { client, claim, requests, .. } = self;
        let (Client { node, acquires, .. }, claim) = (&**client, &*claim);
        sometimes!(node.runtime(), asked_again_unanswered, requests.are_open());
        let before_send = |sent: &Sent| requests.sending(sent, claim.ttl);
        let send = |connection| async move { acquires.execute(node.runtime(), claim, &connection).await };
        let (sent, value) = node.exchange(None, deadline, before_send, send).await?;
        self.note(&sent, reply::grant(&value))
    }

    /// Requests one of several permits, or a share in a lock for readers and a writer.
    async fn request_beside(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let Self { client, claim, requests, tokens, .. } = self;
        sometimes!(client.node.runtime(), asked_again_unanswered, requests.are_open());
        let before_send = |sent: &Sent| requests.sending(sent, claim.ttl);
        let parts = match claim.share {
            None => permit::acquire(claim, *tokens),
            Some(Share::Shared) => readers::acquire_shared(claim, *tokens),
            Some(Share::Exclusive { bars }) => readers::acquire_alone(claim, bars, *tokens),
        };
        let (sent, value) = client.node.eval(parts.call(), deadline, before_send).await?;
        let (grant, beside) = match reply::grant_beside(&value) {
            Ok((grant, beside)) => (Ok(grant), beside),
            Err(error) => (Err(error), Vec::new()),
        };
        if claim.is_shared() && matches!(grant, Ok(Grant::New { .. } | Grant::Known { .. })) {
            // Passes a wake-up on to the next waiter of this client: it may be a reader, too.
            requests.stop_waiting();
        }
        let (grant, since) = self.note(&sent, grant)?;
        self.beside = beside;
        let waits = matches!(grant, Grant::Taken { .. });
        self.waits = waits && matches!(self.claim.share, Some(Share::Exclusive { .. }));
        Ok(match grant {
            Grant::New { token } => Answer::Granted { token, since, left: self.claim.ttl },
            Grant::Known { token, left } => Answer::Granted { token, since, left },
            Grant::Taken { left, .. } => Answer::Taken { left },
        })
    }

    /// Requests the lease or a permit, or a place among those that wait for it.
    async fn request_in_turn(
        &mut self,
        limit: QueueLimit,
        deadline: Instant,
    ) -> Result<Answer, BackendError> {
        let Self { client, claim, requests, tokens, waiting, .. } = self;
        sometimes!(client.node.runtime(), asked_again_unanswered, requests.are_open());
        let before_send = |sent: &Sent| requests.sending(sent, claim.ttl);
        let parts = queue::acquire(claim, limit, *tokens, *waiting == Waiting::Called);
        let (sent, value) = client.node.eval(parts.call(), deadline, before_send).await?;
        let (grant, refusal) = match reply::turn(&value) {
            Ok(Turn::Granted(grant, beside)) => {
                self.beside = beside;
                (Ok(grant), None)
            }
            Ok(Turn::Placed { position, left }) => {
                sometimes!(
                    self.client.node.runtime(),
                    place_given_away,
                    self.place.is_some_and(|place| place != position)
                );
                (self.place, self.waits) = (Some(position), true);
                (Ok(Grant::Taken { left, by: None }), Some(Answer::Placed { position, left }))
            }
            Ok(Turn::Full { waiting }) => {
                reached!(self.client.node.runtime(), queue_was_full);
                (Ok(Grant::Taken { left: None, by: None }), Some(Answer::Full { waiting }))
            }
            Err(error) => (Err(error), None),
        };
        let (grant, since) = self.note(&sent, grant)?;
        if !matches!(refusal, Some(Answer::Placed { .. })) {
            (self.place, self.waits) = (None, false);
        }
        Ok(match grant {
            Grant::New { token } => Answer::Granted { token, since, left: self.claim.ttl },
            Grant::Known { token, left } => Answer::Granted { token, since, left },
            Grant::Taken { left, .. } => refusal.unwrap_or(Answer::Taken { left }),
        })
    }

    /// Requests the lease without a token.
    async fn request_unfenced(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let Self { client, claim, requests, .. } = self;
        let (node, claim) = (&client.node, &*claim);
        sometimes!(node.runtime(), asked_again_unanswered, requests.are_open());
        let before_send = |sent: &Sent| requests.sending(sent, claim.ttl);
        let send = |connection: Arc<Connection>| async move { unfenced::request(claim, &connection).await };
        let (sent, value) = node.exchange(None, deadline, before_send, send).await?;
        let (grant, since) = self.note(&sent, reply::unfenced(&value))?;
        Ok(match grant {
            Grant::New { .. } => Answer::Unfenced { since, left: self.claim.ttl },
            Grant::Known { left, .. } => Answer::Unfenced { since, left },
            Grant::Taken { left, .. } => Answer::Taken { left },
        })
    }

    async fn request_by_time(&mut self, deadline: Instant) -> Result<(Grant, Instant), BackendError> {
        let Claim { key, owner, ttl, .. } = self.claim.clone();
        let keys = [StoredKey::owner(&key), StoredKey::fence(&key)];
        let args = [Arg::Text(owner.as_str()), Arg::Millis(ttl)];
        self.request_by(Call { script: &ACQUIRE_BY_TIME, keys: &keys, args: &args }, deadline).await
    }

    async fn request_by_shared(&mut self, deadline: Instant) -> Result<(Grant, Instant), BackendError> {
        let claim = self.claim.clone();
        let counter = Counter::of(&claim.key);
        let granted = self.request_by(counter.acquire(&claim).call(), deadline).await?;
        if let Grant::New { token } | Grant::Known { token, .. } = &granted.0 {
            self.stored = Some(shared::stored(&claim, *token).into());
        }
        Ok(granted)
    }

    /// Requests the lease by the script of `call`. Returns as [`RedisAcquisition::note`].
    pub(crate) async fn request_by(
        &mut self,
        call: Call<'_>,
        deadline: Instant,
    ) -> Result<(Grant, Instant), BackendError> {
        let Self { client, claim, requests, .. } = self;
        let before_send = |sent: &Sent| requests.sending(sent, claim.ttl);
        let (sent, value) = client.node.eval(call, deadline, before_send).await?;
        self.note(&sent, reply::grant(&value))
    }

    /// Notes the reply to `sent`. Returns the grant with the time from which it counts: a reading of the
    /// clock from before the granted request was sent.
    fn note<T>(
        &mut self,
        sent: &Sent,
        grant: Result<Grant<T>, BackendError>,
    ) -> Result<(Grant<T>, Instant), BackendError> {
        let requests = &mut self.requests;
        let first_sent = requests.first_sent().unwrap_or(sent.at);
        let grant = match grant {
            // A script that fails may have locked before it did: the request stays open.
            Err(error) if !error.is_passing() => return Err(error),
            grant => grant,
        };
        requests.answered(&sent.connection);
        let (mut grant, mut since) = (grant?, sent.at);
        match &mut grant {
            Grant::New { .. } => requests.granted(),
            Grant::Known { left, .. } => {
                reached!(self.client.node.runtime(), reply_lost_after_grant);
                requests.recognised();
                since = first_sent;
                *left += sent.at.saturating_since(since);
            }
            Grant::Taken { .. } => requests.refused(),
        }
        Ok((grant, since))
    }

    /// Renews the lease by the script of `call`.
    pub(crate) async fn renew_by(&self, call: Call<'_>, deadline: Instant) -> Result<Renewal, BackendError> {
        let (sent, value) = self.client.node.eval(call, deadline, |_| ()).await?;
        Ok(if reply::is_done(&value)? {
            Renewal::Extended { since: sent.at, left: self.claim.ttl }
        } else {
            Renewal::NotOwner
        })
    }
}

probes! {
    /// A request met the lease of the owner's unanswered one: the reply was lost after the grant.
    reached reply_lost_after_grant;
    /// A lease was requested while an earlier request of the same owner was unanswered.
    sometimes asked_again_unanswered;
    /// A waiter was woken by the message of a release.
    sometimes woken_by_release;
    /// A waiter heard of no release, and asked again after its backoff.
    sometimes retried_without_message;
    /// A claim found as many waiters ahead as may be there, and is refused.
    reached queue_was_full;
    /// A waiter did not ask for so long that the server gave its place away, and it waits at another one.
    sometimes place_given_away;
}
