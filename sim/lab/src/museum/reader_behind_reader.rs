//! R18: a reader in a queue looks at the entry directly ahead alone. If that is a reader, it goes in,
//! although both are behind a writer.

use std::future::Future;

use dlock::etcd::Etcd;
use dlock::zookeeper::ZooKeeper;
use dlock::{Acquisition, Answer, BackendError, FencingToken, Instant, LockKey, Runtime};
use dlock_zookeeper::path::is_reader;
use sim::world::runtime::SimRuntime;

use crate::Correct;
use crate::kit::{Attempt, LockMistake};

/// Follows a reader into the lock, whether that has it or not.
pub(super) struct ReaderBehindReader;

impl<B: Queue> LockMistake<B> for ReaderBehindReader {
    async fn request(own: &mut Attempt<B>, deadline: Instant) -> Result<Answer, BackendError> {
        let since = own.runtime().now();
        let answer = own.correct.request(deadline).await?;
        let Answer::Queued { position } = answer else { return Ok(answer) };
        if !own.claim.is_shared() {
            return Ok(answer);
        }
        let follows_reader = B::follows_reader(own, position, deadline).await?;
        Ok(match FencingToken::new(position).filter(|_| follows_reader) {
            Some(token) => Answer::Granted { token, since, left: own.claim.ttl },
            None => answer,
        })
    }
}

/// A lock that is a queue of entries.
pub(super) trait Queue: Correct {
    /// Returns whether the entry right before `position` is that of a reader.
    fn follows_reader(
        own: &Attempt<Self>,
        position: u64,
        deadline: Instant,
    ) -> impl Future<Output = Result<bool, BackendError>> + Send;
}

impl Queue for Etcd<SimRuntime> {
    async fn follows_reader(
        own: &Attempt<Self>,
        position: u64,
        deadline: Instant,
    ) -> Result<bool, BackendError> {
        let ahead = own.by(deadline, own.etcd.ahead(&own.claim, position)).await?;
        let reader = own.claim.key.etcd_queue() + LockKey::ETCD_READER;
        Ok(ahead.kv.is_some_and(|kv| kv.key().starts_with(reader.as_bytes())))
    }
}

impl Queue for ZooKeeper<SimRuntime> {
    async fn follows_reader(
        own: &Attempt<Self>,
        position: u64,
        deadline: Instant,
    ) -> Result<bool, BackendError> {
        let ahead = own.zookeeper.ahead(&own.claim, position, deadline).await?;
        Ok(ahead.is_some_and(|entry| is_reader(&entry.name)))
    }
}
