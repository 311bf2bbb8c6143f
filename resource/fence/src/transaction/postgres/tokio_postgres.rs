//! The check on the transactions of `tokio-postgres`.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Transaction};

use super::super::stop::is_retryable;
use super::super::{Connection, UserTransaction};
use super::{
    ABORT, CHECK, Client as PostgresClient, Entry, FIND, MIGRATE, Parameters, PostgresTransaction, Receipt,
    ResourceKey, Retryable, SignedRow, Stop, TickParameters, judge,
};

impl Retryable for Error {
    fn is_retryable(&self) -> bool {
        is_retryable(self.code().map(|code| code.code()))
    }
}

impl PostgresClient for Transaction<'_> {
    type Error = Error;

    async fn accept(&mut self, parameters: &Parameters) -> Result<Option<i64>, Error> {
        let Parameters { key, token, seq, owner, digest, owner_prefix, payload, first_max, step_max } =
            parameters;
        let sha256 = digest.as_bytes().as_slice();
        // With types, the statement needs no round trip to be prepared.
        let parameters: [(&(dyn ToSql + Sync), Type); 9] = [
            (key, Type::TEXT),
            (token, Type::INT8),
            (seq, Type::INT8),
            (owner, Type::TEXT),
            (&sha256, Type::BYTEA),
            (owner_prefix, Type::TEXT),
            (payload, Type::TEXT),
            (first_max, Type::INT8),
            (step_max, Type::INT8),
        ];
        self.query_typed_opt(CHECK, &parameters).await?.map(|row| row.try_get(0)).transpose()
    }

    async fn find(&mut self, key: &str) -> Result<Option<SignedRow>, Error> {
        let Some(row) = self.query_typed_opt(FIND, &[(&key, Type::TEXT)]).await? else { return Ok(None) };
        Ok(Some(SignedRow {
            token: row.try_get(0)?,
            seq: row.try_get(1)?,
            owner: row.try_get(2)?,
            sha256: row.try_get(3)?,
            version: row.try_get(4)?,
        }))
    }
}

impl UserTransaction for Transaction<'_> {
    type Error = Error;

    async fn judge(&mut self, key: &ResourceKey, entry: &Entry) -> Result<Receipt, Stop<Error>> {
        judge(self, key, entry).await
    }

    async fn abort(&mut self) {
        let _ = self.batch_execute(ABORT).await;
    }
}

impl PostgresTransaction for Transaction<'_> {
    async fn last_tick(&mut self, statement: &'static str, key: &str) -> Result<(Option<i64>, i64), Error> {
        let rows = self.query_typed(statement, &[(&key, Type::TEXT)]).await?;
        let Some(row) = rows.first() else { return Ok((None, 0)) };
        Ok((row.try_get(0)?, row.try_get(1)?))
    }

    async fn on_tick(
        &mut self,
        statement: &'static str,
        parameters: &TickParameters,
    ) -> Result<Option<i64>, Error> {
        let TickParameters { key, tick, token, owner_prefix } = parameters;
        let parameters: [(&(dyn ToSql + Sync), Type); 4] =
            [(key, Type::TEXT), (tick, Type::INT8), (token, Type::INT8), (owner_prefix, Type::TEXT)];
        self.query_typed_opt(statement, &parameters).await?.map(|row| row.try_get(0)).transpose()
    }

    async fn json(&mut self, statement: &'static str, parameters: &str) -> Result<Option<String>, Error> {
        let row = self.query_typed_opt(statement, &[(&parameters, Type::TEXT)]).await?;
        row.map(|row| row.try_get(0)).transpose()
    }
}

impl Connection for &Client {
    type Error = Error;

    async fn create_tables(self) -> Result<(), Error> {
        self.batch_execute(MIGRATE).await
    }
}
