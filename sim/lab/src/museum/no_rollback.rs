//! R36: a lock of several keys gives up when one of them is refused, and forgets those that it has locked
//! before. They stay locked until their leases end, with sessions as long as the client lives.
//!
//! Source: common where several locks are taken in a loop that returns at the first refusal.

use dlock::{Acquisition, Answer, BackendError, Instant, Released, Runtime};
use sim::Span;

use crate::kit::{Attempt, LockMistake};
use crate::{Correct, Options, Worker, WorkerMode};

/// Says that a key is released, and does not send it, if a key after it was refused.
pub(super) struct NoRollback;

impl<B: Correct> LockMistake<B> for NoRollback {
    async fn request(own: &mut Attempt<B>, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = own.correct.request(deadline).await?;
        let is_granted = matches!(answer, Answer::Granted { .. });
        if is_granted {
            own.renewed = Some(own.runtime().now());
        }
        // A client locks one key after the other.
        own.client.set(!is_granted);
        Ok(answer)
    }

    async fn release(own: &mut Attempt<B>, deadline: Instant) -> Result<Released, BackendError> {
        if own.renewed.is_some() && own.client.is_set() {
            own.correct = own.another();
            return Ok(Released::Done);
        }
        own.correct.release(deadline).await
    }
}

/// Makes every other worker lock two keys before a short deadline, and the others hold the second one alone,
/// for seconds. All lock in one order: two who lock both never wait for the second.
pub(super) fn hold_the_second(options: &mut Options) {
    (options.permits, options.readers, options.cron) = (None, false, Default::default());
    super::unordered_keys::name_two(options);
    for name in ["a", "b"] {
        if options.workers.len() < 2 && options.worker(name).is_none() {
            options.workers.push(Worker::new(name));
        }
    }
    let pair = options.keys[..2].to_vec();
    for (number, worker) in options.workers.iter_mut().enumerate() {
        super::exhibit::only_locking(worker);
        worker.shared = false;
        if number % 2 == 0 {
            (worker.mode, worker.key, worker.keys) = (WorkerMode::new("several"), None, pair.clone());
            worker.deadline = worker.deadline.min(Span::from_millis(800));
        } else {
            (worker.mode, worker.key, worker.keys) =
                (WorkerMode::default(), pair.last().cloned(), Vec::new());
            worker.work = worker.work.max(Span::from_secs(3));
        }
    }
}
