//! redis 1.8: a multiplexed connection, the connection manager, and messages to subscribers.

use std::time::Duration;

use common::{Form, KEY, RELEASE, SmallLock, TTL, try_both};
use futures_util::StreamExt;
use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig, MultiplexedConnection};
use redis::{AsyncCommands, Client, RedisError, RedisResult, Script, cmd};
use sim::Sim;

struct Lock<C>(C);

impl<C: ConnectionLike + Send + Sync> SmallLock for Lock<C> {
    type Error = RedisError;

    async fn acquire(&mut self, owner: &str, _: Form) -> RedisResult<bool> {
        let mut set = cmd("SET");
        set.arg(KEY).arg(owner).arg("NX").arg("PX").arg(TTL.as_millis() as u64);
        let set: Option<String> = set.query_async(&mut self.0).await?;
        Ok(set.is_some())
    }

    async fn release(&mut self, owner: &str, form: Form) -> RedisResult<()> {
        match form {
            Form::Correct => Script::new(RELEASE).key(KEY).arg(owner).invoke_async(&mut self.0).await,
            Form::Wrong => cmd("DEL").arg(KEY).query_async(&mut self.0).await,
        }
    }
}

async fn multiplexed() -> RedisResult<Lock<MultiplexedConnection>> {
    Ok(Lock(Client::open("redis://redis:6379")?.get_multiplexed_async_connection().await?))
}

async fn managed() -> RedisResult<Lock<ConnectionManager>> {
    let config = ConnectionManagerConfig::new().set_number_of_retries(2);
    Ok(Lock(Client::open("redis://redis:6379")?.get_connection_manager_with_config(config).await?))
}

#[test]
fn a_multiplexed_connection_carries_a_lock() {
    try_both("redis_multiplexed", "foreign_release", |sim, form| {
        common::contend(common::redis(sim), form, multiplexed)
    });
}

#[test]
fn the_connection_manager_carries_a_lock() {
    try_both("redis_connection_manager", "foreign_release", |sim, form| {
        common::contend(common::redis(sim), form, managed)
    });
}

/// A waiter that subscribes before it looks at the key hears of each release.
#[test]
fn a_subscriber_hears_of_the_release() {
    sim::check("redis_pubsub", |sim: &mut Sim| {
        common::redis(sim);
        sim.process("a", |_| async {
            let _ = publish().await;
        });
        sim.process("b", |_| async {
            let _ = tokio::time::timeout(Duration::from_secs(20), subscribe()).await;
        });
    })
    .schedules(1000)
    .check_determinism()
    .run();
}

async fn publish() -> RedisResult<()> {
    let Lock(mut connection) = multiplexed().await?;
    let _: () = connection.set(KEY, "a-0").await?;
    sim::point("locked");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let _: () = redis::pipe().atomic().del(KEY).publish("released", KEY).query_async(&mut connection).await?;
    Ok(())
}

async fn subscribe() -> RedisResult<()> {
    let client = Client::open("redis://redis:6379")?;
    let mut subscriber = client.get_async_pubsub().await?;
    subscriber.subscribe("released").await?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    let mut messages = subscriber.on_message();
    while connection.exists(KEY).await? {
        if tokio::time::timeout(Duration::from_secs(2), messages.next())
            .await
            .is_ok_and(|heard| heard.is_some())
        {
            sim::reached!("a release was heard");
        }
    }
    Ok(())
}
