//! Creates the tables of the check.

use std::future::Future;

/// A connection on which the tables can be created: `&tokio_postgres::Client`, `&mut sqlx::PgConnection`,
/// `&sqlx::PgPool`, `&mut sqlx::MySqlConnection` or `&sqlx::MySqlPool`.
pub trait Connection: Send {
    /// The client's error.
    type Error;

    /// Creates the tables that are missing.
    #[doc(hidden)]
    fn create_tables(self) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Creates the tables `fence_position` and `fence_audit`, on PostgreSQL also `cron_tick` and `queue_job`, if
/// they are missing: on PostgreSQL in the first schema of the search path and in one transaction, on MySQL
/// and MariaDB in the database of the connection. Several programs may run it at once, at each start.
///
/// MySQL and MariaDB commit an open transaction before they create a table, so there this function refuses to
/// run within one. If it fails, some tables may exist; the next run creates the others.
///
/// # Errors
///
/// The client's error: the connection failed, or its user may not create tables. On MySQL and MariaDB also
/// `sqlx::Error::Protocol`: a transaction is open, or another program has been creating the tables for a
/// minute.
pub async fn migrate<C: Connection>(connection: C) -> Result<(), C::Error> {
    connection.create_tables().await
}
