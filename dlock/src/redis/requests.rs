//! The requests of one acquisition that were sent and not answered, with their times and connections.

use std::sync::Arc;
use std::time::Duration;

use dlock_runtime::Instant;

use super::connection::Connection;
use super::waiters::Ticket;

/// The unanswered requests for a lease, and the known state of the lease.
///
/// A connection answers in order, so an answer settles all requests that were sent on its connection before.
/// A request on a connection that was given up stays open: it may still be on its way, and be executed after
/// a release that was sent on another connection.
#[derive(Default)]
pub(super) struct Requests {
    /// Oldest first.
    open: Vec<Sent>,
    /// True if a grant was confirmed and its lease has not been ended since.
    granted: bool,
    /// The place among the waiters of this client.
    ticket: Option<Ticket>,
}

struct Sent {
    at: Instant,
    connection: Arc<Connection>,
}

impl Requests {
    /// Notes a request for a lease of `ttl` that is about to be sent. Requests older than the TTL are
    /// forgotten: a cleanup can't wait for messages that the network delays for longer.
    pub(super) fn sending(&mut self, connection: &Arc<Connection>, now: Instant, ttl: Duration) {
        self.open.retain(|sent| sent.at + ttl > now);
        self.open.push(Sent { at: now, connection: Arc::clone(connection) });
    }

    /// Returns the place among the waiters; joins them first if there is none.
    pub(super) fn ticket(&mut self, join: impl FnOnce() -> Ticket) -> &Ticket {
        self.ticket.get_or_insert_with(join)
    }

    /// Leaves the wait queue, so that a wake-up goes to the next waiter.
    pub(super) fn stop_waiting(&mut self) {
        self.ticket = None;
    }

    /// Notes that another owner holds the lock.
    pub(super) fn refused(&self) {
        if let Some(ticket) = &self.ticket {
            ticket.refused();
        }
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
        self.granted = true;
        self.served();
    }

    /// Notes that the server had granted the lease to one of the open requests.
    pub(super) fn recognised(&mut self) {
        self.settle_one();
        self.granted = true;
        self.served();
    }

    /// Notes that the server has ended a lease of this owner.
    pub(super) fn ended(&mut self) {
        if !self.granted {
            self.settle_one();
        }
        self.granted = false;
    }

    /// Returns whether the server is known to have granted a lease that has not been ended since.
    pub(super) fn is_granted(&self) -> bool {
        self.granted
    }

    /// Notes that the server holds no lease of this owner.
    pub(super) fn gone(&mut self) {
        self.granted = false;
    }

    /// Returns whether an unanswered request may have been executed, or may still be.
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns the connection on which a release must be sent to follow the open requests: that of the latest
    /// one, if it still lives. A lease that is known to be granted does not wait for them: their effects are
    /// cleaned up after it.
    pub(super) fn connection_to_follow(&self) -> Option<&Arc<Connection>> {
        let latest = if self.granted { None } else { self.open.last() };
        latest.map(|sent| &sent.connection).filter(|connection| connection.is_open())
    }

    fn served(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            ticket.served();
        }
    }

    /// Notes that one of the open requests was executed. Which one is known only if there is just one.
    fn settle_one(&mut self) {
        if self.open.len() == 1 {
            self.open.clear();
        }
    }
}
