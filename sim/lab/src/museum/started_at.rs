//! R04: validity is judged by a "started at" that the holder took from its wall clock, and that others
//! compare with their clocks. A client whose clock is ahead takes over a valid lease.
//!
//! Source: the recipe of `SETNX` with a timestamp as the value, in the documentation of Redis before 2.6.12;
//! lock tables with a column `started_at`.

use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, Answer, BackendError, FencingToken, Instant, Renewal, Runtime};

/// Makes the lease another owner's, and counts the grant. The count is read as text, since a number of Lua is
/// exact up to 2^53 only.
const TAKE_OVER: &str = "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) \
                         redis.call('INCR', KEYS[2]) return redis.call('GET', KEYS[2])";

/// Takes over a lease that it judges to be over.
pub(super) struct StartedAt;

impl LockMistake for StartedAt {
    const SENDS: bool = true;

    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = match own.correct.request(deadline).await? {
            Answer::Taken { left } => take_over(own, deadline).await?.unwrap_or(Answer::Taken { left }),
            answer => answer,
        };
        if let Answer::Granted { .. } = answer {
            note_start(own, deadline).await?;
        }
        Ok(answer)
    }

    async fn renew(own: &mut Attempt, deadline: Instant) -> Result<Renewal, BackendError> {
        let renewal = own.correct.renew(deadline).await?;
        if let Renewal::Extended { .. } = renewal {
            note_start(own, deadline).await?;
        }
        Ok(renewal)
    }
}

async fn take_over(own: &mut Attempt, deadline: Instant) -> Result<Option<Answer>, BackendError> {
    let mut get = redis::cmd("GET");
    let started = own.by(deadline, own.wire.ask::<Option<u64>>(get.arg(started_key(own)))).await?;
    let ttl = own.claim.ttl.as_millis() as u64;
    if started.is_none_or(|started| wall_millis(own) < started + ttl) {
        return Ok(None);
    }
    let since = own.runtime().now();
    let mut command = redis::cmd("EVAL");
    command.arg(TAKE_OVER).arg(2).arg(own.claim.key.owner_key()).arg(own.claim.key.fence_key());
    command.arg(own.claim.owner.as_str()).arg(ttl);
    let count = own.by(deadline, own.wire.ask::<u64>(&command)).await?;
    Ok(FencingToken::new(count).map(|token| Answer::Granted { token, since, left: own.claim.ttl }))
}

/// Stores the begin of the lease, by the holder's wall clock.
async fn note_start(own: &Attempt, deadline: Instant) -> Result<(), BackendError> {
    let mut set = redis::cmd("SET");
    set.arg(started_key(own)).arg(wall_millis(own));
    own.by(deadline, own.wire.ask::<String>(&set)).await.map(drop)
}

fn started_key(own: &Attempt) -> String {
    own.claim.key.owner_key() + ":started"
}

fn wall_millis(own: &Attempt) -> u64 {
    own.runtime().wall_nanos() / 1_000_000
}
