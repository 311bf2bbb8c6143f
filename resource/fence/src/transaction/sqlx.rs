//! The check on the transactions of `sqlx`.

use sqlx::postgres::{PgConnection, PgPool, Postgres};
use sqlx::{Error, Row as _, Transaction};

use super::stop::is_retryable;
use super::{CHECK, Connection, FIND, Parameters, Retryable, Row, UserTransaction};

impl Retryable for Error {
    fn is_retryable(&self) -> bool {
        is_retryable(self.as_database_error().and_then(|error| error.code()).as_deref())
    }
}

impl UserTransaction for Transaction<'_, Postgres> {
    type Error = Error;

    async fn accept(&mut self, parameters: &Parameters) -> Result<Option<i64>, Error> {
        let check = sqlx::query_scalar(CHECK)
            .bind(&parameters.key)
            .bind(parameters.token)
            .bind(parameters.seq)
            .bind(&parameters.owner)
            .bind(parameters.digest.as_bytes().as_slice())
            .bind(&parameters.owner_prefix)
            .bind(&parameters.payload);
        check.fetch_optional(&mut **self).await
    }

    async fn find(&mut self, key: &str) -> Result<Option<Row>, Error> {
        let Some(row) = sqlx::query(FIND).bind(key).fetch_optional(&mut **self).await? else {
            return Ok(None);
        };
        Ok(Some(Row {
            token: row.try_get(0)?,
            seq: row.try_get(1)?,
            owner: row.try_get(2)?,
            sha256: row.try_get(3)?,
            version: row.try_get(4)?,
        }))
    }

    async fn abort(&mut self, script: &'static str) {
        // The error is the aim. If the connection is lost instead, the transaction is gone with it.
        let _ = sqlx::raw_sql(script).execute(&mut **self).await;
    }
}

impl Connection for &mut PgConnection {
    type Error = Error;

    async fn run_script(self, script: &'static str) -> Result<(), Error> {
        sqlx::raw_sql(script).execute(self).await.map(drop)
    }
}

impl Connection for &PgPool {
    type Error = Error;

    async fn run_script(self, script: &'static str) -> Result<(), Error> {
        sqlx::raw_sql(script).execute(self).await.map(drop)
    }
}
