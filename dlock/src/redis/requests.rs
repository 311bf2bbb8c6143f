//! The requests of one acquisition that were sent and not answered, with their times and connections.

use std::sync::Arc;
use std::time::Duration;

use dlock_runtime::Instant;

use super::connection::Connection;
use super::node::Sent;
use super::waiters::Ticket;

/// The unanswered requests for a lease, and the known state of the lease.
///
/// A connection answers in order, so an answer closes all requests that were sent on its connection before. A
/// request on a connection that has failed stays open: it may still be on its way, and be executed after a
/// release that was sent on another connection.
#[derive(Default)]
pub(super) struct Requests {
    /// Oldest first.
    open: Vec<Sent>,
    /// True if a grant was confirmed and its lease has not been released since.
    is_granted: bool,
    /// The place among the waiters of this client.
    ticket: Option<Ticket>,
}

impl Requests {
    /// Notes a request for a lease of `ttl` that is about to be sent. Requests older than the TTL are
    /// forgotten: a cleanup can't wait for messages that the network delays for longer.
    pub(super) fn sending(&mut self, sent: &Sent, ttl: Duration) {
        self.open.retain(|earlier| earlier.at + ttl > sent.at);
        self.open.push(sent.clone());
    }

    /// Returns whether an unanswered request may have been executed, or may still be.
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns when the oldest request was sent that may have been the granted one.
    pub(super) fn first_sent(&self) -> Option<Instant> {
        self.open.first().map(|sent| sent.at)
    }

    /// Notes an answer that arrived on `connection`.
    pub(super) fn answered(&mut self, connection: &Arc<Connection>) {
        self.open.retain(|sent| !Arc::ptr_eq(&sent.connection, connection));
    }

    /// Notes that the server has granted the lease.
    pub(super) fn granted(&mut self) {
        self.is_granted = true;
        if let Some(ticket) = self.ticket.take() {
            ticket.served();
        }
    }

    /// Notes that the server had granted the lease to one of the open requests.
    pub(super) fn recognised(&mut self) {
        self.executed_one();
        self.granted();
    }

    /// Notes that another owner has the lock.
    pub(super) fn refused(&self) {
        if let Some(ticket) = &self.ticket {
            ticket.refused();
        }
    }

    /// Returns the place among the waiters; joins them first if there is none.
    pub(super) fn ticket(&mut self, join: impl FnOnce() -> Ticket) -> &Ticket {
        self.ticket.get_or_insert_with(join)
    }

    /// Leaves the wait queue, so that a wake-up goes to the next waiter.
    pub(super) fn stop_waiting(&mut self) {
        self.ticket = None;
    }

    /// Returns the connection on which a release must be sent to follow the open requests: that of the latest
    /// one, if it still lives. A lease that is known to be granted does not wait for them: their effects are
    /// cleaned up after it.
    pub(super) fn connection_to_follow(&self) -> Option<&Arc<Connection>> {
        let latest = if self.is_granted { None } else { self.open.last() };
        latest.map(|sent| &sent.connection).filter(|connection| connection.is_open())
    }

    /// Notes that the server has released a lease of this owner.
    pub(super) fn released(&mut self) {
        if !self.is_granted {
            self.executed_one();
        }
        self.is_granted = false;
    }

    /// Notes that the server has no lease of this owner.
    pub(super) fn gone(&mut self) {
        self.is_granted = false;
    }

    /// Returns whether the server is known to have granted a lease that has not been released since.
    pub(super) fn is_granted(&self) -> bool {
        self.is_granted
    }

    /// Notes that one of the open requests was executed. Which one is known only if there is just one.
    fn executed_one(&mut self) {
        if self.open.len() == 1 {
            self.open.clear();
        }
    }
}
