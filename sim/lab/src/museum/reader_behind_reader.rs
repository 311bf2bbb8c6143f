//! R18: a reader in a queue looks at the entry directly ahead alone. If that is a reader, it goes in,
//! although both are behind a writer.

use dlock::etcd::Etcd;
use dlock::{Acquisition, Answer, BackendError, FencingToken, Instant, LockKey, Runtime};
use sim::world::runtime::SimRuntime;

use crate::kit::{Attempt, LockMistake};

/// Follows a reader into the lock, whether that has it or not.
pub(super) struct ReaderBehindReader;

impl LockMistake<Etcd<SimRuntime>> for ReaderBehindReader {
    async fn request(own: &mut Attempt<Etcd<SimRuntime>>, deadline: Instant) -> Result<Answer, BackendError> {
        let since = own.runtime().now();
        let answer = own.correct.request(deadline).await?;
        let Answer::Queued { position } = answer else { return Ok(answer) };
        if !own.claim.is_shared() {
            return Ok(answer);
        }
        let ahead = own.by(deadline, own.etcd.ahead(&own.claim, position)).await?;
        let reader = own.claim.key.etcd_queue() + LockKey::ETCD_READER;
        let is_reader = ahead.kv.is_some_and(|kv| kv.key().starts_with(reader.as_bytes()));
        Ok(match FencingToken::new(position).filter(|_| is_reader) {
            Some(token) => Answer::Granted { token, since, left: own.claim.ttl },
            None => answer,
        })
    }
}
