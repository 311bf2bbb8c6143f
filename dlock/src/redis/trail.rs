//! What was sent for one acquisition and not answered: by which connection, and when.

use std::sync::Arc;
use std::time::Duration;

use super::connection::Connection;
use super::waiters::Ticket;
use crate::runtime::Instant;

/// The requests for a lease whose answers are missing.
///
/// A connection answers in order, so whatever arrives on one settles all that was sent on it before. A request on a
/// connection that was given up stays open: it may still be on its way, and be executed after a release that took
/// another way.
#[derive(Default)]
pub(super) struct Trail {
    /// Oldest first.
    open: Vec<Sent>,
    /// Whether a grant was confirmed whose lease has not been ended yet.
    granted: bool,
    /// Its place among those of this client who wait for the lock.
    ticket: Option<Ticket>,
}

struct Sent {
    at: Instant,
    by: Arc<Connection>,
}

impl Trail {
    /// Notes a request for a lease of `ttl` that is about to be sent. Requests older than the TTL are forgotten: what a
    /// network holds back for that long, a cleanup can't wait for.
    pub(super) fn sending(&mut self, by: &Arc<Connection>, at: Instant, ttl: Duration) {
        self.open.retain(|sent| sent.at + ttl > at);
        self.open.push(Sent { at, by: Arc::clone(by) });
    }

    /// Its place in line; without one, it joins.
    pub(super) fn waits(&mut self, join: impl FnOnce() -> Ticket) -> &Ticket {
        self.ticket.get_or_insert_with(join)
    }

    /// Leaves the line.
    pub(super) fn stop_waiting(&mut self) {
        self.ticket = None;
    }

    /// Notes that another holds the lock.
    pub(super) fn refused(&self) {
        if let Some(ticket) = &self.ticket {
            ticket.refused();
        }
    }

    /// When the oldest request was sent that may have been the one that was granted.
    pub(super) fn first_sent(&self) -> Option<Instant> {
        self.open.first().map(|sent| sent.at)
    }

    /// Notes an answer that arrived by `by`.
    pub(super) fn answered(&mut self, by: &Arc<Connection>) {
        self.open.retain(|sent| !Arc::ptr_eq(&sent.by, by));
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

    /// Whether the server is known to have granted a lease that has not been ended since.
    pub(super) fn is_granted(&self) -> bool {
        self.granted
    }

    /// Notes that the server holds no lease of this owner.
    pub(super) fn gone(&mut self) {
        self.granted = false;
    }

    fn served(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            ticket.served();
        }
    }

    /// One of the open requests was executed. Among several it can't be told which.
    fn settle_one(&mut self) {
        if self.open.len() == 1 {
            self.open.clear();
        }
    }

    /// The connection behind whose requests a release must queue: that of the latest open one, if it still lives. A lease
    /// that is known to be granted need not wait for those: what they may still bring about is cleaned up after it.
    pub(super) fn last_way(&self) -> Option<&Arc<Connection>> {
        let latest = if self.granted { None } else { self.open.last() };
        latest.map(|sent| &sent.by).filter(|by| by.is_open())
    }

    /// Whether a request was sent that may have been executed without our knowing, or may still be.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }
}
