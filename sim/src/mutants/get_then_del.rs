//! Release by GET and DEL: the lease may expire between the two, and the DEL then deletes the next owner's lock.

use std::sync::Arc;

use dlock::backend::{Answer, Backend, BackendError, Claim, Renewal};
use dlock::redis::{Redis, Trail};
use dlock::{Instant, Released, Runtime};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, FromRedisValue, RedisConnectionInfo, RedisError};

/// The Redis lock with this one mistake; all else is the library's own.
pub struct GetThenDel<R: Runtime> {
    correct: Redis<R>,
    address: Arc<str>,
}

impl<R: Runtime> GetThenDel<R> {
    /// Wraps the correct lock; releases go to the same server, `address`, over connections of their own.
    pub fn new(correct: Redis<R>, address: &str) -> Self {
        Self { correct, address: address.into() }
    }

    async fn get_then_del(&self, claim: &Claim) -> Result<Released, BackendError> {
        let unreachable = |reason: std::io::Error| BackendError::Unreachable {
            address: self.address.to_string(),
            reason: reason.to_string(),
        };
        let stream = self.runtime().connect(&self.address).await.map_err(unreachable)?;
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let info = RedisConnectionInfo::default();
        let (mut connection, driver) =
            MultiplexedConnection::new_with_config(&info, stream, config).await.map_err(disconnected)?;
        self.runtime().spawn(driver);
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

async fn ask<T: FromRedisValue>(
    connection: &mut MultiplexedConnection,
    command: &Cmd,
) -> Result<T, BackendError> {
    command.query_async(connection).await.map_err(disconnected)
}

fn disconnected(error: RedisError) -> BackendError {
    BackendError::Disconnected { reason: error.to_string() }
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
        Self { correct: self.correct.clone(), address: Arc::clone(&self.address) }
    }
}
