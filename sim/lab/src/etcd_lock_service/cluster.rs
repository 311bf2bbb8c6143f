//! Calls to the cluster: leases, the Lock service, and the keys of claims.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dlock::{BackendError, Claim, Instant, LockKey, Runtime, timeout_at};
use etcd_client::{Client, ConnectOptions, Error, GetOptions, LockOptions};
use futures_util::FutureExt;
use futures_util::future::{Either, select};
use sim::clients::{channel, meaning};
use sim::world::runtime::SimRuntime;
use tokio::sync::oneshot;

use super::connection::Connection;
use super::session::{Session, State};
use super::watched::Watched;

/// The members, and the connection to the member in use.
pub(super) struct Cluster {
    pub(super) runtime: SimRuntime,
    pub(super) members: Vec<String>,
    pub(super) session_ttl: Duration,
    next: AtomicUsize,
    connection: Mutex<Option<Connection>>,
}

impl Cluster {
    pub(super) fn new(runtime: SimRuntime, members: Vec<String>, session_ttl: Duration) -> Self {
        let (next, connection) = (AtomicUsize::new(0), Mutex::default());
        Self { runtime, members, session_ttl, next, connection }
    }

    /// Returns the connection to the member in use, or one to the next member if that has been given up.
    fn connection(&self) -> Result<Connection, BackendError> {
        let mut current = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = current.as_ref().filter(|connection| !connection.is_over()) {
            return Ok(connection.clone());
        }
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.members.len().max(1);
        let address = self.members.get(next).cloned().unwrap_or_default();
        let unreachable = |reason: tonic::transport::Error| BackendError::Unreachable {
            address: address.clone(),
            reason: reason.to_string(),
        };
        let channel = channel(&self.runtime, &address).map_err(unreachable)?;
        // Without a login nothing is sent, so the future is ready at once.
        let options = ConnectOptions::new().with_require_leader(true);
        let client = Client::from_channel(channel, Some(options)).now_or_never();
        let client = client.unwrap_or(Err(Error::InvalidArgs("a login is not supported".to_owned())));
        Ok(current.insert(Connection::new(client.map_err(meaning)?)).clone())
    }

    /// Waits for the answer of a call on `connection`. After a failure the next calls go to another member,
    /// and calls of the Lock service on this connection end.
    async fn call<T>(
        &self,
        connection: &Connection,
        deadline: Instant,
        exchange: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, BackendError> {
        let answer = timeout_at(&self.runtime, deadline, exchange).await;
        let result = answer.map_or(Err(BackendError::NoAnswer), |answer| answer.map_err(meaning));
        if let Err(error) = &result {
            connection.judge(error);
        }
        result
    }

    /// Grants a lease and spawns the task that keeps it alive.
    pub(super) async fn open_session(self: &Arc<Self>, deadline: Instant) -> Result<Session, BackendError> {
        let connection = self.connection()?;
        let since = self.runtime.now();
        let seconds = i64::try_from(self.session_ttl.as_secs()).unwrap_or(i64::MAX);
        let mut client = connection.client();
        let grant = self.call(&connection, deadline, client.lease_grant(seconds, None)).await?;
        let ttl = Duration::from_secs(grant.ttl().unsigned_abs());
        let state = Watched::new(State { valid_until: since + ttl, is_gone: false });
        let (close, closed) = oneshot::channel();
        let session = Session { lease: grant.id(), ttl, state: state.clone(), _close: close };
        let (cluster, lease) = (Arc::clone(self), session.lease);
        self.runtime.spawn(async move {
            select(pin!(cluster.keep(lease, ttl, &state)), closed).await;
        });
        Ok(session)
    }

    /// Sends a keepalive every third of the TTL, until the session is over.
    async fn keep(&self, lease: i64, ttl: Duration, state: &Watched<State>) {
        loop {
            let State { valid_until, is_gone } = state.get();
            let now = self.runtime.now();
            if is_gone || now >= valid_until {
                return;
            }
            self.runtime.sleep_until((valid_until - ttl * 2 / 3).max(now + ttl / 24)).await;
            // `state` has the result.
            let _ = self.keep_alive(lease, ttl, state, self.runtime.now() + ttl / 6).await;
        }
    }

    /// Sends one keepalive, and puts its result into `state`, too.
    pub(super) async fn keep_alive(
        &self,
        lease: i64,
        ttl: Duration,
        state: &Watched<State>,
        deadline: Instant,
    ) -> Result<(), BackendError> {
        let connection = self.connection()?;
        let since = self.runtime.now();
        let mut client = connection.client();
        let answer = self.call(&connection, deadline, client.lease_keep_alive(lease)).await;
        state.change(|state| match answer {
            Ok(_) if self.runtime.now() < state.valid_until => {
                state.valid_until = state.valid_until.max(since + ttl);
            }
            Err(BackendError::SessionLost { .. }) => state.is_gone = true,
            _ => {}
        });
        answer.map(drop)
    }

    /// Revokes a lease; returns false if the cluster did not know it any more.
    pub(super) async fn revoke(&self, lease: i64, deadline: Instant) -> Result<bool, BackendError> {
        let connection = self.connection()?;
        let mut client = connection.client();
        match self.call(&connection, deadline, client.lease_revoke(lease)).await {
            Ok(_) => Ok(true),
            Err(BackendError::SessionLost { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Calls the service, in a task of its own, since a dropped call would lose its place in the queue.
    /// Returns the receiver of the answer. The call has no deadline, since the wait in the queue has none. It
    /// ends with its connection: the keepalives of the session show within half of its TTL that the member is
    /// silent.
    pub(super) fn begin(
        &self,
        claim: &Claim,
        lease: i64,
    ) -> Result<oneshot::Receiver<Result<(), BackendError>>, BackendError> {
        let connection = self.connection()?;
        let (mut answer, answered) = oneshot::channel();
        let name = queue(claim);
        self.runtime.spawn(async move {
            let mut client = connection.client();
            let options = LockOptions::new().with_lease(lease);
            let call = pin!(connection.unless_over(client.lock(name, Some(options))));
            let result = match select(call, pin!(answer.closed())).await {
                Either::Left((result, _)) => result.map(drop).map_err(meaning),
                Either::Right(_) => return,
            };
            if let Err(error) = &result {
                connection.judge(error);
            }
            // Fails only if the claim has been dropped.
            let _ = answer.send(result);
        });
        Ok(answered)
    }

    /// Returns the create revision of the claim's key.
    pub(super) async fn look(
        &self,
        claim: &Claim,
        lease: i64,
        deadline: Instant,
    ) -> Result<Option<u64>, BackendError> {
        let connection = self.connection()?;
        let mut client = connection.client();
        let key = format!("{}/{lease:x}", queue(claim));
        let get = client.get(key, Some(GetOptions::new().with_keys_only()));
        let found = self.call(&connection, deadline, get).await?;
        Ok(found.kvs().first().map(|kv| kv.create_revision().unsigned_abs()))
    }
}

/// Returns the name of a lock, the same as in `dlock::etcd`.
fn queue(claim: &Claim) -> String {
    [LockKey::ETCD_PREFIX, claim.key.name()].concat()
}
