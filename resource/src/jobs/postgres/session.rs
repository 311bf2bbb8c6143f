//! A connection to PostgreSQL that is opened when it is needed.

use std::future::Future;

use dlock::{BackendError, Instant, Runtime, timeout_at};
use tokio_postgres::{Client, Error};

use crate::fence::{JobStop, Stop};

/// Opens connections to PostgreSQL.
pub trait ConnectPostgres: Send + Sync {
    /// Opens a connection, whose own future runs in a task.
    ///
    /// # Errors
    ///
    /// The client's error.
    fn connect(&self) -> impl Future<Output = Result<Client, Error>> + Send;
}

/// A connection that is opened when it is needed. A step that fails, or that is dropped, takes its connection
/// with it, and so its transaction.
pub struct PostgresSession<R, C> {
    runtime: R,
    connect: C,
    client: Option<Client>,
}

impl<R: Runtime, C: ConnectPostgres> PostgresSession<R, C> {
    /// Creates a session without a connection.
    pub const fn new(runtime: R, connect: C) -> Self {
        Self { runtime, connect, client: None }
    }

    /// Returns the runtime.
    pub const fn runtime(&self) -> &R {
        &self.runtime
    }

    /// Runs `step` on the connection, which it returns with its result.
    ///
    /// # Errors
    ///
    /// [`PostgresError`]. A transaction whose commit was sent may stand.
    pub async fn run<T, F>(
        &mut self,
        deadline: Instant,
        step: impl FnOnce(Client) -> F + Send,
    ) -> Result<T, PostgresError>
    where
        T: Send,
        F: Future<Output = Result<(Client, T), JobStop<Error>>> + Send,
    {
        let client = self.open(deadline).await?;
        let ended = timeout_at(&self.runtime, deadline, step(client)).await;
        let (client, result) = ended.map_err(|_| PostgresError::NoAnswer)??;
        self.client = Some(client);
        Ok(result)
    }

    /// Takes the connection, or opens one.
    ///
    /// # Errors
    ///
    /// [`PostgresError::Connect`] and [`PostgresError::NoAnswer`].
    pub async fn open(&mut self, deadline: Instant) -> Result<Client, PostgresError> {
        if let Some(client) = self.client.take().filter(|client| !client.is_closed()) {
            return Ok(client);
        }
        let opened = timeout_at(&self.runtime, deadline, self.connect.connect()).await;
        opened.map_err(|_| PostgresError::NoAnswer)?.map_err(PostgresError::Connect)
    }
}

/// A step that was not taken, or whose answer is lost.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// No connection was opened.
    #[error("no connection to PostgreSQL: {0}; check that it runs and that this host may reach it")]
    Connect(#[source] Error),
    /// There was no answer before the deadline.
    #[error("PostgreSQL did not answer in time; it may be cut off, or another transaction may lock the row")]
    NoAnswer,
    /// The claim of the job is over, or the transaction failed.
    #[error(transparent)]
    Stop(#[from] JobStop<Error>),
}

impl From<PostgresError> for BackendError {
    fn from(error: PostgresError) -> Self {
        let message = error.to_string();
        match error {
            PostgresError::Connect(error) => {
                Self::Unreachable { address: "PostgreSQL".to_owned(), reason: error.to_string() }
            }
            PostgresError::NoAnswer => Self::NoAnswer,
            PostgresError::Stop(JobStop::Stop(Stop::Retry(_))) => Self::Refused { message, passing: true },
            PostgresError::Stop(JobStop::Stop(Stop::Failed(error))) if error.code().is_none() => {
                Self::Disconnected { reason: error.to_string() }
            }
            PostgresError::Stop(_) => Self::Refused { message, passing: false },
        }
    }
}
