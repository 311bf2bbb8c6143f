//! R33: those that wait have places in a queue, and look only whether the lock is free. The one that looks
//! first after a release takes it, past those that came before.
//!
//! On etcd and ZooKeeper the lock is a key apart from the queue, which the library's lock of another key
//! makes. The twin takes it if it is the first in that queue. On Redis the mistake sends `SET NX` before it
//! asks for a place in the library's queue.
//!
//! Source: Lea, "The java.util.concurrent Synchronizer Framework" (2005), on barging, which `ReentrantLock`
//! allows unless it is created as a fair one.

use std::future::Future;

use dlock::etcd::Etcd;
use dlock::zookeeper::ZooKeeper;
use dlock::{Acquisition, Answer, BackendError, Claim, FencingToken, Instant, LockKey, Released};
use dlock::{Renewal, Runtime};
use sim::world::runtime::SimRuntime;

use crate::kit::{Attempt, LockMistake};
use crate::{Correct, Options, StoredLock, System};

/// Takes the lock of etcd or ZooKeeper if it is free.
pub(super) struct Barging;

/// Takes the lock of etcd or ZooKeeper in the order of the queue: the twin.
pub(super) struct InTurn;

/// Takes the lock of Redis if it is free, before it asks for a place in the queue.
pub(super) struct LockFirst;

impl<B: Apart> LockMistake<B> for Barging {
    const SENDS: bool = true;

    async fn request(own: &mut Attempt<B>, deadline: Instant) -> Result<Answer, BackendError> {
        let (position, _) = match wait_in_line(own, deadline).await? {
            Ok(place) => place,
            Err(answer) => return Ok(answer),
        };
        Ok(B::take(own, deadline).await?.unwrap_or(Answer::Placed { position, left: None }))
    }

    async fn wait(own: &mut Attempt<B>, deadline: Instant) -> Result<(), BackendError> {
        sleep(own, deadline).await
    }

    async fn renew(own: &mut Attempt<B>, deadline: Instant) -> Result<Renewal, BackendError> {
        B::renew(own, deadline).await
    }

    async fn release(own: &mut Attempt<B>, deadline: Instant) -> Result<Released, BackendError> {
        give_back(own, deadline).await
    }
}

impl<B: Apart> LockMistake<B> for InTurn {
    const SENDS: bool = true;

    async fn request(own: &mut Attempt<B>, deadline: Instant) -> Result<Answer, BackendError> {
        let (position, is_first) = match wait_in_line(own, deadline).await? {
            Ok(place) => place,
            Err(answer) => return Ok(answer),
        };
        let taken = if is_first { B::take(own, deadline).await? } else { None };
        Ok(taken.unwrap_or(Answer::Placed { position, left: None }))
    }

    async fn wait(own: &mut Attempt<B>, deadline: Instant) -> Result<(), BackendError> {
        sleep(own, deadline).await
    }

    async fn renew(own: &mut Attempt<B>, deadline: Instant) -> Result<Renewal, BackendError> {
        B::renew(own, deadline).await
    }

    async fn release(own: &mut Attempt<B>, deadline: Instant) -> Result<Released, BackendError> {
        give_back(own, deadline).await
    }
}

/// Requests a place in the queue, and returns it with whether it is the first one; the answer if there is
/// none.
async fn wait_in_line<B: Apart>(
    own: &mut Attempt<B>,
    deadline: Instant,
) -> Result<Result<(u64, bool), Answer>, BackendError> {
    if own.noted.is_none() {
        own.correct = own.open(in_line(&own.claim));
        own.noted = Some(0);
    }
    Ok(match own.correct.request(deadline).await? {
        Answer::Granted { token, .. } => Ok((token.as_u64(), true)),
        Answer::Queued { position } => Ok((position, false)),
        answer => Err(answer),
    })
}

async fn sleep<B: Apart>(own: &mut Attempt<B>, deadline: Instant) -> Result<(), BackendError> {
    let runtime = own.runtime().clone();
    runtime.sleep_until(deadline).await;
    Ok(())
}

/// Gives the lock back, then the place in the queue.
async fn give_back<B: Apart>(own: &mut Attempt<B>, deadline: Instant) -> Result<Released, BackendError> {
    let is_given_back = B::give_back(own, deadline).await?;
    own.correct.release(deadline).await?;
    Ok(if is_given_back { Released::Done } else { Released::NotOwner })
}

/// Returns the claim of a place in the queue.
fn in_line(claim: &Claim) -> Claim {
    Claim { key: line(&claim.key), queue: None, ..claim.clone() }
}

/// Returns the key of the queue.
fn line(key: &LockKey) -> LockKey {
    LockKey::new("line", key.name()).unwrap_or_else(|_| key.clone())
}

/// Returns the path of the lock: in etcd a key, in ZooKeeper a node.
fn path(key: &LockKey) -> String {
    format!("/free-{}", dlock_zookeeper::path::escape(key.name()))
}

/// A lock that is a key apart from the queue of those that wait.
pub(super) trait Apart: Correct {
    /// Takes the lock if it is free; `None` if it is not.
    fn take(
        own: &mut Attempt<Self>,
        deadline: Instant,
    ) -> impl Future<Output = Result<Option<Answer>, BackendError>> + Send;

    /// Proves that the lock is still this owner's.
    fn renew(
        own: &mut Attempt<Self>,
        deadline: Instant,
    ) -> impl Future<Output = Result<Renewal, BackendError>> + Send;

    /// Gives the lock back; returns false if it was not this owner's.
    fn give_back(
        own: &mut Attempt<Self>,
        deadline: Instant,
    ) -> impl Future<Output = Result<bool, BackendError>> + Send;
}

/// The lock has the lease of the place in the queue, which stays until the release.
impl Apart for Etcd<SimRuntime> {
    async fn take(own: &mut Attempt<Self>, deadline: Instant) -> Result<Option<Answer>, BackendError> {
        let (place, key) = (in_line(&own.claim), path(&own.claim.key));
        let take = async {
            let Some(lease) = own.etcd.lease(&place).await? else { return Ok(None) };
            own.etcd.put_if_free(&key, &own.claim, lease).await
        };
        let Some(token) = own.by(deadline, take).await? else { return Ok(None) };
        Ok(match own.correct.renew(deadline).await? {
            Renewal::Extended { since, left } => Some(Answer::Granted { token, since, left }),
            Renewal::NotOwner => None,
        })
    }

    async fn renew(own: &mut Attempt<Self>, deadline: Instant) -> Result<Renewal, BackendError> {
        own.correct.renew(deadline).await
    }

    async fn give_back(own: &mut Attempt<Self>, deadline: Instant) -> Result<bool, BackendError> {
        own.by(deadline, own.etcd.delete_own(&path(&own.claim.key), &own.claim)).await
    }
}

/// The lock has a session of its own.
impl Apart for ZooKeeper<SimRuntime> {
    async fn take(own: &mut Attempt<Self>, deadline: Instant) -> Result<Option<Answer>, BackendError> {
        let taken = own.zookeeper.create_if_free(&path(&own.claim.key), &own.claim, deadline).await?;
        Ok(taken.map(|own| Answer::Granted { token: own.token, since: own.since, left: own.left }))
    }

    async fn renew(own: &mut Attempt<Self>, deadline: Instant) -> Result<Renewal, BackendError> {
        let kept = own.zookeeper.own(&path(&own.claim.key), &own.claim, deadline).await?;
        Ok(kept.map_or(Renewal::NotOwner, |own| Renewal::Extended { since: own.since, left: own.left }))
    }

    async fn give_back(own: &mut Attempt<Self>, deadline: Instant) -> Result<bool, BackendError> {
        own.zookeeper.delete_own(&path(&own.claim.key), &own.claim, deadline).await
    }
}

/// Stores the owner for the TTL unless another one is stored, counts the grant, and takes the owner off the
/// queue.
const TAKE: &str = "if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end \
                    redis.call('ZREM', KEYS[3], ARGV[1]) redis.call('ZREM', KEYS[4], ARGV[1]) \
                    redis.call('INCR', KEYS[2]) return redis.call('GET', KEYS[2])";

impl LockMistake for LockFirst {
    const SENDS: bool = true;

    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        let (since, key) = (own.runtime().now(), &own.claim.key);
        let mut command = redis::cmd("EVAL");
        command.arg(TAKE).arg(4).arg(key.owner_key()).arg(key.fence_key());
        command.arg(key.waiters_key()).arg(key.patience_key());
        command.arg(own.claim.owner.as_str()).arg(own.claim.ttl.as_millis() as u64);
        let count = own.by(deadline, own.wire.ask::<u64>(&command)).await?;
        match FencingToken::new(count) {
            Some(token) => Ok(Answer::Granted { token, since, left: own.claim.ttl }),
            None => own.correct.request(deadline).await,
        }
    }
}

/// Returns the form in which etcd and ZooKeeper store a lock and its queue.
pub(super) fn stored(system: System, lock: &str) -> StoredLock {
    let (kind, id) = lock.split_once(':').unwrap_or(("resource", lock));
    let Ok(key) = LockKey::new(kind, id) else { return StoredLock::Key(lock.to_owned()) };
    let waiters = match system == System::ETCD {
        true => line(&key).etcd_queue(),
        false => dlock_zookeeper::path::queue(line(&key).name()),
    };
    StoredLock::Apart { key: path(&key), waiters }
}

/// Lets workers wait for a mutex. On Redis only a queue with a limit is in order.
pub(super) fn wait_in_order(options: &mut Options) {
    super::exhibit::wait_in_queue(options, 3);
    options.waiters_max = options.waiters_max.filter(|_| options.system == System::REDIS);
    // At the end of its numbers the counter ends a request for good, which the mistake does not know of.
    options.redis.fence_start = 0;
}
