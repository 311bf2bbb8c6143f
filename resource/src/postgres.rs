//! Connections to PostgreSQL, which are opened when they are needed.
//!
//! The caller opens them by its own client: with TLS or without it, over sockets or in the simulator.

use std::error::Error as _;
use std::future::Future;
use std::iter::successors;

use dlock::{BackendError, Instant, Runtime, timeout_at};
use tokio_postgres::{Client, Error};

use crate::fence::{JobStop, Stop};

/// Opens connections to PostgreSQL.
///
/// Set `statement_timeout` and `idle_in_transaction_session_timeout` for them: otherwise the locks of a
/// client that is paused or cut off within a transaction stay, and others wait for them in vain.
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
    #[error("no connection to PostgreSQL: {}; check that it runs and that this host may reach it", words(.0))]
    Connect(#[source] Error),
    /// There was no answer before the deadline.
    #[error("PostgreSQL did not answer in time; it may be cut off, or another transaction may lock the row")]
    NoAnswer,
    /// The claim of a job is over, or the transaction failed.
    #[error(transparent)]
    Stop(#[from] JobStop<Error>),
}

impl From<Error> for PostgresError {
    /// Returns the error of a transaction.
    fn from(error: Error) -> Self {
        Self::Stop(JobStop::Stop(Stop::from(error)))
    }
}

impl From<PostgresError> for BackendError {
    fn from(error: PostgresError) -> Self {
        let message = error.to_string();
        match error {
            PostgresError::Connect(error) => {
                Self::Unreachable { address: "PostgreSQL".to_owned(), reason: words(&error) }
            }
            PostgresError::NoAnswer => Self::NoAnswer,
            PostgresError::Stop(JobStop::Stop(Stop::Retry(_))) => Self::Refused { message, passing: true },
            PostgresError::Stop(JobStop::Stop(Stop::Failed(error))) => match error.code() {
                None => Self::Disconnected { reason: words(&error) },
                Some(state) => Self::Refused { message, passing: is_passing(state.code()) },
            },
            PostgresError::Stop(_) => Self::Refused { message, passing: false },
        }
    }
}

/// Returns whether what has failed with this SQLSTATE may succeed later as it is: the server was away, short
/// of something, or restarted, or a timeout ended the transaction.
///
/// Source: PostgreSQL, "Error Codes" (appendix A).
fn is_passing(state: &str) -> bool {
    // Connection, resources, operator, system; a row that is locked, a transaction that was idle too long.
    ["08", "53", "57", "58"].iter().any(|class| state.starts_with(class))
        || ["55P03", "25P03"].contains(&state)
}

/// Returns the words of an error of the client with those of its sources: its own name its kind alone.
fn words(error: &Error) -> String {
    let sources = successors(error.source(), |source| (*source).source());
    sources.fold(error.to_string(), |words, source| format!("{words}: {source}"))
}

#[cfg(test)]
mod tests {
    use tokio_postgres::Config;

    use super::*;

    #[test]
    fn what_a_timeout_or_a_restart_has_ended_may_succeed_later() {
        for state in ["57014", "25P03", "57P01", "55P03", "53300", "08006"] {
            assert!(is_passing(state), "{state}");
        }
        // A constraint, a missing table, a transaction that has failed.
        for state in ["23505", "42P01", "25P02"] {
            assert!(!is_passing(state), "{state}");
        }
    }

    #[test]
    fn the_words_of_an_error_name_its_source() {
        let error = "postgresql://[::1".parse::<Config>().unwrap_err();
        assert_eq!(words(&error), "invalid connection string: invalid value for option `host`");
    }
}
