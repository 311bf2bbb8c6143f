//! Release by GET and DEL: the lease may expire between the two, and the DEL then deletes the next owner's
//! lock.

use std::time::Duration;

use dlock::redis::Redis;
use dlock::{Acquisition, Answer, Backend, BackendError, Claim, Instant, Released, Renewal, Runtime};

use super::wire::{Wire, ask};

/// The Redis lock with this one mistake; otherwise it is the library's own.
pub(super) struct GetThenDel<R: Runtime> {
    correct: Redis<R>,
    wire: Wire<R>,
}

impl<R: Runtime> GetThenDel<R> {
    /// Wraps the correct lock; releases go to the same server, `address`, over connections of their own.
    pub(super) fn new(correct: Redis<R>, address: &str) -> Self {
        let wire = Wire::new(correct.runtime().clone(), address);
        Self { correct, wire }
    }

    async fn get_then_del(&self, claim: &Claim) -> Result<Released, BackendError> {
        let mut connection = self.wire.open().await?;
        let key = claim.key.owner_key();
        let owner: Option<String> = ask(&mut connection, redis::cmd("GET").arg(&key)).await?;
        // A token from a shared counter is stored behind the owner.
        let rest = owner.as_deref().and_then(|stored| stored.strip_prefix(claim.owner.as_str()));
        if !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#')) {
            return Ok(Released::NotOwner);
        }
        // Here the lease may expire, and another client may acquire.
        let _: u64 = ask(&mut connection, redis::cmd("DEL").arg(&key)).await?;
        Ok(Released::Done)
    }
}

impl<R: Runtime> Backend for GetThenDel<R> {
    type Runtime = R;
    type Acquisition = GetThenDelAcquisition<R>;

    fn runtime(&self) -> &R {
        self.correct.runtime()
    }

    fn system(&self) -> &'static str {
        self.correct.system()
    }

    fn open(&self, claim: Claim) -> GetThenDelAcquisition<R> {
        GetThenDelAcquisition { lock: self.clone(), correct: self.correct.open(claim.clone()), claim }
    }
}

/// One acquisition: the correct one, except for its release.
pub(super) struct GetThenDelAcquisition<R: Runtime> {
    lock: GetThenDel<R>,
    correct: <Redis<R> as Backend>::Acquisition,
    claim: Claim,
}

impl<R: Runtime> Acquisition for GetThenDelAcquisition<R> {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        self.correct.request(deadline).await
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        self.lock.runtime().sleep_until(deadline).await;
        Ok(())
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        self.correct.renew(deadline).await
    }

    /// Releases without a deadline, as libraries with this mistake do.
    async fn release(&mut self, _: Instant) -> Result<Released, BackendError> {
        self.lock.get_then_del(&self.claim).await
    }

    fn set_ttl(&mut self, ttl: Duration) {
        self.correct.set_ttl(ttl);
    }

    fn needs_cleanup(&self) -> bool {
        self.correct.needs_cleanup()
    }
}

impl<R: Runtime> Clone for GetThenDel<R> {
    fn clone(&self) -> Self {
        Self { correct: self.correct.clone(), wire: self.wire.clone() }
    }
}
