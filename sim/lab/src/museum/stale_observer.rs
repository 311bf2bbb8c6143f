//! R20: an observer of an election asks the primary and a replica, and believes the answer that comes last.
//! The replica lags, so that it names the leader before once more.
//!
//! Source: clients that read who leads from any server, such as by Consul's mode `stale` or etcd's
//! serializable reads, and keep no number of the term that they have seen.

use dlock::election::Election;
use dlock::{AnyBackend, Runtime, owner_prefix};
use futures_util::future::join;
use sim::Span;
use sim::world::runtime::SimRuntime;

use crate::kit::{Hands, WorkerMistake};
use crate::wire::Wire;
use crate::{Options, Worker, WorkerMode};

/// The servers that it asks.
const SERVERS: [&str; 2] = ["redis-1:6379", "replica-1:6379"];

/// The time between two questions to a server.
const EVERY: std::time::Duration = std::time::Duration::from_millis(250);

/// The name of a drawn observer.
const OBSERVER: &str = "observer";

/// Believes the last answer.
pub(super) struct StaleObserver;

impl WorkerMistake for StaleObserver {
    async fn observe(hands: &Hands, election: Election<AnyBackend<SimRuntime>>) {
        let last = std::sync::Mutex::new(0);
        let ask = |server| ask_for_ever(hands, &election, server, &last);
        let both = join(ask(SERVERS[0]), ask(SERVERS[1]));
        let runtime = hands.process.runtime();
        let _ = dlock::timeout_at(&runtime, hands.observing_until(), std::pin::pin!(both)).await;
    }
}

/// Asks a server who leads, and shows each answer that differs from the last one of any server.
async fn ask_for_ever(
    hands: &Hands,
    election: &Election<AnyBackend<SimRuntime>>,
    server: &str,
    last: &std::sync::Mutex<u64>,
) {
    let (runtime, key) = (hands.process.runtime(), election.key());
    let wire = Wire::new(runtime.clone(), server);
    let mut command = redis::cmd("MGET");
    command.arg(key.owner_key()).arg(key.fence_key());
    loop {
        let mut open = wire.open().await;
        while let Ok(connection) = &mut open {
            let answer = crate::wire::ask::<(Option<String>, Option<u64>)>(connection, &command).await;
            match answer {
                Ok((Some(owner), Some(term))) => {
                    let mut last = last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    if std::mem::replace(&mut *last, term) != term {
                        hands.saw(key, owner_prefix(&owner), term);
                    }
                }
                Ok(_) => {}
                Err(_) => break,
            }
            runtime.sleep_until(runtime.now() + EVERY).await;
        }
        runtime.sleep_until(runtime.now() + EVERY).await;
    }
}

/// Makes all drawn workers that lock candidates, and adds an observer and a replica.
pub(super) fn observe(options: &mut Options) {
    super::renew_deadline::campaign(options);
    options.redis.replica = true;
    if options.workers.iter().any(Worker::observes) {
        return;
    }
    let (mode, deadline) = (WorkerMode::new("observe"), Span::from_secs(2));
    options.workers.push(Worker { mode, rounds: 3, deadline, ..Worker::new(OBSERVER) });
}
