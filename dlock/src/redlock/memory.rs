//! What was sent to each node for one acquisition, and what is known of it.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::backend::{Acquisition, Backend, Claim, Released};
use crate::redis::{Redis, RedisAcquisition};
use crate::runtime::{Instant, Runtime, timeout_at};

/// A node's memory. It is locked until the node has answered, so that no request of one acquisition overtakes another: a
/// release queues behind the vote that is still on its way, whoever waits for that one.
pub(super) struct Memory<R: Runtime>(Arc<Mutex<Sent<R>>>);

/// What was sent to one node.
pub(super) struct Sent<R: Runtime> {
    /// The votes that were asked for, given and not answered.
    pub(super) vote: RedisAcquisition<R>,
    /// Whether a vote was asked for at all, as far as this memory reaches.
    pub(super) asked: bool,
    /// What a release found first.
    pub(super) released: Option<Released>,
}

impl<R: Runtime> Sent<R> {
    /// Whether the node may hold our key, or may come to.
    pub(super) fn is_open(&self) -> bool {
        self.vote.may_be_held() || self.vote.is_granted()
    }
}

impl<R: Runtime> Memory<R> {
    pub(super) fn new(redis: &Redis<R>, claim: &Claim) -> Self {
        let vote = redis.open(claim.clone());
        Self(Arc::new(Mutex::new(Sent { vote, asked: false, released: None })))
    }

    /// Whether the node may hold our key, or may come to, or is being asked.
    pub(super) fn is_open(&self) -> bool {
        self.0.try_lock().map_or(true, |sent| sent.is_open())
    }

    /// Waits until no other request of this acquisition to the node is in progress; returns `None` if `deadline` passes first.
    pub(super) async fn turn(&self, runtime: &R, deadline: Instant) -> Option<OwnedMutexGuard<Sent<R>>> {
        match Arc::clone(&self.0).try_lock_owned() {
            Ok(sent) => Some(sent),
            Err(_) => timeout_at(runtime, deadline, Arc::clone(&self.0).lock_owned()).await.ok(),
        }
    }
}

impl<R: Runtime> Clone for Memory<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
