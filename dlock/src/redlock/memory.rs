//! The requests to each node for one acquisition, and their results.

use std::sync::Arc;

use dlock_runtime::{Instant, Runtime, probes, reached, timeout_at};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::backend::{Acquisition, Backend, Claim, Released};
use crate::redis::{Redis, RedisAcquisition};

/// The requests to one node. Locked until the node has answered, so that no request of an acquisition
/// overtakes another: a release waits for the answer to the vote.
pub(super) struct Memory<R: Runtime>(Arc<Mutex<Sent<R>>>);

/// The state of one node.
pub(super) struct Sent<R: Runtime> {
    /// The vote.
    pub(super) vote: RedisAcquisition<R>,
    /// True once a vote was requested.
    pub(super) asked: bool,
    /// The result of the first release.
    pub(super) released: Option<Released>,
}

impl<R: Runtime> Sent<R> {
    /// Returns whether the node may have our key, now or later.
    pub(super) fn is_open(&self) -> bool {
        self.vote.needs_cleanup() || self.vote.is_granted()
    }
}

impl<R: Runtime> Memory<R> {
    pub(super) fn new(redis: &Redis<R>, claim: &Claim) -> Self {
        let vote = redis.open(claim.clone());
        Self(Arc::new(Mutex::new(Sent { vote, asked: false, released: None })))
    }

    /// Returns whether the node may have our key, now or later; true while a request is in progress.
    pub(super) fn is_open(&self) -> bool {
        self.0.try_lock().map_or(true, |sent| sent.is_open())
    }

    /// Waits until no other request of this acquisition to the node is in progress; returns `None` if
    /// `deadline` passes first.
    pub(super) async fn turn(&self, runtime: &R, deadline: Instant) -> Option<OwnedMutexGuard<Sent<R>>> {
        match Arc::clone(&self.0).try_lock_owned() {
            Ok(sent) => Some(sent),
            Err(_) => {
                reached!(runtime, request_waits_for_vote);
                timeout_at(runtime, deadline, Arc::clone(&self.0).lock_owned()).await.ok()
            }
        }
    }
}

impl<R: Runtime> Clone for Memory<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

probes! {
    /// A request to a node, such as a release, waits for the answer to the claim's earlier one.
    reached request_waits_for_vote;
}
