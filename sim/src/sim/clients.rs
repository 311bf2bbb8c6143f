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

/// The crate of the client, in the version that [`zookeeper`] returns.
#[cfg(feature = "zookeeper")]
pub use dlock_zookeeper;
/// The crate of the client, in the version that [`etcd`] returns.
#[cfg(feature = "etcd")]
pub use etcd_client;

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
