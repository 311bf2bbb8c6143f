//! Redisson's expirable semaphore. The ends of its permits are times of the clients' clocks.
#![allow(clippy::disallowed_methods, reason = "the algorithm reads the machine's own clock")]

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Script, cmd};

use super::client::{Algorithm, Holder, Latch, load};
use crate::peers::slice::Job;

/// One semaphore.
#[derive(Clone)]
pub(super) struct Permits {
    connection: MultiplexedConnection,
    scripts: Arc<[Script; 2]>,
    keys: [String; 2],
    channel: String,
    ttl: Duration,
}

impl Permits {
    /// Creates the job's semaphore, with all its permits free.
    pub(super) async fn new(mut connection: MultiplexedConnection, job: &Job) -> RedisResult<Self> {
        let scripts = [include_str!("acquire_permit.lua"), include_str!("release_permit.lua")];
        let scripts = load(&mut connection, scripts).await?;
        let keys = [format!("{{{}}}", job.name), format!("{{{}}}:timeout", job.name)];
        cmd("SET").arg(&keys[0]).arg(job.permits).exec_async(&mut connection).await?;
        let channel = format!("redisson_sc:{{{}}}", job.name);
        Ok(Self { connection, scripts, keys, channel, ttl: job.ttl() })
    }
}

impl Algorithm for Permits {
    async fn try_acquire(&mut self, holder: Holder) -> RedisResult<Option<Duration>> {
        let now = unix_millis();
        let end = now + self.ttl.as_millis() as u64;
        let [count, taken] = &self.keys;
        let mut call = self.scripts[0].key(count);
        call.key(taken).arg(id(holder)).arg(end).arg(now).arg(&self.channel);
        let answer: Option<String> = call.invoke_async(&mut self.connection).await?;
        if answer.as_deref() == Some("OK") {
            return Ok(None);
        }
        let next = answer.and_then(|end| end.parse::<u64>().ok());
        let wait = next.map(|next| Duration::from_millis(next.saturating_sub(unix_millis())));
        Ok(Some(wait.unwrap_or(self.ttl)))
    }

    async fn release(&mut self, holder: Holder) -> RedisResult<()> {
        let [count, taken] = &self.keys;
        let mut call = self.scripts[1].key(count);
        call.key(taken).arg(id(holder)).arg(unix_millis()).arg(&self.channel);
        call.invoke_async::<u64>(&mut self.connection).await.map(drop)
    }

    fn channel(&self) -> &str {
        &self.channel
    }

    /// Wakes as many as there are permits free: a message is their number.
    fn opens(message: usize, latch: &Latch) -> usize {
        message.saturating_sub(latch.available())
    }
}

/// Returns the name of a permit: each acquire has one of its own.
fn id(holder: Holder) -> String {
    format!("{:016x}{:016x}", holder.contender, holder.round)
}

fn unix_millis() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
