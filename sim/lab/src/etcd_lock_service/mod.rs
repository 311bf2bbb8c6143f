//! Locks of etcd's own Lock service (`v3lockpb.Lock`), to compare with the queue of `dlock::etcd`.

mod call;
mod cluster;
mod connection;
mod session;
mod watched;

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use dlock::{
    Acquisition, Answer, Backend, BackendError, Claim, FencingToken, Instant, Released, Renewal, Runtime,
    timeout_at,
};
use futures_util::future::{Either, select};
use sim::world::runtime::SimRuntime;

use self::call::Call;
use self::cluster::Cluster;
use self::session::Session;

/// An etcd cluster whose Lock service keeps the queue: its one call returns when the caller holds the lock.
///
/// It differs from [`dlock::etcd::Etcd`]:
///
/// - The service names a waiter after its lease, so that two claims under one lease would *both* get the
///   lock. Each claim therefore has a session of its own. A release revokes the lease, which deletes the key.
/// - The service does not check the claim again after the wait. etcd 3.4 answers a waiter whose lease has
///   ended meanwhile as if it held the lock (etcd issue 11456); only the session's validity, by this client's
///   clock, prevents that.
/// - A call that has not returned does not show whether another owner holds the lock or the member is silent.
///   Such a request waits for half of its time before it reads the claim's key and returns its place in the
///   queue. When a keepalive shows that the member is silent, the call ends; the claim then queues up anew,
///   under another session and at another member.
///
/// The token is the create revision of the claim's key. The revision in the service's answers is later for
/// claims that waited.
#[derive(Clone)]
pub struct EtcdLockService(Arc<Cluster>);

/// One attempt to hold one lease through the Lock service.
pub struct LockServiceAcquisition {
    cluster: Arc<Cluster>,
    claim: Claim,
    stake: Option<Stake>,
}

/// State of a claim at the cluster: a session, a call of the service, and a key.
struct Stake {
    session: Session,
    call: Call,
    /// The create revision of the claim's key, once it has been read.
    position: Option<u64>,
}

impl EtcdLockService {
    /// Creates a client of the cluster with these members, each written `host:port`, with sessions of
    /// `session_ttl`.
    pub fn new(runtime: SimRuntime, members: &[impl AsRef<str>], session_ttl: Duration) -> Self {
        let members = members.iter().map(|member| member.as_ref().to_owned()).collect();
        // etcd counts in whole seconds.
        let session_ttl = Duration::from_secs(session_ttl.as_millis().div_ceil(1000).try_into().unwrap_or(1));
        Self(Arc::new(Cluster::new(runtime, members, session_ttl)))
    }
}

impl Backend for EtcdLockService {
    type Runtime = SimRuntime;
    type Acquisition = LockServiceAcquisition;

    fn runtime(&self) -> &SimRuntime {
        &self.0.runtime
    }

    fn system(&self) -> &'static str {
        "etcd"
    }

    fn session_ttl(&self) -> Option<Duration> {
        Some(self.0.session_ttl)
    }

    fn open(&self, claim: Claim) -> LockServiceAcquisition {
        LockServiceAcquisition { cluster: Arc::clone(&self.0), claim, stake: None }
    }
}

impl fmt::Debug for EtcdLockService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdLockService").field("members", &self.0.members).finish_non_exhaustive()
    }
}

impl Acquisition for LockServiceAcquisition {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let runtime = self.cluster.runtime.clone();
        let answer = self.queue_up(deadline);
        timeout_at(&runtime, deadline, answer).await.unwrap_or(Err(BackendError::NoAnswer))
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        let Self { cluster, stake, .. } = self;
        let Some(Stake { session, call, .. }) = stake else { return Ok(()) };
        let over = pin!(session.over(&cluster.runtime));
        let waiting = async {
            match select(pin!(call.answered()), over).await {
                Either::Left((answer, _)) => answer,
                Either::Right((lost, _)) => Err(lost),
            }
        };
        timeout_at(&cluster.runtime, deadline, waiting).await.unwrap_or(Ok(()))
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        let Self { cluster, claim, stake } = self;
        let Some(Stake { session, position, .. }) = stake else { return Ok(Renewal::NotOwner) };
        if session.check(&cluster.runtime).is_err() {
            return Ok(Renewal::NotOwner);
        }
        let since = cluster.runtime.now();
        let renewed = async {
            cluster.keep_alive(session.lease, session.ttl, &session.state, deadline).await?;
            cluster.look(claim, session.lease, deadline).await
        };
        match renewed.await {
            Ok(found) if found.is_some() && found == *position => {
                Ok(Renewal::Extended { since, left: session.ttl })
            }
            Ok(_) | Err(BackendError::SessionLost { .. }) => Ok(Renewal::NotOwner),
            Err(error) => Err(error),
        }
    }

    /// Revokes the claim's lease, which deletes the key. A call in flight can't create the key again.
    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let Self { cluster, stake, .. } = self;
        let Some(Stake { session, call, .. }) = stake else { return Ok(Released::NotOwner) };
        let was_held = session.check(&cluster.runtime).is_ok() && matches!(call, Call::Held);
        let was_there = cluster.revoke(session.lease, deadline).await?;
        *stake = None;
        Ok(if was_held && was_there { Released::Done } else { Released::NotOwner })
    }

    fn needs_cleanup(&self) -> bool {
        self.stake.is_some()
    }
}

impl LockServiceAcquisition {
    async fn queue_up(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let Self { cluster, claim, stake } = self;
        if let Some(over) = stake.as_ref().filter(|stake| stake.is_over(&cluster.runtime)) {
            cluster.revoke(over.session.lease, deadline).await?;
            *stake = None;
        }
        let Stake { session, call, position } = match stake {
            Some(stake) => stake,
            None => stake.insert(Stake {
                session: cluster.open_session(deadline).await?,
                call: Call::Idle,
                position: None,
            }),
        };
        let since = cluster.runtime.now();
        if let Call::Idle = call {
            *call = Call::InProgress(cluster.begin(claim, session.lease)?);
        }
        let half = since + deadline.saturating_since(since) / 2;
        timeout_at(&cluster.runtime, half, call.answered()).await.unwrap_or(Ok(()))?;
        if position.is_none() {
            *position = cluster.look(claim, session.lease, deadline).await?;
        }
        session.check(&cluster.runtime)?;
        match (position.and_then(FencingToken::new), call) {
            (Some(token), Call::Held) => {
                let left = session.valid_until().saturating_since(since);
                Ok(Answer::Granted { token, since, left })
            }
            (Some(token), _) => Ok(Answer::Queued { position: token.as_u64() }),
            // The service has granted the lock, but there is no key: the claim's lease has ended.
            (None, Call::Held) => {
                session.end();
                Err(BackendError::SessionLost { reported: true })
            }
            (None, _) => Err(BackendError::NoAnswer),
        }
    }
}

impl Stake {
    fn is_over(&self, runtime: &SimRuntime) -> bool {
        matches!(self.call, Call::Failed) || self.session.check(runtime).is_err()
    }
}
