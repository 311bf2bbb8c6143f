//! bb8-redis 0.26: each round takes a connection from the process's pool.

use std::time::Duration;

use bb8_redis::RedisConnectionManager;
use bb8_redis::bb8::{Pool, RunError};
use bb8_redis::redis::{RedisError, Script, cmd};
use common::{Form, KEY, RELEASE, SmallLock, TTL, try_both};

struct Lock(Pool<RedisConnectionManager>);

impl SmallLock for Lock {
    type Error = RunError<RedisError>;

    async fn acquire(&mut self, owner: &str, _: Form) -> Result<bool, Self::Error> {
        let mut connection = self.0.get().await?;
        let mut set = cmd("SET");
        set.arg(KEY).arg(owner).arg("NX").arg("PX").arg(TTL.as_millis() as u64);
        let set: Option<String> = set.query_async(&mut *connection).await?;
        Ok(set.is_some())
    }

    async fn release(&mut self, owner: &str, form: Form) -> Result<(), Self::Error> {
        let mut connection = self.0.get().await?;
        let _: i64 = match form {
            Form::Correct => Script::new(RELEASE).key(KEY).arg(owner).invoke_async(&mut *connection).await?,
            Form::Wrong => cmd("DEL").arg(KEY).query_async(&mut *connection).await?,
        };
        Ok(())
    }
}

async fn connect() -> Result<Lock, RunError<RedisError>> {
    let manager = RedisConnectionManager::new("redis://redis:6379")?;
    let pool = Pool::builder().max_size(2).connection_timeout(Duration::from_secs(2)).build(manager).await?;
    Ok(Lock(pool))
}

#[test]
fn a_pooled_connection_carries_a_lock() {
    try_both("bb8_redis", "foreign_release", |sim, form| common::contend(common::redis(sim), form, connect));
}
