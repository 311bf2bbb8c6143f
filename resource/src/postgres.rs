//! Connections to PostgreSQL over the streams of a runtime: sockets, or those of the simulator.

use std::io;
use std::str::FromStr;
use std::time::Duration;

use dlock::Runtime;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, Error, NoTls};

/// The port of a URL that names none.
const PORT: u16 = 5432;

/// Opens connections to one PostgreSQL, without TLS.
#[derive(Clone)]
pub struct Connector<R> {
    runtime: R,
    /// `host:port`.
    address: String,
    config: Config,
}

/// Why there is no connection. No error shows a password.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL is invalid.
    #[error("invalid URL of PostgreSQL: {0}; give postgresql://user:password@host:port/database")]
    Url(#[source] Error),
    /// The URL names no host, a socket, or several hosts.
    #[error("the URL of PostgreSQL must name one host: give postgresql://user:password@host:port/database")]
    Host,
    /// The server accepts no connection.
    #[error("no connection to PostgreSQL at {address}: {source}; check that it is running")]
    Connect {
        /// Its address.
        address: String,
        /// The error.
        source: io::Error,
    },
    /// The server refuses the session.
    #[error("PostgreSQL at {address} begins no session: {source}; check the user and the database")]
    Session {
        /// Its address.
        address: String,
        /// The error.
        source: Error,
    },
}

impl<R: Runtime> Connector<R> {
    /// Creates a connector to the server of `url`, `postgresql://user:password@host:port/database`.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Url`] and [`ConnectError::Host`].
    pub fn new(runtime: R, url: &str) -> Result<Self, ConnectError> {
        let config = Config::from_str(url).map_err(ConnectError::Url)?;
        let [Host::Tcp(host)] = config.get_hosts() else { return Err(ConnectError::Host) };
        let port = config.get_ports().first().copied().unwrap_or(PORT);
        let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        Ok(Self { runtime, address, config })
    }

    /// Has the server end each statement, and each transaction whose client is silent, after `timeout` in
    /// whole milliseconds. Without it the locks of a client that is cut off or paused stay.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        let ms = timeout.as_millis().clamp(1, 1_000_000_000);
        let given = self.config.get_options().unwrap_or_default();
        let options =
            format!("{given} -c statement_timeout={ms} -c idle_in_transaction_session_timeout={ms}");
        self.config.options(options.trim_start());
        self
    }

    /// Opens a connection. It may hang while the network is silent: wrap it in `dlock::timeout_at`.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Connect`] and [`ConnectError::Session`].
    pub async fn connect(&self) -> Result<Client, ConnectError> {
        let address = || self.address.clone();
        let stream = self.runtime.connect(&self.address).await;
        let stream = stream.map_err(|source| ConnectError::Connect { address: address(), source })?;
        let (client, connection) = self
            .config
            .connect_raw(stream, NoTls)
            .await
            .map_err(|source| ConnectError::Session { address: address(), source })?;
        self.runtime.spawn(async move {
            // The client has the error, too.
            let _ = connection.await;
        });
        Ok(client)
    }

    /// Returns the runtime.
    pub const fn runtime(&self) -> &R {
        &self.runtime
    }
}
