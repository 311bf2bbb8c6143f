//! Release by GET and DEL: the lease may expire between the two, and the DEL then deletes the next owner's lock.

use dlock::backend::{Answer, Backend, BackendError, Claim, Renewal};
use dlock::redis::{Redis, Trail};
use dlock::{Instant, Released, Runtime};

use super::wire::{Wire, ask};

/// The Redis lock with this one mistake; all else is the library's own.
pub struct GetThenDel<R: Runtime> {
    correct: Redis<R>,
    wire: Wire<R>,
}

impl<R: Runtime> GetThenDel<R> {
    /// Wraps the correct lock; releases go to the same server, `address`, over connections of their own.
    pub fn new(correct: Redis<R>, address: &str) -> Self {
        let wire = Wire::new(correct.runtime().clone(), address);
        Self { correct, wire }
    }

    async fn get_then_del(&self, claim: &Claim) -> Result<Released, BackendError> {
        let mut connection = self.wire.open().await?;
        let key = claim.key.owner_key();
        let owner: Option<String> = ask(&mut connection, redis::cmd("GET").arg(&key)).await?;
        if owner.as_deref() != Some(claim.owner.as_str()) {
            return Ok(Released::NotOwner);
        }
        // Here the lease may expire, and another may acquire.
        let _: u64 = ask(&mut connection, redis::cmd("DEL").arg(&key)).await?;
        Ok(Released::Done)
    }
}

impl<R: Runtime> Backend for GetThenDel<R> {
    type Runtime = R;
    type Trail = Trail;

    fn runtime(&self) -> &R {
        self.correct.runtime()
    }

    async fn acquire(
        &self,
        claim: &Claim,
        trail: &mut Trail,
        patience: Instant,
    ) -> Result<Answer, BackendError> {
        self.correct.acquire(claim, trail, patience).await
    }

    async fn renew(
        &self,
        claim: &Claim,
        trail: &mut Trail,
        patience: Instant,
    ) -> Result<Renewal, BackendError> {
        self.correct.renew(claim, trail, patience).await
    }

    /// Without a deadline, as in the libraries that it stands for.
    async fn release(&self, claim: &Claim, _: &mut Trail, _: Instant) -> Result<Released, BackendError> {
        self.get_then_del(claim).await
    }
}

impl<R: Runtime> Clone for GetThenDel<R> {
    fn clone(&self) -> Self {
        Self { correct: self.correct.clone(), wire: self.wire.clone() }
    }
}
