//! Creates the tables of ticks and jobs on PostgreSQL.

use std::time::{Duration, Instant};

use dlock::{Runtime, TokioRuntime, timeout_at};
use resource::postgres::{ConnectPostgres, PostgresError};
use tokio::runtime::{Builder, Handle};

use super::PlanError;
use super::connector::Connector;
use crate::stop::Stop;
use crate::task_rows;

/// The time within which the tables must be there: the server may be down for a moment.
pub(super) const WITHIN: Duration = Duration::from_secs(30);
/// The timeout of one attempt, and the pause before the next.
const ATTEMPT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);

/// Creates the tables if there are none.
pub(super) fn create(url: &str, stop: &Stop) -> Result<(), PlanError> {
    let executor = Builder::new_current_thread().enable_all().build()?;
    let begun = Instant::now();
    let runtime = TokioRuntime::new(executor.handle().clone());
    let connector = Connector::new(runtime, url)?;
    while let Err(problem) = executor.block_on(attempt(&connector)) {
        if begun.elapsed() >= WITHIN {
            return Err(PlanError::Tables { problem });
        }
        if stop.block(PAUSE) {
            break;
        }
    }
    Ok(())
}

async fn attempt(connector: &Connector) -> Result<(), String> {
    let created = async {
        let client = connector.connect().await.map_err(|error| PostgresError::Connect(error).to_string())?;
        task_rows::migrate(&client).await.map_err(|error| error.to_string())
    };
    let runtime = TokioRuntime::new(Handle::current());
    let answer = timeout_at(&runtime, runtime.now() + ATTEMPT, created).await;
    answer.unwrap_or_else(|_| Err("it did not answer in time".to_owned()))
}
