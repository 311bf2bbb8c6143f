//! Real clients on the network of a simulated process.

use std::io;
#[cfg(feature = "zookeeper")]
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisError};

use super::process::Process;
#[cfg(feature = "zookeeper")]
use crate::world::runtime::SimRuntime;

#[cfg(feature = "etcd")]
#[doc(hidden)]
pub use super::etcd_channel::{channel, meaning};
#[cfg(feature = "postgres")]
use super::unconnected::Attempt;

/// The crate of the client, in the version that [`zookeeper`] returns.
#[cfg(feature = "zookeeper")]
pub use dlock_zookeeper;
/// The crate of the client, in the version that [`etcd`] returns.
#[cfg(feature = "etcd")]
pub use etcd_client;
/// The crate of the client, in the version that [`postgres`] returns.
#[cfg(feature = "postgres")]
pub use tokio_postgres;

/// Opens a connection of the real `redis` crate from `process` to the server at `address`, written
/// `host:port`. It has no timeouts of its own, since those need a tokio runtime: wrap its calls in
/// [`dlock::timeout_at`].
///
/// # Errors
///
/// [`RedisError`] if there is no such server, or if it refuses the connection.
///
/// # Example
///
/// ```
/// use redis::AsyncCommands;
/// use sim::Process;
///
/// /// Counts a visit, on a connection of this process.
/// async fn visit(process: &Process) -> redis::RedisResult<u64> {
///     let mut redis = sim::clients::redis(process, "redis:6379").await?;
///     redis.incr("visits", 1).await
/// }
/// ```
pub async fn redis(process: &Process, address: &str) -> Result<MultiplexedConnection, RedisError> {
    let stream = process.connect(address).await.map_err(|error: io::Error| RedisError::from(error))?;
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let info = RedisConnectionInfo::default();
    let (connection, driver) = MultiplexedConnection::new_with_config(&info, stream, config).await?;
    process.spawn(driver);
    Ok(connection)
}

/// Returns a client of the real `etcd-client` crate in `process`, for the member at `address`, written
/// `host:port`. It connects with its first request, and again after a connection has failed. It has no
/// timeouts of its own, since those need a tokio runtime: wrap its calls in [`dlock::timeout_at`].
///
/// # Errors
///
/// [`etcd_client::Error`] if `address` is not valid.
#[cfg(feature = "etcd")]
pub async fn etcd(process: &Process, address: &str) -> Result<etcd_client::Client, etcd_client::Error> {
    etcd_client::Client::from_channel(channel(&process.runtime(), address)?, None).await
}

/// Opens a session of the ZooKeeper client that `dlock` uses, from `process` to the ensemble whose members
/// are at `addresses`, each written `host:port`. It asks for `session_timeout`; servers grant 2 to 20 ticks.
/// The session continues until the last clone of the client is dropped.
#[cfg(feature = "zookeeper")]
pub fn zookeeper<S: Into<String>>(
    process: &Process,
    addresses: impl IntoIterator<Item = S>,
    session_timeout: Duration,
) -> dlock_zookeeper::Client<SimRuntime> {
    let options = dlock_zookeeper::ClientOptions::new(addresses, session_timeout);
    dlock_zookeeper::Client::new(process.runtime(), options)
}

/// Opens a connection of the real `tokio-postgres` crate from `process` to the server at `address`, written
/// `host:port`. Its user, its database and its options are those of `config`; the addresses and timeouts in
/// it are ignored, since those need a tokio runtime: wrap calls in [`dlock::timeout_at`].
///
/// The crate numbers its statements in a static: messages of a second run in the same program name them
/// otherwise ([`Sim::in_own_process`](crate::Sim::in_own_process) helps), and the history is the same.
///
/// The connection's future runs in the process, and drops notifications. To get them, give the future of
/// [`Config::connect_raw`](tokio_postgres::Config::connect_raw) a stream of [`Process::connect`] and poll its
/// messages.
///
/// # Errors
///
/// [`tokio_postgres::Error`] if there is no such server, or if it refuses the connection.
///
/// # Example
///
/// ```
/// use sim::clients::tokio_postgres::{Config, Error};
/// use sim::servers::postgres::PostgresHost;
/// use sim::{Process, Sim};
///
/// async fn greet(process: &Process) -> Result<String, Error> {
///     let client = sim::clients::postgres(process, "db:5432", Config::new().user("app")).await?;
///     Ok(client.query_one("SELECT 'hello'", &[]).await?.get(0))
/// }
///
/// let report = Sim::new(7)
///     .host("db", PostgresHost::new())
///     .process("a", |process: Process| async move { process.point(&greet(&process).await.unwrap()) })
///     .run()?;
/// assert!(report.trace().contains("hello"));
/// # Ok::<(), sim::RunError>(())
/// ```
#[cfg(feature = "postgres")]
pub async fn postgres(
    process: &Process,
    address: &str,
    config: &tokio_postgres::Config,
) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
    let stream = Attempt::from(process.connect(address).await);
    let (client, connection) = config.connect_raw(stream, tokio_postgres::NoTls).await?;
    process.spawn(async move {
        // The client reports the error of a connection that breaks.
        let _ = connection.await;
    });
    Ok(client)
}
