//! The check on the transactions of `tokio-postgres`.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Transaction};

use super::stop::is_retryable;
use super::{CHECK, Connection, FIND, Parameters, Retryable, Row, UserTransaction};

impl Retryable for Error {
    fn is_retryable(&self) -> bool {
        is_retryable(self.code().map(|code| code.code()))
    }
}

impl UserTransaction for Transaction<'_> {
    type Error = Error;

    async fn accept(&mut self, parameters: &Parameters) -> Result<Option<i64>, Error> {
        let Parameters { key, token, seq, owner, digest, owner_prefix, payload } = parameters;
        let sha256 = digest.as_bytes().as_slice();
        // With types, the statement needs no round trip to be prepared.
        let parameters: [(&(dyn ToSql + Sync), Type); 7] = [
            (key, Type::TEXT),
            (token, Type::INT8),
            (seq, Type::INT8),
            (owner, Type::TEXT),
            (&sha256, Type::BYTEA),
            (owner_prefix, Type::TEXT),
            (payload, Type::TEXT),
        ];
        self.query_typed_opt(CHECK, &parameters).await?.map(|row| row.try_get(0)).transpose()
    }

    async fn find(&mut self, key: &str) -> Result<Option<Row>, Error> {
        let Some(row) = self.query_typed_opt(FIND, &[(&key, Type::TEXT)]).await? else { return Ok(None) };
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
        let _ = self.batch_execute(script).await;
    }
}

impl Connection for &Client {
    type Error = Error;

    async fn run_script(self, script: &'static str) -> Result<(), Error> {
        self.batch_execute(script).await
    }
}
