//! The client of the service, on one HTTP/1.1 connection that it reopens as needed.
//!
//! A lost reply is not a refusal. [`ClientError::NotSent`] means that the service never saw the request,
//! [`ClientError::Unknown`] that it may have applied it. After the latter, send the very same write again, as
//! [`Client::put_with_retry`] does: the service recognises it and repeats its first answer.

mod answer;
mod connection;
mod message;
mod next;
mod permit;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
#[cfg(feature = "tls")]
use dlock::tls::TlsConnector;
use dlock::{Elapsed, FencingToken, Instant, Runtime, timeout_at};
use dlock_runtime::{probes, reached, sometimes};
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::{Request, StatusCode};

pub use self::answer::{ClientError, Failure, PutAnswer, ReadAnswer, Retry};
use self::connection::Connection;
use self::message::{fencing_answer, fencing_request};
pub use self::permit::PermitClient;
use crate::OwnerToken;
use crate::ResourceKey;
use crate::bearer::BearerToken;
use crate::fence::{Beside, Fencing};
use crate::store::{Read, Write};

/// A client of one resource service. Calls that overlap have connections of their own; one is kept.
///
/// # Example
///
/// ```
/// # mod service { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/service.rs")); }
/// # service::run(async |runtime, client| {
/// use std::time::Duration;
///
/// use dlock::Runtime;
/// use resource::client::{PutAnswer, ReadAnswer};
/// use resource::fence::Guard;
/// use resource::store::Write;
/// use resource::{OwnerToken, ResourceKey};
///
/// // `client` is `Client::new(runtime.clone(), "127.0.0.1:8080")`.
/// let deadline = runtime.now() + Duration::from_secs(5);
/// let key = ResourceKey::new("orders:42")?;
/// let owner = Some(OwnerToken::new("b:28999649")?);
/// let write = Write { guard: Guard::token("34".parse()?), owner, body: "paid".into() };
/// assert_eq!(client.put(&key, &write, deadline).await?, PutAnswer::Accepted { version: 1 });
///
/// let answer = client.read(&key, deadline).await?;
/// assert!(matches!(answer, ReadAnswer::Read(snapshot) if snapshot.value == Some("paid".into())));
/// # Ok(()) });
/// ```
pub struct Client<R: Runtime> {
    runtime: R,
    address: Box<str>,
    #[cfg(feature = "tls")]
    tls: Option<TlsConnector>,
    bearer: Option<BearerToken>,
    /// The idle connection. A request takes it out and puts it back once its whole answer has been read: a
    /// dropped or failed call drops its connection, so no later call reads another's answer.
    idle: Mutex<Option<Connection>>,
}

/// The answer to a request that is repeated until it is answered.
pub(crate) struct Repeated<T> {
    pub(crate) answer: T,
    /// True if the answer to an earlier attempt is unknown: it may have been applied.
    pub(crate) after_unknown: bool,
}

impl<R: Runtime> Client<R> {
    /// Creates a client of the service at `address`, written `host:port`. It connects when it is first used.
    pub fn new(runtime: R, address: &str) -> Self {
        Self {
            runtime,
            address: address.into(),
            #[cfg(feature = "tls")]
            tls: None,
            bearer: None,
            idle: Mutex::new(None),
        }
    }

    /// Creates a client as [`Client::new`] does, whose connections are over TLS. The service's certificate
    /// must be for the host of `address`, unless the options of `connector` name another.
    #[cfg(feature = "tls")]
    pub fn over_tls(runtime: R, address: &str, connector: TlsConnector) -> Self {
        Self { tls: Some(connector), ..Self::new(runtime, address) }
    }

    /// Sends `token` with each request. Anyone on the way can read it: use TLS.
    #[must_use]
    pub fn with_bearer(self, token: BearerToken) -> Self {
        Self { bearer: Some(token), ..self }
    }

    /// Writes to `key` once.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; after [`ClientError::Unknown`] only the very same write is safe to send.
    pub async fn put(
        &self,
        key: &ResourceKey,
        write: &Write,
        deadline: Instant,
    ) -> Result<PutAnswer, ClientError> {
        self.beside(&Beside::NONE).put(key, write, deadline).await
    }

    /// Writes to `key` and repeats the very same write, until the service answers or `deadline` passes.
    /// `write` needs an owner: without one a retry looks like a duplicate, and is refused.
    ///
    /// # Errors
    ///
    /// The last attempt's; [`ClientError::Unknown`] if any attempt ended so.
    ///
    /// # Example
    ///
    /// ```
    /// # mod service { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/service.rs")); }
    /// # service::run(async |runtime, client| {
    /// # use std::time::Duration;
    /// # use dlock::Runtime;
    /// # use resource::client::{PutAnswer, Retry};
    /// # use resource::{OwnerToken, ResourceKey, fence::Guard, store::Write};
    /// # let (key, deadline) = (ResourceKey::new("orders:42")?, runtime.now() + Duration::from_secs(5));
    /// let owner = Some(OwnerToken::new("b:28999649")?);
    /// let write = Write { guard: Guard::token("34".parse()?), owner, body: "paid".into() };
    /// // The same write again, as after a lost answer, gets the first answer.
    /// for _ in 0..2 {
    ///     let answer = client.put_with_retry(&key, &write, deadline, Retry::default()).await?;
    ///     assert_eq!(answer, PutAnswer::Accepted { version: 1 });
    /// }
    /// # Ok(()) });
    /// ```
    pub async fn put_with_retry(
        &self,
        key: &ResourceKey,
        write: &Write,
        deadline: Instant,
        retry: Retry,
    ) -> Result<PutAnswer, ClientError> {
        self.beside(&Beside::NONE).put_with_retry(key, write, deadline, retry).await
    }

    /// Reads `key` without a claim.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; a plain read may be asked again.
    pub async fn read(&self, key: &ResourceKey, deadline: Instant) -> Result<ReadAnswer, ClientError> {
        self.read_as(key, &Read::default(), deadline).await
    }

    /// Reads `key` and claims `token` for `owner`: from then on no older holder can write.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; a claim is idempotent and may be asked again.
    ///
    /// # Example
    ///
    /// ```
    /// # mod service { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/service.rs")); }
    /// # service::run(async |runtime, client| {
    /// # use std::time::Duration;
    /// # use dlock::{FencingToken, Runtime};
    /// # use resource::ResourceKey;
    /// # use resource::client::ReadAnswer;
    /// # let (key, deadline) = (ResourceKey::new("orders:42")?, runtime.now() + Duration::from_secs(5));
    /// let (old, new): (FencingToken, FencingToken) = ("33".parse()?, "34".parse()?);
    /// let answer = client.fenced_read(&key, new, None, deadline).await?;
    /// assert!(matches!(answer, ReadAnswer::Read(_)));
    /// // The older holder can't even read for its work any more.
    /// let answer = client.fenced_read(&key, old, None, deadline).await?;
    /// assert_eq!(answer, ReadAnswer::Stale { seen: new, got: old });
    /// # Ok(()) });
    /// ```
    pub async fn fenced_read(
        &self,
        key: &ResourceKey,
        token: FencingToken,
        owner: Option<&OwnerToken>,
        deadline: Instant,
    ) -> Result<ReadAnswer, ClientError> {
        self.read_as(key, &Read { claim: Some(token), owner: owner.cloned() }, deadline).await
    }

    /// Reads `key` as `read` says. An unfenced read may name its reader too, so that histories show it.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; any read may be asked again.
    pub async fn read_as(
        &self,
        key: &ResourceKey,
        read: &Read,
        deadline: Instant,
    ) -> Result<ReadAnswer, ClientError> {
        self.beside(&Beside::NONE).read_as(key, read, deadline).await
    }

    /// Returns whether the service refuses stale tokens.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; it may be asked again.
    pub async fn fencing(&self, deadline: Instant) -> Result<Fencing, ClientError> {
        let (status, body) = self.exchange(|| fencing_request(&self.address), deadline).await?;
        fencing_answer(status, &body)
    }

    /// Repeats requests made by `request` until `answer` accepts the response or `deadline` passes.
    async fn repeat<T>(
        &self,
        request: impl Fn() -> Result<Request<Full<Bytes>>, ClientError>,
        answer: fn(StatusCode, &[u8]) -> Result<T, ClientError>,
        deadline: Instant,
        retry: Retry,
    ) -> Result<Repeated<T>, ClientError> {
        let mut unknown = false;
        loop {
            let attempt = deadline.min(self.runtime.now() + retry.attempt);
            let answered = self.exchange(&request, attempt).await;
            let failure = match answered.and_then(|(status, body)| answer(status, &body)) {
                Err(ClientError::Unknown(failure)) => {
                    unknown = true;
                    failure
                }
                Err(ClientError::NotSent(failure)) => failure,
                // The bearer token may have changed meanwhile. The earlier attempt may be applied all the
                // same.
                Err(ClientError::Refused { status, error, help }) if unknown => {
                    let refused =
                        format!("the service then refused a repetition ({status}): {error}; {help}");
                    return Err(ClientError::Unknown(Failure::Service(refused)));
                }
                answered => {
                    sometimes!(self.runtime, retry_answered, unknown);
                    return answered.map(|answer| Repeated { answer, after_unknown: unknown });
                }
            };
            let pause = match &failure {
                Failure::RateLimited(wait) => retry.pause.max(*wait),
                _ => retry.pause,
            };
            if self.runtime.now() + pause >= deadline {
                sometimes!(self.runtime, write_unanswered, unknown);
                return Err(if unknown {
                    ClientError::Unknown(failure)
                } else {
                    ClientError::NotSent(failure)
                });
            }
            self.runtime.sleep_until(self.runtime.now() + pause).await;
        }
    }

    /// Sends a request made by `request`, and returns the whole answer.
    async fn exchange(
        &self,
        request: impl Fn() -> Result<Request<Full<Bytes>>, ClientError>,
        deadline: Instant,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        loop {
            let (mut connection, reused) = self.checkout(deadline).await?;
            // After a long pause the deadline may have passed: don't send the request any more.
            if self.runtime.now() >= deadline {
                return Err(ClientError::NotSent(Failure::Timeout));
            }
            match timeout_at(&self.runtime, deadline, connection.round_trip(self.signed(request()?)?)).await {
                Ok(Ok(answer)) => {
                    self.check_in(connection);
                    return Ok(answer);
                }
                // The service closed a connection that had been idle, before anything was written to it.
                Ok(Err(ClientError::NotSent(_))) if reused => reached!(self.runtime, idle_connection_closed),
                Ok(Err(ClientError::NotSent(failure))) => {
                    let cause = timeout_at(&self.runtime, deadline, connection.failure()).await;
                    return Err(ClientError::NotSent(cause.ok().flatten().unwrap_or(failure)));
                }
                Ok(Err(error)) => return Err(error),
                Err(Elapsed) => return Err(ClientError::Unknown(Failure::Timeout)),
            }
        }
    }

    /// Adds the bearer token, if there is one.
    fn signed(&self, mut request: Request<Full<Bytes>>) -> Result<Request<Full<Bytes>>, ClientError> {
        if let Some(token) = &self.bearer {
            let mut value = HeaderValue::try_from(token.authorization()).map_err(not_sent)?;
            // Its `Debug` does not show it.
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        Ok(request)
    }

    /// Returns a connection that is ready for a request, and whether it has served one before.
    async fn checkout(&self, deadline: Instant) -> Result<(Connection, bool), ClientError> {
        let ready = async {
            // A separate statement: the guard must not live during the wait.
            let idle = self.idle().take();
            if let Some(mut connection) = idle
                && connection.is_ready().await
            {
                return Ok((connection, true));
            }
            Ok((self.connect().await?, false))
        };
        match timeout_at(&self.runtime, deadline, ready).await {
            Ok(connection) => connection,
            Err(Elapsed) => Err(ClientError::NotSent(Failure::Timeout)),
        }
    }

    async fn connect(&self) -> Result<Connection, ClientError> {
        let stream = self.runtime.connect(&self.address).await.map_err(not_sent)?;
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            let stream = tls.connect(stream, &self.address).await.map_err(not_sent)?;
            return Connection::open(&self.runtime, stream).await;
        }
        Connection::open(&self.runtime, stream).await
    }

    fn check_in(&self, connection: Connection) {
        if !connection.is_closed() {
            *self.idle() = Some(connection);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Option<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Runtime> fmt::Debug for Client<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

fn not_sent(error: impl std::error::Error) -> ClientError {
    ClientError::NotSent(Failure::of(&error))
}

probes! {
    /// A write was not answered in time, repetitions included: it may have been applied.
    sometimes write_unanswered;
    /// A write was repeated after its answer was lost, and then answered.
    sometimes retry_answered;
    /// The service had closed an idle connection: the request goes over another one.
    reached idle_connection_closed;
}
