//! A backend that is chosen at run time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime};
use futures_util::future::BoxFuture;

use crate::backend::{Acquisition, Answer, Backend, Claim, Holder, Released, Renewal};
use crate::error::BackendError;
use crate::key::LockKey;
use crate::token::FencingToken;

/// Any backend on the runtime `R`, for programs that choose theirs at run time.
///
/// Each call allocates its future. A program that knows its backend when it is compiled uses that type
/// instead.
///
/// # Example
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
/// # example::run(async |_, runtime, key| {
/// # use std::time::Duration;
/// # use example::Memory;
/// use dlock::{AnyBackend, Lock, Options};
///
/// let backend = match "memory" {
///     "memory" => AnyBackend::new(Memory::new(runtime)),
///     name => return Err(format!("no backend is called {name}").into()),
/// };
/// let lock = Lock::new(backend, Options::new(Duration::from_secs(2)))?;
/// assert_eq!(lock.try_acquire(&key).await?.fence().as_u64(), 1);
/// # Ok(()) });
/// ```
pub struct AnyBackend<R: Runtime>(Arc<dyn Erased<R>>);

/// One attempt to hold one lease on any backend.
pub struct AnyAcquisition(Box<dyn ErasedAcquisition>);

impl<R: Runtime> AnyBackend<R> {
    /// Erases the type of `backend`.
    pub fn new(backend: impl Backend<Runtime = R>) -> Self {
        Self(Arc::new(backend))
    }
}

impl<R: Runtime> Backend for AnyBackend<R> {
    type Runtime = R;
    type Acquisition = AnyAcquisition;

    fn runtime(&self) -> &R {
        self.0.erased_runtime()
    }

    fn system(&self) -> &'static str {
        self.0.erased_system()
    }

    fn session_ttl(&self) -> Option<Duration> {
        self.0.erased_session_ttl()
    }

    fn has_permits(&self) -> bool {
        self.0.erased_has_permits()
    }

    fn has_readers(&self) -> bool {
        self.0.erased_has_readers()
    }

    fn has_queue(&self, permits: u32) -> bool {
        self.0.erased_has_queue(permits)
    }

    async fn connect(&self, deadline: Instant) -> Result<(), BackendError> {
        self.0.boxed_connect(deadline).await
    }

    async fn holder(&self, key: &LockKey, deadline: Instant) -> Result<Option<Holder>, BackendError> {
        self.0.boxed_holder(key, deadline).await
    }

    fn open(&self, claim: Claim) -> AnyAcquisition {
        AnyAcquisition(self.0.erased_open(claim))
    }
}

impl Acquisition for AnyAcquisition {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        self.0.boxed_request(deadline).await
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        self.0.boxed_wait(deadline).await
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        self.0.boxed_renew(deadline).await
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        self.0.boxed_release(deadline).await
    }

    fn set_ttl(&mut self, ttl: Duration) {
        self.0.erased_set_ttl(ttl);
    }

    fn beside(&self) -> Vec<FencingToken> {
        self.0.erased_beside()
    }

    fn needs_cleanup(&self) -> bool {
        self.0.erased_needs_cleanup()
    }

    fn is_repeatable(&self) -> bool {
        self.0.erased_is_repeatable()
    }
}

impl<R: Runtime> Clone for AnyBackend<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Runtime> fmt::Debug for AnyBackend<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyBackend").field(&self.0.erased_system()).finish()
    }
}

/// [`Backend`], without its types.
trait Erased<R>: Send + Sync {
    fn erased_runtime(&self) -> &R;
    fn erased_system(&self) -> &'static str;
    fn erased_session_ttl(&self) -> Option<Duration>;
    fn erased_has_permits(&self) -> bool;
    fn erased_has_readers(&self) -> bool;
    fn erased_has_queue(&self, permits: u32) -> bool;
    fn boxed_connect(&self, deadline: Instant) -> BoxFuture<'_, Result<(), BackendError>>;
    fn boxed_holder<'a>(
        &'a self,
        key: &'a LockKey,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Option<Holder>, BackendError>>;
    fn erased_open(&self, claim: Claim) -> Box<dyn ErasedAcquisition>;
}

impl<B: Backend> Erased<B::Runtime> for B {
    fn erased_runtime(&self) -> &B::Runtime {
        self.runtime()
    }

    fn erased_system(&self) -> &'static str {
        self.system()
    }

    fn erased_session_ttl(&self) -> Option<Duration> {
        self.session_ttl()
    }

    fn erased_has_permits(&self) -> bool {
        self.has_permits()
    }

    fn erased_has_readers(&self) -> bool {
        self.has_readers()
    }

    fn erased_has_queue(&self, permits: u32) -> bool {
        self.has_queue(permits)
    }

    fn boxed_connect(&self, deadline: Instant) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(self.connect(deadline))
    }

    fn boxed_holder<'a>(
        &'a self,
        key: &'a LockKey,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Option<Holder>, BackendError>> {
        Box::pin(self.holder(key, deadline))
    }

    fn erased_open(&self, claim: Claim) -> Box<dyn ErasedAcquisition> {
        Box::new(self.open(claim))
    }
}

/// [`Acquisition`], with boxed futures.
trait ErasedAcquisition: Send {
    fn boxed_request(&mut self, deadline: Instant) -> BoxFuture<'_, Result<Answer, BackendError>>;
    fn boxed_wait(&mut self, deadline: Instant) -> BoxFuture<'_, Result<(), BackendError>>;
    fn boxed_renew(&mut self, deadline: Instant) -> BoxFuture<'_, Result<Renewal, BackendError>>;
    fn boxed_release(&mut self, deadline: Instant) -> BoxFuture<'_, Result<Released, BackendError>>;
    fn erased_set_ttl(&mut self, ttl: Duration);
    fn erased_beside(&self) -> Vec<FencingToken>;
    fn erased_needs_cleanup(&self) -> bool;
    fn erased_is_repeatable(&self) -> bool;
}

impl<A: Acquisition> ErasedAcquisition for A {
    fn boxed_request(&mut self, deadline: Instant) -> BoxFuture<'_, Result<Answer, BackendError>> {
        Box::pin(self.request(deadline))
    }

    fn boxed_wait(&mut self, deadline: Instant) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(self.wait(deadline))
    }

    fn boxed_renew(&mut self, deadline: Instant) -> BoxFuture<'_, Result<Renewal, BackendError>> {
        Box::pin(self.renew(deadline))
    }

    fn boxed_release(&mut self, deadline: Instant) -> BoxFuture<'_, Result<Released, BackendError>> {
        Box::pin(self.release(deadline))
    }

    fn erased_set_ttl(&mut self, ttl: Duration) {
        self.set_ttl(ttl);
    }

    fn erased_beside(&self) -> Vec<FencingToken> {
        self.beside()
    }

    fn erased_needs_cleanup(&self) -> bool {
        self.needs_cleanup()
    }

    fn erased_is_repeatable(&self) -> bool {
        self.is_repeatable()
    }
}
