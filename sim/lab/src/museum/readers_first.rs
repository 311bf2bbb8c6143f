//! R30: readers go in as long as others are inside, although a writer waits. If they keep coming, it is never
//! served.
//!
//! Source: Courtois, Heymans, Parnas, "Concurrent control with readers and writers" (CACM 14(10), 1971):
//! their first problem, whose solution lets writers starve.

use dlock::{Answer, BackendError, FencingToken, Instant, Runtime};
use redis::Value;

use crate::kit::{Attempt, LockMistake};

/// Overlooks the writers that wait.
pub(super) struct ReadersFirst;

impl LockMistake for ReadersFirst {
    const SENDS: bool = true;

    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        if !own.claim.is_shared() {
            return dlock::Acquisition::request(&mut own.correct, deadline).await;
        }
        let since = own.runtime().now();
        let key = &own.claim.key;
        let correct = dlock::scripts().find(|(name, _)| *name == "acquire_reader");
        let mut command = redis::cmd("EVAL");
        command.arg(correct.map_or("", |(_, text)| text)).arg(5);
        command.arg(key.owner_key()).arg(key.readers_key()).arg(key.reads_key());
        // The correct script with a key that has no writers.
        command.arg(key.writers_key() + ":nobody").arg(key.fence_key());
        command.arg(own.claim.owner.as_str()).arg(own.claim.ttl.as_millis() as u64);
        let answer = own.by(deadline, own.wire.ask::<Vec<Value>>(&command)).await?;
        Ok(match answer.as_slice() {
            [Value::Int(2), Value::BulkString(token), ..] => match token_in(token) {
                Some(token) => Answer::Granted { token, since, left: own.claim.ttl },
                None => Answer::Taken { left: None },
            },
            _ => Answer::Taken { left: None },
        })
    }
}

fn token_in(text: &[u8]) -> Option<FencingToken> {
    FencingToken::new(std::str::from_utf8(text).ok()?.parse().ok()?)
}
