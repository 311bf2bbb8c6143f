//! One client of one server: it sends requests, and collects answers and notifications.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use etcd_client::{
    Client, DeleteOptions, LeaseGrantOptions, LeaseTimeToLiveOptions, LockOptions, WatchRequestSender,
};
use tokio::task::JoinHandle;

use super::op::{Op, Origin, txn};
use super::show;

/// The answer to a lock that is not granted yet.
pub(crate) const WAITS: &str = "(waits)";

/// Longer than the grant of a free lock takes.
const TIMEOUT: Duration = Duration::from_millis(150);

/// The client of one server, and the notifications of the current script.
pub(crate) struct Side {
    client: Client,
    origin: Origin,
    watches: Option<(WatchRequestSender, JoinHandle<()>)>,
    notifications: Notifications,
    locks: Vec<JoinHandle<()>>,
}

/// The messages of watches, and the late answers to locks, each with its source: the watch or the lock.
type Notifications = Arc<Mutex<Vec<(String, String)>>>;

impl Side {
    /// Deletes all keys and leases of the server. Leases of this script have ids above `lease`.
    pub(crate) async fn begin(mut client: Client, lease: i64) -> Self {
        for lease in client.leases().await.unwrap().leases() {
            // It may expire meanwhile.
            let _ = client.lease_revoke(lease.id()).await;
        }
        client.delete("", Some(DeleteOptions::new().with_all_keys())).await.unwrap();
        let revision = client.get("a", None).await.unwrap().header().unwrap().revision();
        let origin = Origin { revision, lease };
        Self { client, origin, watches: None, notifications: Notifications::default(), locks: Vec::new() }
    }

    /// Returns the notifications so far, sorted by source; those of one source keep their order.
    pub(crate) fn notifications(&self) -> Vec<(String, String)> {
        let mut notifications = self.notifications.lock().unwrap().clone();
        // Messages of different watches of one stream arrive in no fixed order.
        notifications.sort_by(|one, other| one.0.cmp(&other.0));
        notifications
    }

    /// Ends the tasks that the script has left running.
    pub(crate) fn end(self) {
        self.locks.iter().for_each(JoinHandle::abort);
        if let Some((_, reader)) = self.watches {
            reader.abort();
        }
    }

    /// Sends a request, and returns its answer as text. `unlock` is the key of the lock to release.
    pub(crate) async fn carry_out(&mut self, op: &Op, unlock: Option<&str>) -> String {
        let (origin, revision) = (self.origin, self.origin.revision);
        let client = &mut self.client;
        match op {
            Op::Put(put) => {
                let (key, value, options) = put.parts(origin);
                show::answer(&client.put(key, value, Some(options)).await, revision)
            }
            Op::Range(range) => {
                let (key, options) = range.parts(origin);
                show::answer(&client.get(key, Some(options)).await, revision)
            }
            Op::Delete(delete) => {
                let (key, options) = delete.parts();
                show::answer(&client.delete(key, Some(options)).await, revision)
            }
            Op::Txn { when, then, or_else } => {
                show::answer(&client.txn(txn(when, then, or_else, origin)).await, revision)
            }
            Op::Compact(at) => show::answer(&client.compact(revision + at, None).await, revision),
            Op::Unlock => show::answer(&client.unlock(unlock.unwrap_or("no/such/lock")).await, revision),
            Op::Lock { name, lease } => self.lock(name, origin.lease(*lease)).await,
            Op::Watch(_) | Op::Cancel(_) | Op::Progress => self.watch(op).await,
            _ => self.lease(op).await,
        }
    }

    async fn lease(&mut self, op: &Op) -> String {
        let (origin, revision) = (self.origin, self.origin.revision);
        let client = &mut self.client;
        match op {
            Op::Grant { lease, ttl } => {
                let options = LeaseGrantOptions::new().with_id(origin.lease(*lease));
                show::answer(&client.lease_grant(*ttl, Some(options)).await, revision)
            }
            Op::Revoke(lease) => show::answer(&client.lease_revoke(origin.lease(*lease)).await, revision),
            Op::KeepAlive(lease) => {
                let (mut keeper, mut answers) = match client.lease_keep_alive(origin.lease(*lease)).await {
                    Ok(streams) => streams,
                    Err(error) => return show::answer::<()>(&Err(error), revision),
                };
                let asked = keeper.keep_alive().await;
                let answer = match asked {
                    Ok(()) => answers.message().await,
                    Err(error) => Err(error),
                };
                show::answer(&answer, revision)
            }
            Op::TimeToLive { lease, keys } => {
                let options = LeaseTimeToLiveOptions::new();
                let options = if *keys { options.with_keys() } else { options };
                let answer = client.lease_time_to_live(origin.lease(*lease), Some(options)).await;
                show::answer(&answer, revision)
            }
            Op::Leases => show::answer(&client.leases().await, revision),
            other => format!("{other:?} is no request to a server"),
        }
    }

    async fn watch(&mut self, op: &Op) -> String {
        let origin = self.origin;
        let asked = match (op, &mut self.watches) {
            (Op::Watch(watch), Some((requests, _))) => {
                let (key, options) = watch.parts(origin);
                requests.watch(key, Some(options)).await
            }
            (Op::Watch(watch), none) => {
                let (key, options) = watch.parts(origin);
                match self.client.watch(key, Some(options)).await {
                    Ok(stream) => {
                        let (requests, mut messages) = stream.split();
                        let notifications = Arc::clone(&self.notifications);
                        let reader = tokio::spawn(async move {
                            while let Ok(Some(message)) = messages.message().await {
                                let things = show::message(&message, origin.revision).into_iter();
                                let things = things.map(|(id, text)| (format!("watch {id}"), text));
                                notifications.lock().unwrap().extend(things);
                            }
                        });
                        *none = Some((requests, reader));
                        Ok(())
                    }
                    Err(error) => Err(error),
                }
            }
            (Op::Cancel(id), Some((requests, _))) => requests.cancel(*id).await,
            (_, Some((requests, _))) => requests.request_progress().await,
            (_, None) => return String::from("(there is no watch)"),
        };
        show::answer(&asked, origin.revision)
    }

    /// Waits for the answer to the lock `name`, which is not among the first `seen` notifications; returns
    /// [`WAITS`] after `timeout`.
    pub(crate) async fn late_answer(&self, name: &str, seen: usize, timeout: Duration) -> String {
        let answer = async {
            loop {
                if let Some(answer) = self.take_notification(&format!("lock {name}"), seen) {
                    break answer;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(timeout, answer).await.unwrap_or_else(|_| String::from(WAITS))
    }

    /// Removes and returns the first notification of `source` after the first `seen` ones.
    fn take_notification(&self, source: &str, seen: usize) -> Option<String> {
        let mut notifications = self.notifications.lock().unwrap();
        let at = notifications.iter().skip(seen).position(|(from, _)| from == source)?;
        Some(notifications.remove(seen + at).1)
    }

    /// Requests a lock; returns [`WAITS`] if it is not granted within [`TIMEOUT`].
    async fn lock(&mut self, name: &'static str, lease: i64) -> String {
        let (mut client, notifications, revision) =
            (self.client.clone(), Arc::clone(&self.notifications), self.origin.revision);
        let (granted, mut at_once) = tokio::sync::oneshot::channel();
        self.locks.push(tokio::spawn(async move {
            let answer = client.lock(name, Some(LockOptions::new().with_lease(lease))).await;
            // The revision in a waiter's answer is that of its last read, which may see later changes.
            let text = match &answer {
                Ok(answer) => String::from_utf8_lossy(answer.key()).into_owned(),
                Err(_) => show::answer(&answer, revision),
            };
            if let Err(text) = granted.send(text) {
                notifications.lock().unwrap().push((format!("lock {name}"), text));
            }
        }));
        match tokio::time::timeout(TIMEOUT, &mut at_once).await {
            Ok(Ok(text)) => text,
            _ => String::from(WAITS),
        }
    }
}
