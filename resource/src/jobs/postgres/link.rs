//! The connection of a worker, opened again after an error.

use dlock::{Elapsed, Runtime};
use tokio_postgres::{Client, Error, Transaction};

use crate::KeyError;
use crate::fence::{JobStop, Retryable, Stop};
use crate::postgres::{ConnectError, Connector};

/// Why a step on the queue was not taken, or has no answer.
#[derive(Debug, thiserror::Error)]
pub enum PostgresJobsError {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The claim is over, or the transaction has failed. After a commit without an answer, all of it stands
    /// or nothing.
    #[error(transparent)]
    Job(#[from] JobStop<Error>),
    /// The server did not answer in time.
    #[error("PostgreSQL did not answer in time; check that it is running and reachable")]
    Timeout,
    /// The queue's name and the job's number can't name a resource.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl From<Error> for PostgresJobsError {
    fn from(error: Error) -> Self {
        let stop = if error.is_retryable() { Stop::Retry(error) } else { Stop::Failed(error) };
        Self::Job(JobStop::Stop(stop))
    }
}

impl PostgresJobsError {
    /// Returns true if the claim is over: the server has answered, and the connection is as good as before.
    pub(super) const fn is_superseded(&self) -> bool {
        matches!(self, Self::Job(JobStop::Superseded { .. }))
    }
}

/// The connection of a worker.
pub(super) struct Link<R> {
    connector: Connector<R>,
    client: Option<Client>,
}

impl<R: Runtime> Link<R> {
    /// Creates a link whose connection is opened by the first transaction.
    pub(super) const fn new(connector: Connector<R>) -> Self {
        Self { connector, client: None }
    }

    pub(super) const fn runtime(&self) -> &R {
        self.connector.runtime()
    }

    /// Begins a transaction, on a new connection if there is none.
    pub(super) async fn begin(&mut self) -> Result<Transaction<'_>, PostgresJobsError> {
        let client = match self.client.take() {
            Some(client) if !client.is_closed() => client,
            _ => self.connector.connect().await?,
        };
        Ok(self.client.insert(client).transaction().await?)
    }

    /// Returns the answer to a step. Forgets the connection after an error, since it may be broken, or still
    /// be at an earlier step.
    pub(super) fn settle<T>(
        &mut self,
        answer: Result<Result<T, PostgresJobsError>, Elapsed>,
    ) -> Result<T, PostgresJobsError> {
        let answer = answer.unwrap_or(Err(PostgresJobsError::Timeout));
        if answer.as_ref().is_err_and(|error| !error.is_superseded()) {
            self.client = None;
        }
        answer
    }
}
