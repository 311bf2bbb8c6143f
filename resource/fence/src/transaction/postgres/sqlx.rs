//! The check on the transactions of `sqlx` with PostgreSQL.

use sqlx::postgres::{PgConnection, PgPool, Postgres};
use sqlx::{Error, Row as _, Transaction};

use super::super::{Connection, UserTransaction};
use super::{
    ABORT, CHECK, Client, Entry, FIND, MIGRATE, Parameters, PostgresTransaction, Receipt, ResourceKey,
    SignedRow, Stop, TickParameters, judge,
};

impl Client for Transaction<'_, Postgres> {
    type Error = Error;

    async fn accept(&mut self, parameters: &Parameters) -> Result<Option<i64>, Error> {
        let check = sqlx::query_scalar(CHECK)
            .bind(&parameters.key)
            .bind(parameters.token)
            .bind(parameters.seq)
            .bind(&parameters.owner)
            .bind(parameters.digest.as_bytes().as_slice())
            .bind(&parameters.owner_prefix)
            .bind(&parameters.payload)
            .bind(parameters.first_max)
            .bind(parameters.step_max);
        check.fetch_optional(&mut **self).await
    }

    async fn find(&mut self, key: &str) -> Result<Option<SignedRow>, Error> {
        let Some(row) = sqlx::query(FIND).bind(key).fetch_optional(&mut **self).await? else {
            return Ok(None);
        };
        Ok(Some(SignedRow {
            token: row.try_get(0)?,
            seq: row.try_get(1)?,
            owner: row.try_get(2)?,
            sha256: row.try_get(3)?,
            version: row.try_get(4)?,
        }))
    }
}

impl UserTransaction for Transaction<'_, Postgres> {
    type Error = Error;

    async fn judge(&mut self, key: &ResourceKey, entry: &Entry) -> Result<Receipt, Stop<Error>> {
        judge(self, key, entry).await
    }

    async fn abort(&mut self) {
        let _ = sqlx::raw_sql(ABORT).execute(&mut **self).await;
    }
}

impl PostgresTransaction for Transaction<'_, Postgres> {
    async fn last_tick(&mut self, statement: &'static str, key: &str) -> Result<(Option<i64>, i64), Error> {
        let row = sqlx::query(statement).bind(key).fetch_one(&mut **self).await?;
        Ok((row.try_get(0)?, row.try_get(1)?))
    }

    async fn on_tick(
        &mut self,
        statement: &'static str,
        parameters: &TickParameters,
    ) -> Result<Option<i64>, Error> {
        let TickParameters { key, tick, token, owner_prefix } = parameters;
        let query = sqlx::query_scalar(statement).bind(key).bind(tick).bind(token).bind(owner_prefix);
        query.fetch_optional(&mut **self).await
    }

    async fn json(&mut self, statement: &'static str, parameters: &str) -> Result<Option<String>, Error> {
        sqlx::query_scalar(statement).bind(parameters).fetch_optional(&mut **self).await
    }
}

impl Connection for &mut PgConnection {
    type Error = Error;

    async fn create_tables(self) -> Result<(), Error> {
        sqlx::raw_sql(MIGRATE).execute(self).await.map(drop)
    }
}

impl Connection for &PgPool {
    type Error = Error;

    async fn create_tables(self) -> Result<(), Error> {
        sqlx::raw_sql(MIGRATE).execute(self).await.map(drop)
    }
}
