//! Batching: many acquires at the same time share calls, and so do many releases: server and client pay the
//! fixed cost of a call once for several of them.
//!
//! None waits for others: those that are requested before the sending task runs go together. A few at a time
//! are sent one by one, as without this module.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;

use dlock_runtime::Runtime;
use futures_util::future::{Either, select};
use redis::{RedisError, Value};
use tokio::sync::{Mutex as Gate, oneshot};

use super::connection::Connection;
use super::operation::Operation;
use super::reply;
use crate::backend::Claim;
use crate::sync::Guarded;

/// Claims in progress before the next ones share calls.
const UNSHARED_MAX: usize = 4;

/// Claims in one call. A server that runs a script does nothing else; more claims gain little.
const CLAIMS_MAX: usize = 16;

/// The claims of one client for which the same operation is in progress.
pub(super) struct Batcher {
    operation: Operation,
    /// Claims in progress, those that are not sent yet included.
    in_progress: AtomicUsize,
    unsent: Guarded<Vec<Unsent>>,
    /// Locked from the choice of a batch until the connection has it: a release that follows one of its
    /// requests is sent later.
    gate: Gate<()>,
    /// The connection whose server refused such a call. One of a Redis Cluster does: the keys are in many
    /// slots.
    refused_by: Guarded<Weak<Connection>>,
}

/// A claim that waits to be sent on `connection`.
struct Unsent {
    claim: Claim,
    connection: Arc<Connection>,
    /// Dropped without an answer if the claim must be sent by itself.
    answer: oneshot::Sender<Result<Value, RedisError>>,
}

/// Counts a claim for as long as it lives.
struct InProgress<'a>(&'a AtomicUsize);

impl Batcher {
    pub(super) fn new(operation: Operation) -> Self {
        Self {
            operation,
            in_progress: AtomicUsize::new(0),
            unsent: Guarded::default(),
            gate: Gate::default(),
            refused_by: Guarded::default(),
        }
    }

    pub(super) fn operation(&self) -> Operation {
        self.operation
    }

    /// Executes the operation for `claim` on `connection`, in a call of its own or together with others.
    pub(super) async fn execute<R: Runtime>(
        self: &Arc<Self>,
        runtime: &R,
        claim: &Claim,
        connection: &Arc<Connection>,
    ) -> Result<Value, RedisError> {
        let (_in_progress, is_shared) = self.enter(connection);
        if is_shared {
            let (answer, is_first) = self.join(claim, connection);
            if is_first {
                let (batcher, connection) = (Arc::clone(self), Arc::clone(connection));
                runtime.spawn(async move { batcher.send_batch(&connection).await });
            }
            if let Ok(answer) = answer.await {
                return answer;
            }
        }
        self.operation.one(claim, connection).await
    }

    /// Waits until every batch that was begun is handed to its connection.
    pub(super) async fn handed_over(&self) {
        drop(self.gate.lock().await);
    }

    fn enter(&self, connection: &Arc<Connection>) -> (InProgress<'_>, bool) {
        let others = self.in_progress.fetch_add(1, Ordering::Relaxed);
        let is_refused = || self.refused_by.lock().as_ptr() == Arc::as_ptr(connection);
        let may_share = || self.operation.may_share(connection) && !is_refused();
        (InProgress(&self.in_progress), others >= UNSHARED_MAX && may_share())
    }

    /// Adds `claim` to the next batch of `connection`; returns whether it is the first of its batch, which
    /// must be sent.
    fn join(
        &self,
        claim: &Claim,
        connection: &Arc<Connection>,
    ) -> (oneshot::Receiver<Result<Value, RedisError>>, bool) {
        let (answer, answered) = oneshot::channel();
        let (claim, connection) = (claim.clone(), Arc::clone(connection));
        let mut unsent = self.unsent.lock();
        let of_connection = unsent.iter().filter(|one| Arc::ptr_eq(&one.connection, &connection)).count();
        unsent.push(Unsent { claim, connection, answer });
        (answered, of_connection.is_multiple_of(CLAIMS_MAX))
    }

    async fn send_batch(&self, connection: &Arc<Connection>) {
        let handing_over = self.gate.lock().await;
        let mut batch = self.take(connection);
        if batch.is_empty() {
            return;
        }
        let command = self.operation.many(batch.iter().map(|one| &one.claim), connection);
        let mut sent = pin!(connection.send(&command));
        // Polled once, it is in the connection's queue.
        let early = poll_fn(|cx| Poll::Ready(sent.as_mut().poll(cx))).await;
        drop(handing_over);
        let answer = match early {
            Poll::Ready(answer) => answer,
            // A connection must not stay open for an answer without a receiver.
            Poll::Pending => match select(sent, pin!(abandoned(&mut batch))).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => return,
            },
        };
        self.distribute(batch, answer, connection);
    }

    /// Takes the next batch of `connection`, without claims whose caller was dropped: a release may have been
    /// sent for them already.
    fn take(&self, connection: &Arc<Connection>) -> Vec<Unsent> {
        let is_next = |one: &mut Unsent| Arc::ptr_eq(&one.connection, connection);
        let mut batch: Vec<_> = self.unsent.lock().extract_if(.., is_next).take(CLAIMS_MAX).collect();
        batch.retain(|one| !one.answer.is_closed());
        batch
    }

    /// Gives each claim of the batch its answer. After an error of the server's, which has run nothing then,
    /// each claim is sent by itself.
    fn distribute(
        &self,
        batch: Vec<Unsent>,
        answer: Result<Value, RedisError>,
        connection: &Arc<Connection>,
    ) {
        // A caller that was dropped has noted its request as unanswered, and receives nothing.
        let give = |one: Unsent, answer| drop(one.answer.send(answer));
        match answer {
            Ok(Value::Array(answers)) if answers.len() == batch.len() => {
                connection.learn(self.operation.script_of_many());
                batch.into_iter().zip(answers).for_each(|(one, answer)| give(one, Ok(answer)));
            }
            Ok(answer) if reply::is_unknown_script(&answer) => {
                connection.forget(self.operation.script_of_many())
            }
            Ok(Value::ServerError(error)) if reply::is_passing(&error) => {}
            Ok(_) => *self.refused_by.lock() = Arc::downgrade(connection),
            Err(error) => batch.into_iter().for_each(|one| give(one, Err(error.clone()))),
        }
    }
}

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Completes once every caller of the batch was dropped.
async fn abandoned(batch: &mut [Unsent]) {
    for one in batch {
        one.answer.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn a_release_waits_until_the_connection_has_the_batch() {
        let batcher = Batcher::new(Operation::Acquire);
        let handing_over = batcher.gate.try_lock().unwrap();
        let mut following = pin!(batcher.handed_over());
        let mut context = Context::from_waker(Waker::noop());
        assert!(following.as_mut().poll(&mut context).is_pending());
        drop(handing_over);
        assert!(following.as_mut().poll(&mut context).is_ready());
    }
}
