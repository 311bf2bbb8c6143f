//! Batching: many claims at the same time share transactions, so that client and cluster pay the fixed cost
//! of a transaction once for several of them.
//!
//! A batch is one transaction with a nested one for each claim, each with its own conditions: a claim gets
//! the answer that it would get by itself. No claim waits for others: those that are requested before the
//! sending task runs go together. A few at a time are sent one by one, as without this module.
//!
//! # One revision for all
//!
//! All writes of one transaction have the same revision. So no batch has two claims of one queue: neither two
//! puts, which would share a place and a token, nor a put with the delete of the key ahead, which the put
//! would see and whose end its watch would miss. Equal revisions in different queues are harmless: places and
//! tokens are compared within one queue only.
//!
//! # Rights
//!
//! Several versions of etcd don't check the rights of nested transactions (GHSA-rfx7-8w68-q57q). The batch
//! therefore names the claims' keys in its else branch as well, which they do check; it is never taken, since
//! a batch has no conditions of its own.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use dlock_runtime::Runtime;
use etcd_client::{DeleteOptions, Error, Txn, TxnOp, TxnOpResponse, TxnResponse};
use futures_util::future::{Either, select};
use tokio::sync::oneshot;
use tonic::Code;

use super::connector::Connection;
use super::error::meaning;
use super::place::{self, Place, Reply};
use super::session::Session;
use crate::error::BackendError;
use crate::sync::Guarded;

/// Transactions in progress before the next ones share batches.
const UNSHARED_MAX: usize = 4;

/// Claims in one batch. etcd adds up the longest lists of operations at both levels, and allows 128
/// (`--max-txn-ops`).
const CLAIMS_MAX: usize = 16;

/// The transactions of one client.
#[derive(Default)]
pub(super) struct Batcher {
    /// Transactions in progress, those that are not sent yet included.
    in_progress: AtomicUsize,
    queue: Guarded<Queue>,
    /// The connection whose member refused a batch: it allows fewer operations, for example.
    refused_by: Guarded<Weak<Connection>>,
}

#[derive(Default)]
struct Queue {
    unsent: Vec<Unsent>,
    /// True if a task is about to take a batch.
    is_scheduled: bool,
}

/// A transaction of one claim, to be sent on `connection`.
struct Unsent {
    connection: Arc<Connection>,
    /// A batch fails as a whole if the lease of a session is gone.
    session: Arc<Session>,
    place: Arc<Place>,
    txn: Txn,
    /// Dropped without an answer if the transaction must be sent by itself.
    answer: oneshot::Sender<Result<Reply, BackendError>>,
}

/// Counts a transaction for as long as it lives.
struct InProgress<'a>(&'a AtomicUsize);

impl Batcher {
    /// Sends the transaction that `txn` makes for the claim at `place`, by itself or together with others.
    pub(super) async fn send<R: Runtime>(
        self: &Arc<Self>,
        runtime: &R,
        connection: &Arc<Connection>,
        session: &Arc<Session>,
        place: &Arc<Place>,
        txn: impl Fn() -> Txn + Send,
    ) -> Result<Reply, BackendError> {
        let (_in_progress, is_shared) = self.enter(connection);
        if is_shared {
            let (answer, answered) = oneshot::channel();
            let (connection, session) = (Arc::clone(connection), Arc::clone(session));
            let unsent = Unsent { connection, session, place: Arc::clone(place), txn: txn(), answer };
            if self.queue.lock().add(unsent) {
                self.schedule(runtime);
            }
            if let Ok(answer) = answered.await {
                return answer;
            }
        }
        alone(connection, txn()).await
    }

    fn enter(&self, connection: &Arc<Connection>) -> (InProgress<'_>, bool) {
        let others = self.in_progress.fetch_add(1, Ordering::Relaxed);
        let is_refused = || self.refused_by.lock().as_ptr() == Arc::as_ptr(connection);
        (InProgress(&self.in_progress), others >= UNSHARED_MAX && !is_refused())
    }

    /// Starts a task that sends the next batch.
    fn schedule<R: Runtime>(self: &Arc<Self>, runtime: &R) {
        let (batcher, runtime) = (Arc::clone(self), runtime.clone());
        let spawning = runtime.clone();
        spawning.spawn(async move { batcher.send_next(&runtime).await });
    }

    async fn send_next<R: Runtime>(self: &Arc<Self>, runtime: &R) {
        let (mut batch, is_more) = self.queue.lock().take();
        if is_more {
            self.schedule(runtime);
        }
        let Some(connection) = batch.first().map(|one| Arc::clone(&one.connection)) else { return };
        let mut client = connection.kv();
        let sent = pin!(client.txn(whole(&mut batch)));
        // A connection must not stay open for an answer without a receiver.
        let answer = match select(sent, pin!(abandoned(&mut batch))).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => return,
        };
        self.distribute(batch, answer, &connection);
    }

    /// Gives each claim its part of the answer. A refused transaction has changed nothing: each claim of it
    /// is sent by itself then, since the reason may be the batch or another claim.
    fn distribute(
        &self,
        batch: Vec<Unsent>,
        answer: Result<TxnResponse, Error>,
        connection: &Arc<Connection>,
    ) {
        // A claim that was dropped has noted its transaction as unanswered, and receives nothing.
        let give = |one: Unsent, answer| drop(one.answer.send(answer));
        let (is_shared, is_forbidden) = (batch.len() > 1, answer.as_ref().is_err_and(is_forbidden));
        match answer.map_err(meaning) {
            Ok(answer) => {
                parts(&answer, is_shared).into_iter().zip(batch).for_each(|(part, one)| give(one, Ok(part)));
            }
            Err(BackendError::Refused { passing: false, .. }) if is_shared => {
                if !is_forbidden {
                    *self.refused_by.lock() = Arc::downgrade(connection);
                }
            }
            Err(error) => batch.into_iter().for_each(|one| give(one, Err(error.clone()))),
        }
    }
}

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Queue {
    /// Adds a transaction; returns true if a task must be started to send it.
    fn add(&mut self, one: Unsent) -> bool {
        self.unsent.push(one);
        !std::mem::replace(&mut self.is_scheduled, true)
    }

    /// Takes the next batch, without transactions whose caller was dropped: a release may have been sent for
    /// them already. Returns true with it if another batch must follow.
    fn take(&mut self) -> (Vec<Unsent>, bool) {
        let mut batch: Vec<Unsent> = Vec::new();
        for one in std::mem::take(&mut self.unsent) {
            if one.answer.is_closed() {
                continue;
            }
            let joins = batch.len() < CLAIMS_MAX && batch.iter().all(|other| one.may_join(other));
            if joins { batch.push(one) } else { self.unsent.push(one) }
        }
        self.is_scheduled = !self.unsent.is_empty();
        (batch, self.is_scheduled)
    }
}

impl Unsent {
    /// Returns whether one transaction may carry both.
    fn may_join(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.connection, &other.connection)
            && Arc::ptr_eq(&self.session, &other.session)
            && !self.place.shares_queue(&other.place)
    }
}

/// Sends one transaction.
async fn alone(connection: &Connection, txn: Txn) -> Result<Reply, BackendError> {
    let answer = connection.kv().txn(txn).await.map_err(meaning)?;
    Ok(Reply::of(&answer))
}

/// Returns one transaction for the whole batch, with the claims' own ones nested if there are several.
fn whole(batch: &mut [Unsent]) -> Txn {
    if let [one] = batch {
        return std::mem::take(&mut one.txn);
    }
    let guard = batch.first().map(|one| TxnOp::get(place::guard_key(&one.session), None));
    let checks_rights = |one: &Unsent| {
        // Reading and writing.
        TxnOp::delete(one.place.key(), Some(DeleteOptions::new().with_prev_key()))
    };
    let checked: Vec<_> = guard.into_iter().chain(batch.iter().map(checks_rights)).collect();
    let nested: Vec<_> = batch.iter_mut().map(|one| TxnOp::txn(std::mem::take(&mut one.txn))).collect();
    Txn::new().and_then(nested).or_else(checked)
}

/// Returns the answer of each claim of a batch.
fn parts(answer: &TxnResponse, is_shared: bool) -> Vec<Reply> {
    if !is_shared {
        return vec![Reply::of(answer)];
    }
    // A nested answer has no revision of its own.
    let revision = place::revision(answer);
    let of_claim = |part| match part {
        TxnOpResponse::Txn(nested) => Some(Reply::of(&nested).at(revision)),
        _ => None,
    };
    answer.op_responses().into_iter().filter_map(of_claim).collect()
}

fn is_forbidden(error: &Error) -> bool {
    matches!(error, Error::GRpcStatus(status) if status.code() == Code::PermissionDenied)
}

/// Completes once every claim of the batch was dropped.
async fn abandoned(batch: &mut [Unsent]) {
    for one in batch {
        one.answer.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dlock_runtime::Instant;

    use super::*;

    type Answered = oneshot::Receiver<Result<Reply, BackendError>>;

    fn session() -> Arc<Session> {
        Arc::new(Session::new(1, Instant::from_nanos(0), Duration::from_secs(60)))
    }

    fn unsent(connection: &Arc<Connection>, session: &Arc<Session>, lock: &str) -> (Unsent, Answered) {
        let (answer, answered) = oneshot::channel();
        let (connection, session) = (Arc::clone(connection), Arc::clone(session));
        let place = Arc::new(Place::in_queue(lock));
        let txn = place.delete(1);
        (Unsent { connection, session, place, txn, answer }, answered)
    }

    /// Takes all batches; returns the number of claims in each.
    fn sizes(queue: &mut Queue) -> Vec<usize> {
        let mut sizes = Vec::new();
        loop {
            let (batch, is_more) = queue.take();
            sizes.push(batch.len());
            if !is_more {
                return sizes;
            }
        }
    }

    #[test]
    fn no_batch_has_two_claims_of_one_queue() {
        let (connection, session, mut queue) = (Connection::idle(), session(), Queue::default());
        let mut answered = Vec::new();
        for lock in ["a", "b", "a", "a", "b", "c"] {
            let (one, answer) = unsent(&connection, &session, lock);
            assert_eq!(queue.add(one), answered.is_empty(), "one task is started for all");
            answered.push(answer);
        }
        assert_eq!(sizes(&mut queue), [3, 2, 1]);
    }

    #[test]
    fn a_batch_is_of_one_session_and_one_connection() {
        let (connections, sessions) = ([Connection::idle(), Connection::idle()], [session(), session()]);
        let (mut queue, mut answered) = (Queue::default(), Vec::new());
        for number in 0..9 {
            let (connection, session) = (&connections[number % 2], &sessions[number % 3 % 2]);
            let (one, answer) = unsent(connection, session, &number.to_string());
            queue.add(one);
            answered.push(answer);
        }
        assert_eq!(sizes(&mut queue), [4, 2, 2, 1]);
    }

    #[test]
    fn a_batch_leaves_out_claims_that_were_dropped() {
        let (connection, session, mut queue) = (Connection::idle(), session(), Queue::default());
        let mut answered = Vec::new();
        for number in 0..2 * CLAIMS_MAX {
            let (one, answer) = unsent(&connection, &session, &number.to_string());
            queue.add(one);
            answered.extend((number % 2 == 0 || number > CLAIMS_MAX).then_some(answer));
        }
        assert_eq!(sizes(&mut queue), [CLAIMS_MAX, answered.len() - CLAIMS_MAX]);
    }

    #[test]
    fn one_claim_is_no_nested_transaction() {
        let (connection, session) = (Connection::idle(), session());
        let (one, _answered) = unsent(&connection, &session, "a");
        let (other, _other) = unsent(&connection, &session, "b");
        let single = format!("{:?}", one.txn);
        let mut batch = vec![one];
        assert_eq!(format!("{:?}", whole(&mut batch)), single);
        batch[0].txn = batch[0].place.delete(1);
        batch.push(other);
        assert_eq!(format!("{:?}", whole(&mut batch)).matches("RequestTxn").count(), 2);
    }
}
