//! The errors of `sqlx`, with every database.

use sqlx::Error;
use sqlx::error::DatabaseError;

use super::Retryable;
use super::stop::is_retryable;

impl Retryable for Error {
    fn is_retryable(&self) -> bool {
        self.as_database_error()
            .is_some_and(|error| is_retryable(error.code().as_deref()) || is_retryable_mysql(error))
    }
}

/// The errors of MySQL after which the transaction may succeed the next time, and whose SQLSTATE says
/// nothing. A deadlock (1213) has 40001.
#[cfg(feature = "mysql")]
fn is_retryable_mysql(error: &dyn DatabaseError) -> bool {
    /// The row has changed since the snapshot: MariaDB with `innodb_snapshot_isolation`.
    const CHECKREAD: u16 = 1020;
    /// The wait for a lock took too long; InnoDB without detection of deadlocks ends them so, too.
    const LOCK_WAIT_TIMEOUT: u16 = 1205;
    error
        .try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>()
        .is_some_and(|error| matches!(error.number(), CHECKREAD | LOCK_WAIT_TIMEOUT))
}

#[cfg(not(feature = "mysql"))]
fn is_retryable_mysql(_: &dyn DatabaseError) -> bool {
    false
}
