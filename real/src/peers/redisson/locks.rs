//! Redisson's reentrant lock, and its lock of readers and a writer.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Script};

use super::client::{Algorithm, Holder, Latch, load};
use crate::peers::slice::Job;

/// The client's part of a holder's name, of the length of Redisson's; the other part is that of a thread.
const CLIENT: &str = "01234567-89ab-cdef-0123-456789abcdef";

/// The message that wakes all who wait; any other one wakes one.
const ALL: usize = 1;

/// One reentrant lock.
#[derive(Clone)]
pub(super) struct ReentrantLock {
    connection: MultiplexedConnection,
    scripts: Arc<[Script; 2]>,
    name: String,
    channel: String,
    ttl_ms: u64,
}

impl ReentrantLock {
    /// Creates the job's lock.
    pub(super) async fn new(mut connection: MultiplexedConnection, job: &Job) -> RedisResult<Self> {
        let scripts = [include_str!("acquire_lock.lua"), include_str!("release_lock.lua")];
        let scripts = load(&mut connection, scripts).await?;
        let name = format!("{{{}}}", job.name);
        let channel = format!("redisson_lock__channel:{name}");
        Ok(Self { connection, scripts, name, channel, ttl_ms: job.ttl_ms })
    }
}

impl Algorithm for ReentrantLock {
    async fn try_acquire(&mut self, holder: Holder) -> RedisResult<Option<Duration>> {
        let mut call = self.scripts[0].key(&self.name);
        call.arg(id(holder)).arg(self.ttl_ms);
        let left: Option<u64> = call.invoke_async(&mut self.connection).await?;
        Ok(left.map(Duration::from_millis))
    }

    async fn release(&mut self, holder: Holder) -> RedisResult<()> {
        let mut call = self.scripts[1].key(&self.name);
        call.arg(id(holder)).arg(self.ttl_ms).arg(&self.channel);
        call.invoke_async::<u64>(&mut self.connection).await.map(drop)
    }

    fn channel(&self) -> &str {
        &self.channel
    }

    fn opens(message: usize, latch: &Latch) -> usize {
        opens(message, latch)
    }
}

/// One lock of readers and a writer.
#[derive(Clone)]
pub(super) struct ReadWriteLock {
    connection: MultiplexedConnection,
    /// Acquire and release of a reader, then of a writer.
    scripts: Arc<[Script; 4]>,
    name: String,
    channel: String,
    ttl_ms: u64,
}

impl ReadWriteLock {
    /// Creates the job's lock.
    pub(super) async fn new(mut connection: MultiplexedConnection, job: &Job) -> RedisResult<Self> {
        let scripts = [
            include_str!("acquire_reader.lua"),
            include_str!("release_reader.lua"),
            include_str!("acquire_writer.lua"),
            include_str!("release_writer.lua"),
        ];
        let scripts = load(&mut connection, scripts).await?;
        let name = format!("{{{}}}", job.name);
        let channel = format!("redisson_rwlock:{name}");
        Ok(Self { connection, scripts, name, channel, ttl_ms: job.ttl_ms })
    }

    /// Returns the prefix of the keys of a reader's leases.
    fn leases(&self, reader: &str) -> String {
        format!("{}:{reader}:rwlock_timeout", self.name)
    }
}

impl Algorithm for ReadWriteLock {
    async fn try_acquire(&mut self, holder: Holder) -> RedisResult<Option<Duration>> {
        let [reader, _, writer, _] = &*self.scripts;
        let id = id(holder);
        let as_writer = format!("{id}:write");
        let mut call = if holder.reads { reader.key(&self.name) } else { writer.key(&self.name) };
        if holder.reads {
            call.key(self.leases(&id)).arg(id);
        }
        call.arg(as_writer).arg(self.ttl_ms);
        let left: Option<u64> = call.invoke_async(&mut self.connection).await?;
        Ok(left.map(Duration::from_millis))
    }

    async fn release(&mut self, holder: Holder) -> RedisResult<()> {
        let [_, reader, _, writer] = &*self.scripts;
        let id = id(holder);
        let mut call = if holder.reads { reader.key(&self.name) } else { writer.key(&self.name) };
        if holder.reads {
            call.key(self.leases(&id)).arg(id);
        } else {
            call.arg(format!("{id}:write")).arg(self.ttl_ms);
        }
        call.arg(&self.channel);
        call.invoke_async::<u64>(&mut self.connection).await.map(drop)
    }

    fn channel(&self) -> &str {
        &self.channel
    }

    fn opens(message: usize, latch: &Latch) -> usize {
        opens(message, latch)
    }
}

fn opens(message: usize, latch: &Latch) -> usize {
    if message == ALL { latch.waiting() } else { 1 }
}

/// Returns the name of a holder: a client, and a thread of it.
fn id(holder: Holder) -> String {
    format!("{CLIENT}:{}", holder.contender)
}
