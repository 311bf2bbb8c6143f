//! Subscribes to the releases of locks, on a connection of its own, while there are waiters.
//!
//! A message is a hint, and waiters also ask from time to time: a message may get lost, or a lease expire
//! without one.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dlock_runtime::{Instant, Runtime, probes, sometimes, timeout_at};
use futures_util::future::{BoxFuture, Either, select};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, PushKind, RedisConnectionInfo, Value};
use tokio::sync::oneshot;

use super::waiters::{Ticket, Waiters};
use crate::sync::Guarded;

/// The interval at which the connection is checked, and closed if there are no waiters.
const CHECK: Duration = Duration::from_secs(5);
/// The longest time that the server may take to answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after a connection has failed.
const PAUSE: Duration = Duration::from_secs(1);

/// The waiters of a client, and the task that subscribes for them while there are any.
pub(super) struct Listener {
    waiters: Arc<Waiters>,
    is_running: Arc<AtomicBool>,
    /// Dropped with the client, it ends the task.
    close: Guarded<Option<oneshot::Sender<()>>>,
}

impl Listener {
    pub(super) fn new() -> Self {
        Self { waiters: Arc::default(), is_running: Arc::default(), close: Guarded::default() }
    }

    /// Joins the waiters for the lock whose releases are published on `channel`.
    pub(super) fn join(&self, channel: &str) -> Ticket {
        self.waiters.join(channel)
    }

    /// Starts the subscription task unless it runs.
    pub(super) fn listen<R: Runtime>(&self, runtime: &R, address: &str, info: &RedisConnectionInfo) {
        if self.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        let (close, closed) = oneshot::channel();
        *self.close.lock() = Some(close);
        let (waiters, is_running) = (Arc::clone(&self.waiters), Arc::clone(&self.is_running));
        let subscriber =
            Subscriber { runtime: runtime.clone(), address: address.into(), info: info.clone(), waiters };
        runtime.spawn(async move {
            // Boxed: it is some kilobytes large.
            select(Box::pin(subscriber.run()), closed).await;
            is_running.store(false, Ordering::Release);
        });
    }
}

/// The state of the subscription task.
struct Subscriber<R> {
    runtime: R,
    address: Box<str>,
    info: RedisConnectionInfo,
    waiters: Arc<Waiters>,
}

/// The connection has failed, or could not be opened.
struct Lost;

impl<R: Runtime> Subscriber<R> {
    async fn run(self) {
        let ended = self.connect_and_follow().await;
        let is_lost = ended.is_err();
        sometimes!(self.runtime, subscription_lost, is_lost && !self.waiters.is_empty());
        self.waiters.unsubscribed();
        if let Err(Lost) = ended {
            self.runtime.sleep_until(self.runtime.now() + PAUSE).await;
        }
    }

    async fn connect_and_follow(&self) -> Result<(), Lost> {
        self.waiters.unsubscribed();
        let opened = timeout_at(&self.runtime, self.deadline(), self.open()).await.unwrap_or(Err(Lost));
        let (pipe, driver) = opened?;
        match select(driver, pin!(self.follow(pipe))).await {
            Either::Left(((), _)) => Err(Lost),
            Either::Right((ended, _)) => ended,
        }
    }

    async fn open(&self) -> Result<(MultiplexedConnection, BoxFuture<'static, ()>), Lost> {
        let stream = self.runtime.connect(&self.address).await.map_err(|_| Lost)?;
        let waiters = Arc::clone(&self.waiters);
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_connection_timeout(None)
            .set_push_sender(move |push: PushInfo| {
                if let Some((channel, place)) = message_of(&push) {
                    waiters.call(channel, place);
                }
                Ok::<_, redis::aio::SendError>(())
            });
        // Only in this protocol can a connection both subscribe and send commands.
        let info = self.info.clone().set_protocol(ProtocolVersion::RESP3).set_skip_set_lib_name();
        let opened = MultiplexedConnection::new_with_config(&info, stream, config).await;
        let (pipe, driver) = opened.map_err(|_| Lost)?;
        Ok((pipe, Box::pin(driver)))
    }

    /// Subscribes to the channels of all wait queues, until there are none.
    async fn follow(&self, mut pipe: MultiplexedConnection) -> Result<(), Lost> {
        loop {
            let (begun, ended) = self.waiters.changes();
            if !begun.is_empty() {
                self.within(pipe.subscribe(names(&begun))).await?;
                self.waiters.subscribed(&begun);
            }
            if !ended.is_empty() {
                self.within(pipe.unsubscribe(names(&ended))).await?;
            }
            let check = self.runtime.now() + CHECK;
            if timeout_at(&self.runtime, check, self.waiters.changed()).await.is_ok() {
                continue;
            }
            if self.waiters.is_empty() {
                return Ok(());
            }
            let ping = redis::cmd("PING");
            self.within(async { pipe.send_packed_command(&ping).await.map(drop) }).await?;
        }
    }

    async fn within(&self, exchange: impl Future<Output = redis::RedisResult<()>>) -> Result<(), Lost> {
        match timeout_at(&self.runtime, self.deadline(), exchange).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Lost),
        }
    }

    fn deadline(&self) -> Instant {
        self.runtime.now() + REQUEST_TIMEOUT
    }
}

fn names(channels: &[Arc<str>]) -> Vec<&str> {
    channels.iter().map(AsRef::as_ref).collect()
}

/// Returns the channel of a message, and the place of the waiter that is next, if it names one; `None` for
/// other pushes.
fn message_of(push: &PushInfo) -> Option<(&str, Option<u64>)> {
    match (&push.kind, push.data.as_slice()) {
        (PushKind::Message, [Value::BulkString(channel), rest @ ..]) => {
            let place = match rest {
                [Value::BulkString(text)] => {
                    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok())
                }
                _ => None,
            };
            Some((std::str::from_utf8(channel).ok()?, place))
        }
        _ => None,
    }
}

probes! {
    /// The subscription to releases was lost while there were waiters.
    sometimes subscription_lost;
}
