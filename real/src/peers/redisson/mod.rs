//! Redisson's locks and semaphores by their algorithms, through the redis crate: their scripts written anew,
//! their wait for a message or for the end of a lease, whichever comes first. Without timeouts and retries.
//!
//! Source: Redisson, `RedissonPermitExpirableSemaphore`, `RedissonLock`, `RedissonReadLock`,
//! `RedissonWriteLock`, `LockPubSub`. None of them has fencing tokens. Its releases also store their answer
//! for a retry, and remove it by one more command: left out here, in its favour.

mod client;
mod locks;
mod permits;

use redis::RedisResult;
use tokio::runtime::Builder;

use self::client::{Algorithm, alone, together};
use self::locks::{ReadWriteLock, ReentrantLock};
use self::permits::Permits;
use super::PeerError;
use super::raw_redis::connect;
use super::slice::{Job, Peer, Scenario, Slice};

/// The peer's name.
pub(super) const NAME: &str = "Redisson's algorithm, redis crate";

/// Its locks and semaphores on one Redis.
pub(super) struct Redisson {
    pub(super) server: String,
}

impl Peer for Redisson {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&mut self, job: &Job) -> Result<Slice, PeerError> {
        let failed = |what: String| PeerError::Failed { name: NAME, what };
        let executor = Builder::new_current_thread().enable_all().build();
        let executor = executor.map_err(|error| failed(error.to_string()))?;
        executor.block_on(self.measure(job)).map_err(|error| failed(error.to_string()))
    }
}

impl Redisson {
    async fn measure(&self, job: &Job) -> RedisResult<Slice> {
        let connection = connect(&self.server).await?;
        match job.scenario {
            Scenario::Permit | Scenario::Crowd => self.with(Permits::new(connection, job).await?, job).await,
            Scenario::Nested => self.with(ReentrantLock::new(connection, job).await?, job).await,
            _ => self.with(ReadWriteLock::new(connection, job).await?, job).await,
        }
    }

    async fn with<A: Algorithm>(&self, lock: A, job: &Job) -> RedisResult<Slice> {
        match job.scenario {
            Scenario::Crowd | Scenario::Mixed => together(&self.server, lock, job).await,
            _ => alone(lock, job).await,
        }
    }
}
