//! Creates the tables of the check on MySQL or MariaDB.

use sqlx::mysql::{MySqlConnection, MySqlPool};
use sqlx::{Connection as _, Error};

use super::super::Connection;

/// The step that creates the tables. A released step is never changed: add another.
const STEP_1: &str = include_str!("../../../migrations/mysql/001-fence.sql");

/// The migrations of MySQL and MariaDB in their order, each with its name, for programs with a migration tool
/// of their own. Each may run again.
pub const MYSQL_MIGRATIONS: [(&str, &str); 1] = [("001-fence", STEP_1)];

/// Takes a lock of the server that ends with the session: MySQL commits after each `CREATE TABLE`, so no
/// transaction can hold one. It has a name for each database.
const LOCK: &str = "SELECT GET_LOCK(CONCAT('fencepost_fence.', SHA1(DATABASE())), 60)";
const UNLOCK: &str = "SELECT RELEASE_LOCK(CONCAT('fencepost_fence.', SHA1(DATABASE())))";

impl Connection for &mut MySqlConnection {
    type Error = Error;

    async fn create_tables(self) -> Result<(), Error> {
        if self.is_in_transaction() {
            return Err(Error::Protocol(
                "migrate would commit the open transaction: call it before the transaction".to_owned(),
            ));
        }
        // NULL without a database: then the tables have no place, and the step says so.
        if sqlx::query_scalar::<_, Option<i64>>(LOCK).fetch_one(&mut *self).await? == Some(0) {
            return Err(Error::Protocol(
                "another program has been creating the tables of the fence for a minute: run migrate again"
                    .to_owned(),
            ));
        }
        let created = sqlx::raw_sql(STEP_1).execute(&mut *self).await;
        // If it fails, the session has ended, and the lock with it.
        let _ = sqlx::query(UNLOCK).execute(&mut *self).await;
        created.map(drop)
    }
}

impl Connection for &MySqlPool {
    type Error = Error;

    /// Uses a connection of its own: a caller that is cancelled drops it, and the lock with it, instead of
    /// giving both back to the pool.
    async fn create_tables(self) -> Result<(), Error> {
        let mut connection = self.acquire().await?.detach();
        connection.create_tables().await?;
        connection.close().await
    }
}
