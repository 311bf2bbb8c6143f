//! deadpool-redis 0.23: each round takes a connection from the process's pool.

use std::sync::OnceLock;
use std::time::Duration;

use common::{Form, KEY, RELEASE, SmallLock, TTL, try_both};
use deadpool_redis::redis::{Script, cmd};
use deadpool_redis::{Config, Connection, PoolError, Runtime};

struct Lock(Connection);

impl SmallLock for Lock {
    type Error = PoolError;

    async fn acquire(&mut self, owner: &str, _: Form) -> Result<bool, PoolError> {
        let mut set = cmd("SET");
        set.arg(KEY).arg(owner).arg("NX").arg("PX").arg(TTL.as_millis() as u64);
        let set: Option<String> = set.query_async(&mut self.0).await.map_err(PoolError::Backend)?;
        Ok(set.is_some())
    }

    async fn release(&mut self, owner: &str, form: Form) -> Result<(), PoolError> {
        let script = Script::new(RELEASE);
        let released: Result<i64, _> = match form {
            Form::Correct => script.key(KEY).arg(owner).invoke_async(&mut self.0).await,
            Form::Wrong => cmd("DEL").arg(KEY).query_async(&mut self.0).await,
        };
        released.map(drop).map_err(PoolError::Backend)
    }
}

async fn connect() -> Result<Lock, PoolError> {
    // A pool of each round's own: a static one would outlive the crash of its process.
    let pool = OnceLock::new();
    let pool = pool.get_or_init(|| {
        let config = Config::from_url("redis://redis:6379");
        let builder = config.builder().expect("a valid URL");
        let timeout = Some(Duration::from_secs(2));
        let builder = builder.wait_timeout(timeout).create_timeout(timeout).recycle_timeout(timeout);
        builder.runtime(Runtime::Tokio1).max_size(2).build().expect("a runtime for the timeouts")
    });
    // The second one comes from the pool.
    drop(pool.get().await?);
    Ok(Lock(pool.get().await?))
}

#[test]
fn a_pooled_connection_carries_a_lock() {
    try_both("deadpool_redis", "foreign_release", |sim, form| {
        common::contend(common::redis(sim), form, connect)
    });
}
