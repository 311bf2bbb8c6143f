//! Plain commands to the lock server, on connections of their own. Locks with a mistake send them beside the
//! library's scripts.

use std::sync::Arc;

use dlock::{BackendError, Runtime};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, FromRedisValue, RedisConnectionInfo, RedisError};

/// Opens connections to one Redis server: a new one with each call of [`Wire::open`].
#[derive(Clone)]
pub struct Wire<R> {
    runtime: R,
    address: Arc<str>,
}

impl<R: Runtime> Wire<R> {
    /// Creates a `Wire` to the server at `address`. It does not connect yet.
    pub fn new(runtime: R, address: &str) -> Self {
        Self { runtime, address: address.into() }
    }

    /// Opens a connection.
    ///
    /// # Errors
    ///
    /// [`BackendError`] if the server can't be reached, or closes the connection.
    pub async fn open(&self) -> Result<MultiplexedConnection, BackendError> {
        let unreachable = |reason: std::io::Error| BackendError::Unreachable {
            address: self.address.to_string(),
            reason: reason.to_string(),
        };
        let stream = self.runtime.connect(&self.address).await.map_err(unreachable)?;
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let info = RedisConnectionInfo::default();
        let (connection, driver) =
            MultiplexedConnection::new_with_config(&info, stream, config).await.map_err(disconnected)?;
        self.runtime.spawn(driver);
        Ok(connection)
    }

    /// Runs one command on a connection of its own.
    ///
    /// # Errors
    ///
    /// As [`Wire::open`].
    pub async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, BackendError> {
        ask(&mut self.open().await?, command).await
    }
}

/// Runs one command on an open connection.
///
/// # Errors
///
/// [`BackendError::Disconnected`] if there is no answer of the expected type.
pub async fn ask<T: FromRedisValue>(
    connection: &mut MultiplexedConnection,
    command: &Cmd,
) -> Result<T, BackendError> {
    command.query_async(connection).await.map_err(disconnected)
}

fn disconnected(error: RedisError) -> BackendError {
    BackendError::Disconnected { reason: error.to_string() }
}
