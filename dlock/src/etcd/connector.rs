//! One connection to one member of the cluster: opened by the first call, and to the next member when it
//! fails.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dlock_runtime::{Instant, Runtime, probes, sometimes, timeout_at};
use etcd_client::{Channel, Client, ConnectOptions, Error, KvClient, LeaseClient, WatchClient};
use futures_util::future::{Either, select};
use tonic::transport::Endpoint;

use super::error::meaning;
use super::silence::Silence;
use super::stream::{Life, Mortal, Once, Spawner};
use crate::error::{BackendError, SILENT};
use crate::single_flight::SingleFlight;

/// Opens connections to the members of a cluster; at most one at a time takes new requests.
pub(super) struct Connector<R> {
    runtime: R,
    addresses: Box<[Box<str>]>,
    options: ConnectOptions,
    /// The longest time for which calls wait without any answer before the connection is retired.
    silence_max: Duration,
    shared: SingleFlight<Arc<Connection>>,
    /// The member to try next. It moves on with each try, so that a try that is dropped is not repeated.
    next: AtomicUsize,
}

/// A connection to a member. Its requests may be executed in any order: each has a stream of its own.
pub(super) struct Connection {
    client: Client,
    life: Arc<Life>,
    silence: Silence,
}

impl<R: Runtime> Connector<R> {
    /// Creates a connector that retires a connection after `silence_max` without any answer.
    pub(super) fn new(
        runtime: R,
        addresses: Box<[Box<str>]>,
        user: Option<&(String, String)>,
        silence_max: Duration,
    ) -> Self {
        // A member without a leader then says so at once, and ends its watches, which would receive nothing.
        let mut options = ConnectOptions::new().with_require_leader(true);
        if let Some((name, password)) = user {
            options = options.with_user(name, password).with_auto_token_refresh(true);
        }
        let (shared, next) = (SingleFlight::default(), AtomicUsize::new(0));
        Self { runtime, addresses, options, silence_max, shared, next }
    }

    pub(super) fn runtime(&self) -> &R {
        &self.runtime
    }

    pub(super) fn addresses(&self) -> &[Box<str>] {
        &self.addresses
    }

    /// Returns the open connection, or a new one to the next member that accepts it before `deadline`.
    ///
    /// # Errors
    ///
    /// [`BackendError::Unreachable`] and refusals of the login, of this caller's attempt or of the one that
    /// it waited for.
    pub(super) async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, BackendError> {
        let is_open = |connection: &Arc<Connection>| !connection.is_over();
        let seen = match self.shared.current(is_open) {
            Ok(connection) => return Ok(connection),
            Err(seen) => seen,
        };
        let silent = |_| self.unreachable(&self.addresses[0], "another call is still connecting");
        let turn = timeout_at(&self.runtime, deadline, self.shared.turn()).await.map_err(silent)?;
        if let Some(shared) = turn.shared(&seen, is_open) {
            return shared;
        }
        turn.finish(self.open_any(deadline).await)
    }

    /// Returns etcd's own client on the first member that accepts it before `deadline`.
    ///
    /// # Errors
    ///
    /// As [`Connector::connection`].
    pub(super) async fn client(self, deadline: Instant) -> Result<Client, BackendError> {
        Ok(self.connection(deadline).await?.client.clone())
    }

    /// Waits for the answer of a request on `connection` until `deadline`. A connection that fails or falls
    /// silent is retired: the next requests go to another member. A single call that times out does not
    /// retire it, since others share it.
    pub(super) async fn call<T>(
        &self,
        connection: &Connection,
        deadline: Instant,
        exchange: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, BackendError> {
        self.judged(connection, deadline, async { exchange.await.map_err(meaning) }).await
    }

    /// Does the same as [`Connector::call`] for an exchange whose errors are translated already.
    pub(super) async fn judged<T>(
        &self,
        connection: &Connection,
        deadline: Instant,
        exchange: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        let call = connection.silence.call(&self.runtime);
        let Ok(result) = timeout_at(&self.runtime, deadline, exchange).await else {
            if connection.silence.lasts(self.silence_max, self.runtime.now()) {
                connection.life.end();
            }
            return Err(BackendError::NoAnswer);
        };
        call.answered();
        result.map_err(|error| {
            connection.judge(&error);
            connection.explained(error)
        })
    }

    /// Tries the members in turn. A member that stays silent gets half of the time that is left, unless it is
    /// the only one.
    async fn open_any(&self, deadline: Instant) -> Result<Arc<Connection>, BackendError> {
        let mut failure = BackendError::NoAnswer;
        for tried in 0..self.addresses.len() {
            let address = self.advance();
            let now = self.runtime.now();
            let bound = match self.addresses.len() {
                1 => deadline,
                _ => now + deadline.saturating_since(now) / 2,
            };
            let opened = timeout_at(&self.runtime, bound, self.open(address)).await;
            match opened.unwrap_or_else(|_| Err(self.unreachable(address, SILENT))) {
                Ok(connection) => {
                    sometimes!(self.runtime, next_member_reached, tried > 0);
                    return Ok(Arc::new(connection));
                }
                Err(error) if !error.is_passing() => return Err(error),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Returns the address to try now, and moves on to the next.
    fn advance(&self) -> &str {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        &self.addresses[next % self.addresses.len()]
    }

    async fn open(&self, address: &str) -> Result<Connection, BackendError> {
        let stream = self.runtime.connect(address).await.map_err(|error| self.unreachable(address, error))?;
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|error| self.unreachable(address, error))?
            .executor(Spawner(self.runtime.clone()));
        let life = Arc::new(Life::default());
        let channel = endpoint.connect_with_connector_lazy(Once(Some(Mortal::new(stream, &life))));
        // It logs in, if there is a user; otherwise nothing is sent.
        let client = Client::from_channel(Channel::Tonic(channel), Some(self.options.clone())).await;
        Ok(Connection { client: client.map_err(meaning)?, life, silence: Silence::default() })
    }

    fn unreachable(&self, address: &str, reason: impl ToString) -> BackendError {
        BackendError::Unreachable { address: address.to_owned(), reason: reason.to_string() }
    }
}

impl Connection {
    pub(super) fn kv(&self) -> KvClient {
        self.client.kv_client()
    }

    pub(super) fn lease(&self) -> LeaseClient {
        self.client.lease_client()
    }

    pub(super) fn watch(&self) -> WatchClient {
        self.client.watch_client()
    }

    /// Runs `exchange` until the connection ends: long-lived streams must follow the requests to the next
    /// connection.
    pub(super) async fn unless_over<T>(
        &self,
        exchange: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        match select(pin!(exchange), pin!(self.life.over())).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Err(Error::EndpointError("the connection was given up".to_owned())),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.life.is_over()
    }

    /// Adds why the connection failed, if `error` says only that it did: a server that refuses the
    /// certificate of a client, for example, says so when the first answer is read.
    fn explained(&self, error: BackendError) -> BackendError {
        match (error, self.life.failure()) {
            (BackendError::Disconnected { reason }, Some(failure)) if !reason.contains(failure) => {
                BackendError::Disconnected { reason: format!("{reason}: {failure}") }
            }
            (error, _) => error,
        }
    }

    /// Sends no new requests on this connection after `error`, unless another member would answer the same.
    pub(super) fn judge(&self, error: &BackendError) {
        if !matches!(error, BackendError::SessionLost { .. }) && error.is_passing() {
            self.life.end();
        }
    }
}

probes! {
    /// A member could not be reached, and the next one could.
    sometimes next_member_reached;
}

#[cfg(test)]
impl Connection {
    /// Returns a connection whose tasks never run.
    pub(super) fn idle() -> Arc<Self> {
        use futures_util::FutureExt;

        struct Never;
        impl<F> hyper::rt::Executor<F> for Never {
            fn execute(&self, _: F) {}
        }

        let life = Arc::new(Life::default());
        let stream = Mortal::new(tokio::io::empty(), &life);
        let endpoint = Endpoint::from_static("http://localhost:1").executor(Never);
        let channel = Channel::Tonic(endpoint.connect_with_connector_lazy(Once(Some(stream))));
        // Without a user the future is ready at once.
        let client = Client::from_channel(channel, None).now_or_never();
        Arc::new(Self {
            client: client.expect("ready").expect("a client"),
            life,
            silence: Silence::default(),
        })
    }
}
