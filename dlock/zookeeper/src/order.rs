//! A request on its way from a client to the driver of its session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use super::error::Error;
use super::watches::Watch;
use super::wire::{Reply, Request};

/// A request, and the channel for its answer.
pub(super) struct Order {
    pub(super) request: Request,
    pub(super) ticket: Arc<Ticket>,
    pub(super) reply: oneshot::Sender<Result<Answer, Error>>,
}

/// Taken once: by the driver to send the request, or by the caller to withdraw it.
#[derive(Default)]
pub(super) struct Ticket(AtomicBool);

/// Withdraws the request when its caller is dropped.
#[derive(Default)]
pub(super) struct Withdrawal(Arc<Ticket>);

/// The result of an executed request.
pub(super) struct Answer {
    /// `None` for an exists on a missing node.
    pub(super) reply: Option<Reply>,
    pub(super) watch: Option<Watch>,
}

impl Ticket {
    /// Takes the ticket; returns whether this caller was the first.
    pub(super) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    pub(super) fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Withdrawal {
    /// Returns the ticket for the driver.
    pub(super) fn ticket(&self) -> Arc<Ticket> {
        Arc::clone(&self.0)
    }

    /// Withdraws the request; returns false if the driver has sent it.
    pub(super) fn withdraw(&self) -> bool {
        self.0.take()
    }
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        self.0.take();
    }
}
