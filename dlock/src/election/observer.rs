//! An observer: asks who leads, and shows each new term once.

use std::fmt;

use dlock_runtime::{Instant, Runtime};

use super::terms::{Term, Terms};
use crate::backend::Backend;
use crate::context::Context;
use crate::error::BackendError;
use crate::key::LockKey;

/// Observes an election: shows each term that it sees once, in growing order.
///
/// It asks the server, on every backend: after each question without news it waits for
/// [`Options::backoff`](crate::Options::backoff), which grows up to its maximum, 2 s by default. So much
/// later than its beginning a term may be seen. (etcd and ZooKeeper could tell of the change at once; an
/// observer does not use their watches.)
pub struct Observer<B: Backend> {
    context: Context<B>,
    key: LockKey,
    terms: Terms,
    /// When to ask again; `None` before the first question.
    next_at: Option<Instant>,
    /// The number of questions since the last new term.
    without_news: u32,
}

impl<B: Backend> Observer<B> {
    pub(super) fn new(context: Context<B>, key: LockKey) -> Self {
        Self { context, key, terms: Terms::default(), next_at: None, without_news: 0 }
    }

    /// Waits for the next term, and returns it with its leader: the first time the present one. It may be
    /// dropped at any time, and called again.
    ///
    /// # Errors
    ///
    /// [`BackendError`] of a question that failed. The next call waits for the backoff, and asks again;
    /// that is of use if [`BackendError::is_passing`]. [`BackendError::NotTold`] on a backend that does not
    /// tell who holds a key.
    pub async fn next(&mut self) -> Result<Term, BackendError> {
        loop {
            if let Some(next_at) = self.next_at {
                self.context.runtime().sleep_until(next_at).await;
            }
            let deadline = self.context.runtime().now() + self.context.options().request_timeout;
            // Before the question, so that a call that is dropped delays the next one.
            self.back_off();
            let holder = self.context.backend().holder(&self.key, deadline).await?;
            if let Some(term) = self.terms.see(holder) {
                self.without_news = 0;
                self.back_off();
                return Ok(term);
            }
        }
    }

    fn back_off(&mut self) {
        let wait = self.context.backoff(self.without_news);
        self.without_news = self.without_news.saturating_add(1);
        self.next_at = Some(self.context.runtime().now() + wait);
    }
}

impl<B: Backend> fmt::Debug for Observer<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer")
            .field("key", &self.key.name())
            .field("terms", &self.terms)
            .finish_non_exhaustive()
    }
}
