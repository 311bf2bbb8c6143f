//! Locks on one Redis server.
//!
//! Each operation is one script and one round trip, over one connection that all clones share: `connection.rs` opens
//! and replaces it, `script.rs` writes the commands, `batch.rs` lets many acquires at the same time share calls, `trail.rs` remembers what was not answered, `reply.rs` reads the
//! answers, and the `.lua` files are what the server runs. `waiters.rs` and `listener.rs` wake whoever waits for a lock when
//! it is given up.
//!
//! What one server can give: no two unexpired leases on a key, and a token above all earlier ones, for as long as the
//! server keeps what it wrote. A crash without fsync, or a failover to a replica that lags, may lose both;
//! [`TokenSource::ServerTime`] keeps the tokens in order all the same.

mod batch;
mod connection;
mod listener;
mod reply;
mod script;
mod trail;
mod waiters;

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

/// How to log in and which database to use; the rest of a connection is this crate's.
pub use redis::RedisConnectionInfo;
use redis::RedisError;

use self::connection::{Connection, Link};
use self::listener::Listener;
use self::reply::{Grant, Reply};
use self::script::Scripts;
pub(crate) use self::script::Task;
pub use self::script::TokenSource;
use self::trail::Trail;
use crate::backend::{Acquisition, Answer, Backend, Claim, Released, Renewal};
use crate::error::BackendError;
use crate::runtime::{Instant, Runtime, timeout_at};
use crate::token::FencingToken;

/// A Redis server. Clones share one connection, which is opened by the first call and replaced after a failure.
pub struct Redis<R: Runtime> {
    inner: Arc<Inner<R>>,
    tokens: TokenSource,
    waiting: Waiting,
}

/// How one who waits for a lock learns that it was given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// A release publishes it, and the first of each client who waits asks at once. All ask from time to time besides, since a
    /// lease may expire, and a message get lost. Needs Redis 6 or later, and a second connection while somebody waits;
    /// where either is not to be had it is as [`Waiting::Polled`].
    #[default]
    Called,
    /// It asks from time to time, by [`Options::backoff`](crate::Options::backoff), and a release tells nobody.
    Polled,
}

struct Inner<R> {
    link: Link<R>,
    listener: Listener,
    scripts: &'static Scripts,
}

/// What a server said to one who asked for a lease.
pub(crate) struct Asked {
    pub(crate) answer: Answer,
    /// Whose the lease is, if it is another's and the script told.
    pub(crate) holder: Option<Box<str>>,
}

impl<R: Runtime> Redis<R> {
    /// The server at `address`, written `host:port`. Nothing is sent yet.
    pub fn new(runtime: R, address: &str) -> Self {
        Self::with_info(runtime, address, RedisConnectionInfo::default())
    }

    /// The same with a user, a password or a database.
    pub fn with_info(runtime: R, address: &str, info: RedisConnectionInfo) -> Self {
        let link = Link::new(runtime, address, info);
        let inner = Inner { link, listener: Listener::new(), scripts: Scripts::shared() };
        Self { inner: Arc::new(inner), tokens: TokenSource::default(), waiting: Waiting::default() }
    }

    /// The same server, with tokens from `tokens`. All who lock the same keys should agree on it.
    #[must_use]
    pub fn with_tokens(mut self, tokens: TokenSource) -> Self {
        self.tokens = tokens;
        self
    }

    /// The same server, where those who wait learn of a release by `waiting`. All who lock the same keys should agree on it.
    #[must_use]
    pub fn with_waiting(mut self, waiting: Waiting) -> Self {
        self.waiting = waiting;
        self
    }

    /// Asks for the lease of `claim` by the script of `task`.
    async fn ask(
        &self,
        task: Task,
        claim: &Claim,
        trail: &mut Trail,
        patience: Instant,
    ) -> Result<Asked, BackendError> {
        let sending = |by: &_, at| trail.sending(by, at, claim.ttl);
        let reply = self.run(task, claim, None, patience, sending).await?;
        let first_sent = trail.first_sent().unwrap_or(reply.at);
        let grant = match reply.grant() {
            // A script that fails may have locked before it did: the request stays open.
            Err(error) if !error.is_passing() => return Err(error),
            grant => grant,
        };
        trail.answered(&reply.by);
        let (answer, holder) = match grant? {
            Grant::New { token } => {
                trail.granted();
                (Answer::Granted { token, since: reply.at, left: claim.ttl }, None)
            }
            Grant::Known { token, left } => {
                trail.recognised();
                let left = left + reply.at.saturating_since(first_sent);
                (Answer::Granted { token, since: first_sent, left }, None)
            }
            Grant::Held { left, by } => {
                trail.refused();
                (Answer::Held { left }, by)
            }
        };
        Ok(Asked { answer, holder })
    }

    /// Raises the counter to `token`, if it is lower and the owner of `claim` holds the lease; whether it did. What is not
    /// answered needs no memory: it takes effect only while the lease lives.
    pub(crate) async fn raise(
        &self,
        claim: &Claim,
        token: FencingToken,
        patience: Instant,
    ) -> Result<bool, BackendError> {
        self.run(Task::Raise(token), claim, None, patience, |_, _| ()).await?.owned()
    }

    /// Has the server do `task`, by `way` or on the shared connection; `sending` is told before anything is sent. A
    /// connection that fails, or stays silent until `patience` ends, takes no further requests.
    async fn run(
        &self,
        task: Task,
        claim: &Claim,
        way: Option<Arc<Connection>>,
        patience: Instant,
        sending: impl FnOnce(&Arc<Connection>, Instant),
    ) -> Result<Reply, BackendError> {
        let Inner { link, scripts, .. } = &*self.inner;
        // It owes an answer already.
        let is_silent = way.is_some();
        let mut used = way;
        let result = {
            // Pinned where it is made: to move it costs as much as to send the command.
            let exchange = pin!(async {
                let by = match &used {
                    Some(way) => Arc::clone(way),
                    None => Arc::clone(used.insert(link.connection().await?)),
                };
                let at = link.runtime().now();
                sending(&by, at);
                let value = match task {
                    _ if is_silent => {
                        // It follows a request that may be about to be sent.
                        by.batches().handed_over().await;
                        scripts.run_text(task, claim, &by).await
                    }
                    Task::Acquire(TokenSource::Counter) => scripts.acquire(link.runtime(), claim, &by).await,
                    _ => scripts.run(task, claim, &by).await,
                };
                let value = value.map_err(disconnected)?;
                Ok(Reply { by, at, value })
            });
            timeout_at(link.runtime(), patience, exchange).await
        };
        let result = result.unwrap_or_else(|_| Err(link.silent(used.is_some())));
        if result.as_ref().map_or(true, Reply::is_read_only)
            && let Some(used) = &used
        {
            link.retire(used);
        }
        result
    }
}

impl<R: Runtime> Backend for Redis<R> {
    type Runtime = R;
    type Acquisition = RedisAcquisition<R>;

    fn runtime(&self) -> &R {
        self.inner.link.runtime()
    }

    fn open(&self, claim: Claim) -> RedisAcquisition<R> {
        RedisAcquisition { redis: self.clone(), claim, trail: Trail::default() }
    }
}

/// One attempt to hold one lease on one Redis.
pub struct RedisAcquisition<R: Runtime> {
    redis: Redis<R>,
    claim: Claim,
    trail: Trail,
}

impl<R: Runtime> RedisAcquisition<R> {
    /// Requests the lease by the script of `task`.
    pub(crate) async fn ask(&mut self, task: Task, deadline: Instant) -> Result<Asked, BackendError> {
        self.redis.ask(task, &self.claim, &mut self.trail, deadline).await
    }

    /// Whether the server is known to have granted a lease that has not been ended since.
    pub(crate) fn is_granted(&self) -> bool {
        self.trail.is_granted()
    }

    /// Notes that the server holds no lease of this owner.
    pub(crate) fn gone(&mut self) {
        self.trail.gone();
    }
}

impl<R: Runtime> Acquisition for RedisAcquisition<R> {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let task = Task::Acquire(self.redis.tokens);
        Ok(self.ask(task, deadline).await?.answer)
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        let Inner { link, listener, .. } = &*self.redis.inner;
        if self.redis.waiting == Waiting::Polled {
            link.runtime().sleep_until(deadline).await;
            return Ok(());
        }
        let ticket = self.trail.waits(|| listener.join(&self.claim.key.freed_channel()));
        listener.listen(link.runtime(), link.address(), link.info());
        // The next request is worthwhile either way.
        let _ = timeout_at(link.runtime(), deadline, ticket.called()).await;
        Ok(())
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        let reply = self.redis.run(Task::Renew, &self.claim, None, deadline, |_, _| ()).await?;
        Ok(if reply.owned()? {
            Renewal::Extended { since: reply.at, left: self.claim.ttl }
        } else {
            Renewal::NotOwner
        })
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let Self { redis, claim, trail } = self;
        // Leaves the wait queue, so that a wake-up goes to the next waiter.
        trail.stop_waiting();
        let way = trail.last_way().cloned();
        let followed = way.clone();
        let task = Task::Release { calls: redis.waiting == Waiting::Called };
        let reply = match redis.run(task, claim, way, deadline, |_, _| ()).await {
            Ok(reply) => reply,
            Err(error) => {
                // The next try uses another connection.
                if let Some(way) = followed {
                    way.give_up();
                }
                return Err(error);
            }
        };
        let owned = reply.owned()?;
        trail.answered(&reply.by);
        if owned {
            trail.ended();
        }
        Ok(if owned { Released::Done } else { Released::NotOwner })
    }

    fn may_be_held(&self) -> bool {
        self.trail.is_open()
    }
}

impl<R: Runtime> Clone for Redis<R> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), ..*self }
    }
}

impl<R: Runtime> fmt::Debug for Redis<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("address", &self.inner.link.address()).finish_non_exhaustive()
    }
}

fn disconnected(error: RedisError) -> BackendError {
    BackendError::Disconnected { reason: error.to_string() }
}
