//! Locks by etcd's own Lock service (`v3lockpb.Lock`), to compare with the queue of `dlock::etcd`.

mod channel;

use std::fmt;
use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dlock::{
    Acquisition, Answer, Backend, BackendError, Claim, FencingToken, Instant, Released, Renewal, Runtime,
    timeout_at,
};
use etcd_client::{Client, ConnectOptions, Error, GetOptions, LockOptions};
use futures_util::FutureExt;
use futures_util::future::{Either, select};
use tokio::sync::{oneshot, watch};

use self::channel::{channel, meaning};
use crate::world::runtime::SimRuntime;

/// An etcd cluster whose Lock service keeps the queue: one call that returns when the lock is the caller's.
///
/// It differs from [`dlock::etcd::Etcd`]:
///
/// - The service names a waiter after its lease, so that two claims under one lease would *both* be told that
///   they hold the lock. Each claim therefore has a session of its own. To release it, the lease is revoked,
///   and with it goes the key.
/// - After the wait the claim is not looked at again. etcd 3.4 answers a waiter whose lease has ended
///   meanwhile as if it held the lock (etcd issue 11456); only the session's validity, by this client's
///   clock, prevents that.
/// - A call that has not returned does not show whether another owner holds the lock or the member is silent.
///   Half of the time of each request passes before the claim's key is looked for, and the place returned.
///
/// The token is the create revision of the claim's key. The revision in the service's answers is a later one
/// for those who waited.
#[derive(Clone)]
pub struct EtcdLockService(Arc<Cluster>);

/// The members, and the client that is used.
struct Cluster {
    runtime: SimRuntime,
    members: Vec<String>,
    session_ttl: Duration,
    next: AtomicUsize,
    client: Mutex<Option<Client>>,
}

/// One attempt to hold one lease by the Lock service.
pub struct LockServiceAcquisition {
    cluster: Arc<Cluster>,
    claim: Claim,
    stake: Option<Stake>,
}

/// What a claim has at the cluster: a session, a call of the service, and a key.
struct Stake {
    session: Session,
    call: Call,
    /// The create revision of the claim's key, once a look has shown it.
    position: Option<u64>,
}

/// A lease at the cluster, kept alive by a task until this is dropped.
struct Session {
    lease: i64,
    ttl: Duration,
    state: watch::Sender<State>,
    _close: oneshot::Sender<()>,
}

#[derive(Clone, Copy)]
struct State {
    /// When the lease ends unless a keepalive is answered: its TTL after the sending of the last one that
    /// was.
    valid_until: Instant,
    /// Whether the cluster knows the lease no more.
    is_gone: bool,
}

/// The call of the service.
enum Call {
    Idle,
    /// A task waits for it, until this is dropped.
    InProgress(oneshot::Receiver<Result<(), BackendError>>),
    /// The service has answered that the lock is the claim's.
    Held,
    /// It failed. The service may be about to delete the claim's key, so another call needs another session.
    Failed,
}

impl EtcdLockService {
    /// Creates a client of the cluster with these members, each written `host:port`, with sessions of
    /// `session_ttl`.
    pub fn new(runtime: SimRuntime, members: &[impl AsRef<str>], session_ttl: Duration) -> Self {
        let members = members.iter().map(|member| member.as_ref().to_owned()).collect();
        let (next, client) = (AtomicUsize::new(0), Mutex::default());
        // etcd counts in whole seconds.
        let session_ttl = Duration::from_secs(session_ttl.as_millis().div_ceil(1000).try_into().unwrap_or(1));
        Self(Arc::new(Cluster { runtime, members, session_ttl, next, client }))
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
        let standing = self.stand(deadline);
        timeout_at(&runtime, deadline, standing).await.unwrap_or(Err(BackendError::NoAnswer))
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

    /// Revokes the claim's lease: the key goes with it, and no call that is still on its way can create it
    /// again.
    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let Self { cluster, stake, .. } = self;
        let Some(Stake { session, call, .. }) = stake else { return Ok(Released::NotOwner) };
        let was_held = session.check(&cluster.runtime).is_ok() && matches!(call, Call::Held);
        let was_there = cluster.revoke(session.lease, deadline).await?;
        *stake = None;
        Ok(if was_held && was_there { Released::Done } else { Released::NotOwner })
    }

    fn may_be_held(&self) -> bool {
        self.stake.is_some()
    }
}

impl LockServiceAcquisition {
    async fn stand(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
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
                let left = session.state.borrow().valid_until.saturating_since(since);
                Ok(Answer::Granted { token, since, left })
            }
            (Some(token), _) => Ok(Answer::Queued { position: token.as_u64() }),
            // The service says that the lock is the claim's, and there is no key: its lease has ended.
            (None, Call::Held) => {
                session.state.send_modify(|state| state.is_gone = true);
                Err(BackendError::SessionLost { reported: true })
            }
            (None, _) => Err(BackendError::NoAnswer),
        }
    }
}

impl Cluster {
    /// Returns the client of the member that is used.
    fn client(&self) -> Result<Client, BackendError> {
        let mut current = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*current {
            return Ok(client.clone());
        }
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.members.len().max(1);
        let address = self.members.get(next).cloned().unwrap_or_default();
        let unreachable = |reason: tonic::transport::Error| BackendError::Unreachable {
            address: address.clone(),
            reason: reason.to_string(),
        };
        let channel = channel(&self.runtime, &address).map_err(unreachable)?;
        // Without a user nothing is sent: the future is ready at once.
        let options = ConnectOptions::new().with_require_leader(true);
        let client = Client::from_channel(channel, Some(options)).now_or_never();
        let client = client.unwrap_or(Err(Error::InvalidArgs("a login is not supported".to_owned())));
        Ok(current.insert(client.map_err(meaning)?).clone())
    }

    /// Waits for the answer of a call. After a failure the next calls go to another member.
    async fn call<T>(
        &self,
        deadline: Instant,
        exchange: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, BackendError> {
        let answer = timeout_at(&self.runtime, deadline, exchange).await;
        let result = answer.map_or(Err(BackendError::NoAnswer), |answer| answer.map_err(meaning));
        if let Err(error) = &result {
            self.judge(error);
        }
        result
    }

    fn judge(&self, error: &BackendError) {
        if !matches!(error, BackendError::SessionLost { .. }) && error.is_passing() {
            *self.client.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    async fn open_session(self: &Arc<Self>, deadline: Instant) -> Result<Session, BackendError> {
        let mut client = self.client()?;
        let since = self.runtime.now();
        let seconds = i64::try_from(self.session_ttl.as_secs()).unwrap_or(i64::MAX);
        let grant = self.call(deadline, client.lease_grant(seconds, None)).await?;
        let ttl = Duration::from_secs(grant.ttl().unsigned_abs());
        let state = watch::Sender::new(State { valid_until: since + ttl, is_gone: false });
        let (close, closed) = oneshot::channel();
        let session = Session { lease: grant.id(), ttl, state: state.clone(), _close: close };
        let (cluster, lease) = (Arc::clone(self), session.lease);
        self.runtime.spawn(async move {
            select(pin!(cluster.keep(lease, ttl, &state)), closed).await;
        });
        Ok(session)
    }

    /// Sends a keepalive every third of the TTL, until the session is over.
    async fn keep(&self, lease: i64, ttl: Duration, state: &watch::Sender<State>) {
        loop {
            let State { valid_until, is_gone } = *state.borrow();
            let now = self.runtime.now();
            if is_gone || now >= valid_until {
                return;
            }
            self.runtime.sleep_until((valid_until - ttl * 2 / 3).max(now + ttl / 24)).await;
            // The state has the result.
            let _ = self.keep_alive(lease, ttl, state, self.runtime.now() + ttl / 6).await;
        }
    }

    async fn keep_alive(
        &self,
        lease: i64,
        ttl: Duration,
        state: &watch::Sender<State>,
        deadline: Instant,
    ) -> Result<(), BackendError> {
        let mut client = self.client()?;
        let since = self.runtime.now();
        let answer = self.call(deadline, client.lease_keep_alive(lease)).await;
        state.send_modify(|state| match answer {
            Ok(_) if self.runtime.now() < state.valid_until => {
                state.valid_until = state.valid_until.max(since + ttl);
            }
            Err(BackendError::SessionLost { .. }) => state.is_gone = true,
            _ => {}
        });
        answer.map(drop)
    }

    /// Revokes a lease; returns whether the cluster knew it until now.
    async fn revoke(&self, lease: i64, deadline: Instant) -> Result<bool, BackendError> {
        let mut client = self.client()?;
        match self.call(deadline, client.lease_revoke(lease)).await {
            Ok(_) => Ok(true),
            Err(BackendError::SessionLost { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Calls the service, in a task of its own: a call that is dropped would lose its place.
    fn begin(
        self: &Arc<Self>,
        claim: &Claim,
        lease: i64,
    ) -> Result<oneshot::Receiver<Result<(), BackendError>>, BackendError> {
        let mut client = self.client()?;
        let (mut answer, answered) = oneshot::channel();
        let (cluster, name) = (Arc::clone(self), queue(claim));
        self.runtime.spawn(async move {
            let call = pin!(client.lock(name, Some(LockOptions::new().with_lease(lease))));
            let result = match select(call, pin!(answer.closed())).await {
                Either::Left((result, _)) => result.map(drop).map_err(meaning),
                Either::Right(_) => return,
            };
            if let Err(error) = &result {
                cluster.judge(error);
            }
            // Nobody waits any more.
            let _ = answer.send(result);
        });
        Ok(answered)
    }

    /// Returns the create revision of the claim's key.
    async fn look(&self, claim: &Claim, lease: i64, deadline: Instant) -> Result<Option<u64>, BackendError> {
        let mut client = self.client()?;
        let key = format!("{}/{lease:x}", queue(claim));
        let found = self.call(deadline, client.get(key, Some(GetOptions::new().with_keys_only()))).await?;
        Ok(found.kvs().first().map(|kv| kv.create_revision().unsigned_abs()))
    }
}

/// The name of a lock, as the queue of `dlock::etcd` has it.
fn queue(claim: &Claim) -> String {
    format!("lock/v1/{}", claim.key.name())
}

impl Stake {
    fn is_over(&self, runtime: &SimRuntime) -> bool {
        matches!(self.call, Call::Failed) || self.session.check(runtime).is_err()
    }
}

impl Session {
    fn check(&self, runtime: &SimRuntime) -> Result<(), BackendError> {
        let State { valid_until, is_gone } = *self.state.borrow();
        if is_gone || runtime.now() >= valid_until {
            return Err(BackendError::SessionLost { reported: is_gone });
        }
        Ok(())
    }

    /// Completes once it is over, and returns why.
    async fn over(&self, runtime: &SimRuntime) -> BackendError {
        let mut states = self.state.subscribe();
        loop {
            if let Err(lost) = self.check(runtime) {
                return lost;
            }
            let State { valid_until, .. } = *states.borrow_and_update();
            select(pin!(states.changed()), pin!(runtime.sleep_until(valid_until))).await;
        }
    }
}

impl Call {
    /// Waits until the service has answered.
    async fn answered(&mut self) -> Result<(), BackendError> {
        let answer = match self {
            Self::Held => return Ok(()),
            Self::InProgress(answer) => answer.await,
            Self::Idle | Self::Failed => pending().await,
        };
        *self = Self::Failed;
        answer.unwrap_or(Err(BackendError::NoAnswer))?;
        *self = Self::Held;
        Ok(())
    }
}
