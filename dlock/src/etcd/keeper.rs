//! The task that keeps a session alive, and ends it at the cluster when it is over.
//!
//! A keepalive is sent every third of the TTL. The lease is trusted from the *sending* of the last
//! acknowledged one: the cluster counts from a later moment, so the lease lasts at least as long there as
//! here. etcd's own client counts from the arrival of the answer: it trusts a lease too long by the travel
//! time of the answer.
//!
//! One failure the client can't see: a leader that was deposed and does not know it yet answers keepalives
//! from its own memory (etcd issue 15247). Only a fencing token stops such a holder.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime, closest, probes, reached, sometimes};
use etcd_client::{Error, LeaseKeepAliveStream, LeaseKeeper};
use futures_util::future::select;
use tokio::sync::oneshot;

use super::connector::{Connection, Connector};
use super::error::LEASE_NOT_FOUND;
use super::session::Session;
use crate::error::BackendError;

/// A session that is kept alive until this is dropped; then it also ends at the cluster.
pub(super) struct Kept {
    pub(super) session: Arc<Session>,
    _close: oneshot::Sender<()>,
}

/// Opens a session of `seconds`.
pub(super) async fn open<R: Runtime>(
    connector: &Arc<Connector<R>>,
    seconds: i64,
    deadline: Instant,
) -> Result<Kept, BackendError> {
    let connection = connector.connection(deadline).await?;
    let since = connector.runtime().now();
    let grant = connector
        .call(&connection, deadline, async { connection.lease().grant(seconds, None).await })
        .await?;
    let ttl = Duration::from_secs(u64::try_from(grant.ttl()).unwrap_or_default());
    let session = Arc::new(Session::new(grant.id(), since, ttl));
    let (close, closed) = oneshot::channel();
    let keeper = Keeper { connector: Arc::clone(connector), session: Arc::clone(&session), stream: None };
    connector.runtime().spawn(keeper.run(closed));
    Ok(Kept { session, _close: close })
}

/// Revokes the lease of a session that is over: its keys are deleted, and its last requests can't take effect
/// any more. Returns once the cluster has confirmed it.
pub(super) async fn revoke<R: Runtime>(
    connector: &Connector<R>,
    session: &Session,
    deadline: Instant,
) -> Result<(), BackendError> {
    if session.is_gone() {
        return Ok(());
    }
    let connection = connector.connection(deadline).await?;
    let revoked = connector
        .call(&connection, deadline, async { connection.lease().revoke(session.lease()).await })
        .await;
    match revoked {
        Ok(_) | Err(BackendError::SessionLost { .. }) => session.gone(),
        Err(error) => return Err(error),
    }
    Ok(())
}

struct Keeper<R> {
    connector: Arc<Connector<R>>,
    session: Arc<Session>,
    stream: Option<Stream>,
}

/// Keepalives on one connection. The cluster answers them in order.
struct Stream {
    connection: Arc<Connection>,
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
        self.revoke().await;
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
                // It may still exist: a member answers so, too, before it has received the new lease.
                Err(BackendError::SessionLost { reported }) => {
                    reached!(self.runtime(), keepalive_found_lease_gone);
                    return self.session.end(reported);
                }
                Err(_) => {
                    reached!(self.runtime(), keepalive_unanswered);
                    self.session.failed();
                    self.stream = None;
                    self.runtime().now() + self.pause()
                }
            };
        }
    }

    /// Sends a keepalive and waits a sixth of the TTL for its answer. The first keepalive is sent after a
    /// third of the TTL, so three members can be asked in turn before the session is over.
    async fn ask(&mut self) -> Result<(), BackendError> {
        let deadline = self.runtime().now() + self.session.ttl() / 6;
        let stream = self.stream.take().filter(|stream| !stream.connection.is_over());
        let connection = match &stream {
            Some(stream) => Arc::clone(&stream.connection),
            None => self.connector.connection(deadline).await?,
        };
        let since = self.runtime().now();
        self.session.asking(since);
        let exchange = async {
            match stream {
                Some(stream) => stream.again().await,
                None => Stream::begin(&connection, self.session.lease()).await,
            }
        };
        let answer = self.connector.call(&connection, deadline, connection.unless_over(exchange)).await;
        // A keepalive without an answer retires the connection, whatever other calls were answered: the
        // session depends on it.
        self.stream = Some(answer.inspect_err(|error| connection.judge(error))?);
        let spare = || self.session.valid_until().saturating_since(self.runtime().now());
        sometimes!(self.runtime(), keepalive_answered_late, spare().is_zero());
        // A late answer is another situation, not a nearer one.
        let before_end = || Some(spare().as_nanos() as u64).filter(|spare| *spare > 0).unwrap_or(u64::MAX);
        closest!(self.runtime(), keepalive_before_end_ns, before_end());
        self.session.confirm(since);
        Ok(())
    }

    /// Revokes the lease of the session, unless the lease must have ended by itself before the cluster can be
    /// reached.
    async fn revoke(&self) {
        let ttl = self.session.ttl();
        let until = self.runtime().now() + ttl;
        loop {
            let now = self.runtime().now();
            match revoke(&self.connector, &self.session, now + ttl / 6).await {
                Err(error) if error.is_passing() && now < until => {
                    reached!(self.runtime(), revocation_repeated);
                }
                _ => return,
            }
            self.runtime().sleep_until(self.runtime().now() + self.pause()).await;
        }
    }

    /// Returns the pause between two tries: short, since time runs out, but at most some ten tries a second.
    fn pause(&self) -> Duration {
        (self.session.ttl() / 24).min(Duration::from_millis(100))
    }

    fn runtime(&self) -> &R {
        self.connector.runtime()
    }
}

/// Waits until a keepalive is due or wanted, or the session is over.
async fn wait(runtime: &impl Runtime, session: &Session, due: Instant) {
    let asleep = pin!(runtime.sleep_until(due.min(session.valid_until())));
    select(asleep, pin!(session.wanted())).await;
}

impl Stream {
    async fn begin(connection: &Arc<Connection>, lease: i64) -> Result<Self, Error> {
        // It sends the first keepalive by itself.
        let (keeper, answers) = connection.lease().keep_alive(lease).await?;
        Ok(Self { connection: Arc::clone(connection), keeper, answers })
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

probes! {
    /// A keepalive was answered that the lease is gone.
    reached keepalive_found_lease_gone;
    /// A keepalive failed or stayed unanswered: another one is sent.
    reached keepalive_unanswered;
    /// A keepalive was answered after the session had ended here.
    sometimes keepalive_answered_late;
    /// How long before the end of the session a keepalive was answered, in nanoseconds.
    closest keepalive_before_end_ns;
    /// The lease of a session that is over could not be revoked at once.
    reached revocation_repeated;
}
