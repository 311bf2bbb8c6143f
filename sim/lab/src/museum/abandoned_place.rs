//! R38: a waiter that gives up, at its deadline or since its caller has gone, leaves its place in the queue
//! behind. It counts among those that wait, and when its turn comes, nobody takes the lock.
//!
//! Source: common where only a holder releases: the `finally` begins after the lock was acquired.

use crate::kit::{Attempt, LockMistake};
use crate::{Correct, Options};
use dlock::{Acquisition, Answer, BackendError, Instant, Released};
use sim::Span;

/// Forgets a place instead of giving it up.
pub(super) struct AbandonedPlace;

impl<B: Correct> LockMistake<B> for AbandonedPlace {
    async fn request(own: &mut Attempt<B>, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = own.correct.request(deadline).await?;
        own.noted = match answer {
            Answer::Queued { position } | Answer::Placed { position, .. } => Some(position),
            Answer::Granted { .. } | Answer::Unfenced { .. } | Answer::Taken { .. } | Answer::Full { .. } => {
                None
            }
        };
        Ok(answer)
    }

    async fn release(own: &mut Attempt<B>, deadline: Instant) -> Result<Released, BackendError> {
        if own.noted.take().is_some() {
            own.correct = own.another();
            return Ok(Released::NotOwner);
        }
        own.correct.release(deadline).await
    }
}

/// Lets workers wait in a queue, and makes every second one give up before the holder is done.
pub(super) fn give_up(options: &mut Options) {
    super::exhibit::wait_in_queue(options, 3);
    for (number, worker) in options.workers.iter_mut().enumerate() {
        worker.work = worker.work.max(Span::from_secs(1));
        if number % 2 == 1 {
            worker.deadline = worker.deadline.min(Span::from_millis(800));
        }
    }
}
