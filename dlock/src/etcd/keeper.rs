//! The task that keeps a session alive, and ends it at the cluster when it is over.
//!
//! A keepalive is sent every third of the TTL. The lease is trusted from the *sending* of the last one that was answered:
//! the cluster counts from a later moment, so it lasts at least as long there as here. etcd's own client counts from the
//! arrival of the answer, and trusts a lease for as long as the answer took after it may have ended.
//!
//! There is one thing that the client can't see: a leader that was deposed and does not know it yet answers keepalives
//! from its own memory (etcd issue 15247). Only a fencing token stops a holder whom that deceives.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Error, LeaseKeepAliveStream, LeaseKeeper};
use futures_util::future::select;
use tokio::sync::oneshot;

use super::error::LEASE_NOT_FOUND;
use super::link::{Connection, Link};
use super::session::Session;
use crate::error::BackendError;
use crate::runtime::{Instant, Runtime};

/// A session is kept until whoever holds this drops it; then it ends at the cluster, too.
pub(super) struct Kept {
    pub(super) session: Arc<Session>,
    _close: oneshot::Sender<()>,
}

/// Opens a session of `seconds`.
pub(super) async fn open<R: Runtime>(
    link: &Arc<Link<R>>,
    seconds: i64,
    deadline: Instant,
) -> Result<Kept, BackendError> {
    let by = link.connection(deadline).await?;
    let since = link.runtime().now();
    let grant = link.call(&by, deadline, async { by.lease().grant(seconds, None).await }).await?;
    let ttl = Duration::from_secs(u64::try_from(grant.ttl()).unwrap_or_default());
    let session = Arc::new(Session::new(grant.id(), since, ttl));
    let (close, closed) = oneshot::channel();
    let keeper = Keeper { link: Arc::clone(link), session: Arc::clone(&session), stream: None };
    link.runtime().spawn(keeper.run(closed));
    Ok(Kept { session, _close: close })
}

/// Revokes the lease of a session that is over: what it left behind goes, and what it sent last can't take effect any
/// more. Returns once the cluster has confirmed it, and whether it knew the lease until now.
pub(super) async fn bury<R: Runtime>(
    link: &Link<R>,
    session: &Session,
    deadline: Instant,
) -> Result<bool, BackendError> {
    if session.is_gone() {
        return Ok(false);
    }
    let by = link.connection(deadline).await?;
    let revoked = link.call(&by, deadline, async { by.lease().revoke(session.lease()).await }).await;
    let was_there = match revoked {
        Ok(_) => true,
        Err(BackendError::SessionLost { .. }) => false,
        Err(error) => return Err(error),
    };
    session.gone();
    Ok(was_there)
}

struct Keeper<R> {
    link: Arc<Link<R>>,
    session: Arc<Session>,
    stream: Option<Stream>,
}

/// Keepalives on one connection. The cluster answers them in order.
struct Stream {
    by: Arc<Connection>,
    keeper: LeaseKeeper,
    answers: LeaseKeepAliveStream,
}

impl<R: Runtime> Keeper<R> {
    async fn run(mut self, closed: oneshot::Receiver<()>) {
        {
            let keeping = pin!(self.keep());
            select(keeping, closed).await;
        }
        self.stream = None;
        self.session.end(false);
        self.bury().await;
    }

    /// Sends keepalives until the session is over.
    async fn keep(&mut self) {
        let ttl = self.session.ttl();
        let mut due = self.session.confirmed() + ttl / 3;
        loop {
            wait(self.runtime(), &self.session, due).await;
            if self.session.check(self.runtime().now()).is_err() {
                return;
            }
            due = match self.ask().await {
                Ok(()) => self.session.confirmed() + ttl / 3,
                // Not gone for certain, as a member may say so that has not heard of the lease yet.
                Err(BackendError::SessionLost { reported }) => return self.session.end(reported),
                Err(_) => {
                    self.session.failed();
                    self.stream = None;
                    self.runtime().now() + self.pause()
                }
            };
        }
    }

    /// Sends a keepalive and waits for its answer: for a sixth of the TTL, so that after a third of it three members can be
    /// asked in turn before it is over.
    async fn ask(&mut self) -> Result<(), BackendError> {
        let deadline = self.runtime().now() + self.session.ttl() / 6;
        let stream = self.stream.take().filter(|stream| !stream.by.is_over());
        let by = match &stream {
            Some(stream) => Arc::clone(&stream.by),
            None => self.link.connection(deadline).await?,
        };
        let since = self.runtime().now();
        self.session.asking(since);
        let exchange = async {
            match stream {
                Some(stream) => stream.again().await,
                None => Stream::begin(&by, self.session.lease()).await,
            }
        };
        self.stream = Some(self.link.call(&by, deadline, by.unless_over(exchange)).await?);
        self.session.confirm(since);
        Ok(())
    }

    /// Ends the session at the cluster, if that can be reached before its lease must have ended by itself.
    async fn bury(&self) {
        let ttl = self.session.ttl();
        let until = self.runtime().now() + ttl;
        loop {
            let now = self.runtime().now();
            match bury(&self.link, &self.session, now + ttl / 6).await {
                Err(error) if error.is_passing() && now < until => {}
                _ => return,
            }
            self.runtime().sleep_until(self.runtime().now() + self.pause()).await;
        }
    }

    /// Between two tries: soon, since time runs out, and no more than some ten times a second.
    fn pause(&self) -> Duration {
        (self.session.ttl() / 24).min(Duration::from_millis(100))
    }

    fn runtime(&self) -> &R {
        self.link.runtime()
    }
}

/// Waits until a keepalive is due or wanted, or the session is over.
async fn wait(runtime: &impl Runtime, session: &Session, due: Instant) {
    let asleep = pin!(runtime.sleep_until(due.min(session.valid_until())));
    select(asleep, pin!(session.wanted())).await;
}

impl Stream {
    async fn begin(by: &Arc<Connection>, lease: i64) -> Result<Self, Error> {
        // It sends the first keepalive by itself.
        let (keeper, answers) = by.lease().keep_alive(lease).await?;
        Ok(Self { by: Arc::clone(by), keeper, answers })
    }

    async fn again(mut self) -> Result<Self, Error> {
        self.keeper.keep_alive().await?;
        match self.answers.message().await? {
            Some(answer) if answer.ttl() > 0 => Ok(self),
            Some(_) => Err(Error::LeaseKeepAliveError(LEASE_NOT_FOUND.to_owned())),
            None => Err(Error::LeaseKeepAliveError("the stream has ended".to_owned())),
        }
    }
}
