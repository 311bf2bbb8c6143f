//! What was sent to each node for one acquisition, and what is known of it.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::backend;
use crate::handle::Released;
use crate::redis;
use crate::runtime::{Instant, Runtime, timeout_at};

/// The memory of one acquisition: one of each node's.
#[derive(Default)]
pub struct Trail {
    nodes: Box<[Memory]>,
}

/// A node's memory. Whoever asks the node keeps it until the answer, so that no request of one acquisition overtakes
/// another: a release queues behind the vote that is still on its way, whoever waits for that one.
pub(super) type Memory = Arc<Mutex<Sent>>;

/// What was sent to one node.
#[derive(Default)]
pub(super) struct Sent {
    /// The votes that were asked for, given and not answered.
    pub(super) votes: redis::Trail,
    /// Whether a vote was asked for at all, as far as this memory reaches.
    pub(super) asked: bool,
    /// What a release found first.
    pub(super) released: Option<Released>,
}

impl Sent {
    /// Whether the node may hold our key, or may come to.
    pub(super) fn is_open(&self) -> bool {
        backend::Trail::is_open(&self.votes) || self.votes.is_granted()
    }
}

impl Trail {
    /// The memory of each of `nodes` nodes.
    pub(super) fn of(&mut self, nodes: usize) -> &[Memory] {
        if self.nodes.is_empty() {
            self.nodes = (0..nodes).map(|_| Memory::default()).collect();
        }
        &self.nodes
    }
}

impl backend::Trail for Trail {
    /// Votes count as open until they are known to have ended: those of a round that failed must be given back, and a
    /// release that a majority confirmed has yet to reach the others.
    fn is_open(&self) -> bool {
        self.nodes.iter().any(|node| node.try_lock().map_or(true, |sent| sent.is_open()))
    }
}

/// Waits until nobody else asks the node for this acquisition, `patience` at the longest.
pub(super) async fn turn<R: Runtime>(
    runtime: &R,
    memory: Memory,
    patience: Instant,
) -> Option<OwnedMutexGuard<Sent>> {
    match Arc::clone(&memory).try_lock_owned() {
        Ok(sent) => Some(sent),
        Err(_) => timeout_at(runtime, patience, memory.lock_owned()).await.ok(),
    }
}
