//! Connections to the PostgreSQL that keeps ticks and jobs.

use std::time::Duration;

use dlock::{Runtime, TokioRuntime};
use resource::postgres::ConnectPostgres;
use tokio_postgres::{Client, Config, Error, NoTls};

/// A URL that names no PostgreSQL. No error shows a password.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// It is invalid.
    #[error("invalid URL of PostgreSQL: {0}; give postgresql://user:password@host:port/database")]
    Invalid(#[from] Error),
    /// It names no host.
    #[error("the URL of PostgreSQL must name a host: give postgresql://user:password@host:port/database")]
    NoHost,
}

/// Opens connections to one PostgreSQL, without TLS. Without `Debug`: the URL may have a password.
#[derive(Clone)]
pub(crate) struct Connector {
    runtime: TokioRuntime,
    config: Config,
}

impl Connector {
    /// Creates a connector to the server of `url`.
    pub(crate) fn new(runtime: TokioRuntime, url: &str) -> Result<Self, UrlError> {
        let config: Config = url.parse()?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(UrlError::NoHost);
        }
        Ok(Self { runtime, config })
    }

    /// Has the server end each statement, and each transaction whose client is silent, after `timeout` in
    /// whole milliseconds. Without it the locks of a worker that is cut off or paused stay.
    pub(super) fn with_timeout(mut self, timeout: Duration) -> Self {
        let ms = timeout.as_millis().clamp(1, 1_000_000_000);
        let given = self.config.get_options().unwrap_or_default();
        let options =
            format!("{given} -c statement_timeout={ms} -c idle_in_transaction_session_timeout={ms}");
        self.config.options(options.trim_start());
        self
    }
}

impl ConnectPostgres for Connector {
    async fn connect(&self) -> Result<Client, Error> {
        let (client, connection) = self.config.connect(NoTls).await?;
        self.runtime.spawn(async move {
            // The client has the error, too.
            let _ = connection.await;
        });
        Ok(client)
    }
}
