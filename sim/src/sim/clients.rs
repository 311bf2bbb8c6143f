//! Real clients on the network of a simulated process.

use std::io;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisError};

use super::process::Process;

/// Opens a connection of the real `redis` crate from `process` to the server at `address`, written
/// `host:port`. It has no timeouts of its own, since those would need a tokio runtime: wrap its calls in
/// [`dlock::timeout_at`].
///
/// # Errors
///
/// [`RedisError`] if there is no such server, or if it refuses the connection.
pub async fn redis(process: &Process, address: &str) -> Result<MultiplexedConnection, RedisError> {
    let stream = process.connect(address).await.map_err(|error: io::Error| RedisError::from(error))?;
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let info = RedisConnectionInfo::default();
    let (connection, driver) = MultiplexedConnection::new_with_config(&info, stream, config).await?;
    process.spawn(driver);
    Ok(connection)
}
