//! The parts of a client of one Redis.

use std::sync::Arc;

use super::batch::Batcher;
use super::listener::Listener;
use super::node::Node;

/// The state that all acquisitions of one client share.
pub(crate) struct Client<R> {
    pub(super) node: Node<R>,
    pub(super) acquires: Arc<Batcher>,
    pub(super) releases: Arc<Batcher>,
    pub(super) listener: Listener,
}
