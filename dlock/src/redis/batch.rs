//! Acquires that share a call: where many are under way, what a server spends on a call besides its script is spent once for
//! several of them, and so is the client's own work.
//!
//! Nobody waits for company: those who ask before the task that sends them has its turn go together. Few at a time each
//! send their own call, as if nothing of this were here.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::{io, mem};

use futures_util::future::{Either, select};
use redis::{Cmd, RedisError, Value};
use tokio::sync::{Mutex as Gate, oneshot};

use super::connection::Connection;
use super::reply::is_passing;
use super::script::{COMMAND_BYTES, Scripts, StoredKey, Task, TokenSource, is_unknown, millis};
use crate::backend::Claim;
use crate::key::{FENCE, OWNER};
use crate::runtime::Runtime;

/// So many acquires may be under way on a connection before the next ones share calls.
const FEW: usize = 4;

/// How many claims share a call at most. A server that runs a script does nothing else; more of them gain little.
const MANY: usize = 16;

/// The acquires of one connection.
#[derive(Default)]
pub(super) struct Batches {
    /// How many are under way, those that wait to be sent among them.
    under_way: AtomicUsize,
    /// What nobody has sent yet.
    unsent: Mutex<Vec<Unsent>>,
    /// Held from the choice of a batch until the connection has it: a release that follows one of its claims comes later.
    gate: Gate<()>,
    /// The server runs no such call: one of a Redis Cluster can't, for its keys are of many slots.
    refused: AtomicBool,
}

/// What comes back to a claim; nothing tells it to ask by itself.
type Shared = Option<Result<Value, RedisError>>;

/// A claim that waits to be sent, and to whom its answer goes.
struct Unsent {
    claim: Claim,
    asker: oneshot::Sender<Shared>,
}

/// Counts an acquire for as long as it lives.
struct UnderWay<'a>(&'a AtomicUsize);

impl Batches {
    /// Waits until none of the batches that were begun is still to be handed to the connection.
    pub(super) async fn handed_over(&self) {
        drop(self.gate.lock().await);
    }

    fn enter(&self) -> (UnderWay<'_>, bool) {
        let others = self.under_way.fetch_add(1, Ordering::Relaxed);
        (UnderWay(&self.under_way), others >= FEW && !self.refused.load(Ordering::Relaxed))
    }

    /// Has `claim` wait; whether it is the first of a batch, and somebody must be told to send it.
    fn join(&self, claim: &Claim) -> (oneshot::Receiver<Shared>, bool) {
        let (asker, answer) = oneshot::channel();
        let mut unsent = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = unsent.len().is_multiple_of(MANY);
        unsent.push(Unsent { claim: claim.clone(), asker });
        (answer, is_first)
    }

    /// The next batch, without those whose askers are gone: a release in their names may have been sent already.
    fn take(&self) -> Vec<Unsent> {
        let mut batch = {
            let mut unsent = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
            let first = unsent.len().min(MANY);
            let rest = unsent.split_off(first);
            mem::replace(&mut *unsent, rest)
        };
        batch.retain(|unsent| !unsent.asker.is_closed());
        batch
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Scripts {
    /// Asks for the lease of `claim`, in a call of its own or with others.
    pub(super) async fn acquire<R: Runtime>(
        &'static self,
        runtime: &R,
        claim: &Claim,
        by: &Arc<Connection>,
    ) -> Result<Value, RedisError> {
        let (_under_way, has_company) = by.batches().enter();
        if has_company {
            let (answer, is_first) = by.batches().join(claim);
            if is_first {
                let by = Arc::clone(by);
                runtime.spawn(async move { self.send_batch(&by).await });
            }
            // The task that sends ends with the process, and so does whoever waits for it.
            let answer =
                answer.await.unwrap_or_else(|_| Some(Err(io::Error::other("nobody sent it").into())));
            if let Some(answer) = answer {
                return answer;
            }
        }
        self.run(Task::Acquire(TokenSource::Counter), claim, by).await
    }

    async fn send_batch(&self, by: &Connection) {
        let handing_over = by.batches().gate.lock().await;
        let mut batch = by.batches().take();
        if batch.is_empty() {
            return;
        }
        let command = self.call_for(&batch, by);
        let mut sent = pin!(by.send(&command));
        // Polled once, it is in the connection's line.
        let early = poll_fn(|cx| Poll::Ready(sent.as_mut().poll(cx))).await;
        drop(handing_over);
        let answer = match early {
            Poll::Ready(answer) => answer,
            // A connection must not live on for an answer that nobody waits for.
            Poll::Pending => match select(sent, pin!(abandoned(&mut batch))).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => return,
            },
        };
        self.hand_out(batch, answer, by);
    }

    /// One call for the whole batch.
    fn call_for(&self, batch: &[Unsent], by: &Connection) -> Cmd {
        let script = self.acquire_many();
        let mut command = Cmd::with_capacity(3 + 4 * batch.len(), COMMAND_BYTES * batch.len());
        match by.has_run(script.number) {
            true => command.arg("EVALSHA").arg(&*script.digest),
            false => command.arg("EVAL").arg(script.body),
        };
        command.arg(2 * batch.len());
        for Unsent { claim, .. } in batch {
            command
                .arg(StoredKey { key: &claim.key, part: OWNER })
                .arg(StoredKey { key: &claim.key, part: FENCE });
        }
        for Unsent { claim, .. } in batch {
            command.arg(claim.owner.as_str()).arg(millis(claim.ttl));
        }
        command
    }

    /// Gives each of the batch its answer. After an error of the server's, which has run nothing then, each asks by itself.
    fn hand_out(&self, batch: Vec<Unsent>, answer: Result<Value, RedisError>, by: &Connection) {
        let number = self.acquire_many().number;
        let answers: Vec<_> = match answer {
            Ok(Value::Array(answers)) if answers.len() == batch.len() => {
                by.set_run(number);
                answers.into_iter().map(|answer| Some(Ok(answer))).collect()
            }
            Ok(other) => {
                match &other {
                    answer if is_unknown(answer) => by.forget_run(number),
                    Value::ServerError(error) if is_passing(error) => {}
                    _ => by.batches().refused.store(true, Ordering::Relaxed),
                }
                batch.iter().map(|_| None).collect()
            }
            Err(error) => batch.iter().map(|_| Some(Err(error.clone()))).collect(),
        };
        for (one, answer) in batch.into_iter().zip(answers) {
            // Whoever is gone has its request in its trail.
            let _ = one.asker.send(answer);
        }
    }
}

/// Completes when nobody waits for an answer of the batch any more.
async fn abandoned(batch: &mut [Unsent]) {
    for one in batch {
        one.asker.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn what_follows_a_batch_waits_until_the_connection_has_it() {
        let batches = Batches::default();
        let handing_over = batches.gate.try_lock().unwrap();
        let mut following = pin!(batches.handed_over());
        let mut context = Context::from_waker(Waker::noop());
        assert!(following.as_mut().poll(&mut context).is_pending());
        drop(handing_over);
        assert!(following.as_mut().poll(&mut context).is_ready());
    }

    #[test]
    fn the_script_for_many_does_what_that_for_one_does() {
        let code = |text: &'static str| text.lines().filter(|line| !line.starts_with("--"));
        let one = code(include_str!("acquire.lua")).skip(1).map(|line| {
            let second = line.replace("keys[2]", "keys[i + 1]").replace("args[2]", "args[i + 1]");
            format!("  {}", second.replace("keys[1]", "keys[i]").replace("args[1]", "args[i]"))
        });
        let many = code(include_str!("acquire_many.lua"));
        let of_one = many.skip_while(|line| *line != "local function acquire(i)").skip(1);
        let of_one: Vec<_> = of_one.take_while(|line| *line != "end").collect();
        assert_eq!(of_one, one.collect::<Vec<_>>());
    }
}
