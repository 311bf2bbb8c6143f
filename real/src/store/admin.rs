//! An operator's access to the PostgreSQL store: the change and its record in one transaction.

use std::sync::Arc;

use deadpool_postgres::Transaction;
use dlock::FencingToken;
use resource::store::{CHANGES_MAX, FenceAdmin, FenceChange, SetOutcome, StoreError};
use resource::{ResourceKey, event};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::apart::apart;
use super::postgres::{Inner, PostgresStore, failed, lock_row, save};
use super::row::{corrupt, load};

impl FenceAdmin for PostgresStore {
    async fn set_fence(&self, key: &ResourceKey, change: &FenceChange) -> Result<SetOutcome, StoreError> {
        let (inner, key, change) = (Arc::clone(&self.0), key.clone(), change.clone());
        apart(async move { inner.set_fence(&key, &change).await }).await
    }

    async fn fence_changes(&self, key: &ResourceKey) -> Result<Vec<FenceChange>, StoreError> {
        let client = self.0.pool.get().await.map_err(failed)?;
        let query = format!(
            "SELECT from_token::text, to_token::text, who, reason, at_millis::text FROM fence_changes \
             WHERE resource_id = $1 ORDER BY id DESC LIMIT {CHANGES_MAX}"
        );
        let query = client.prepare_cached(&query).await.map_err(failed)?;
        let rows = client.query(&query, &[&key.as_str()]).await.map_err(failed)?;
        rows.iter().map(change_of).collect()
    }
}

impl Inner {
    async fn set_fence(&self, key: &ResourceKey, change: &FenceChange) -> Result<SetOutcome, StoreError> {
        let _gate = self.gate(key).lock().await;
        let mut client = self.pool.get().await.map_err(failed)?;
        let transaction = client.transaction().await.map_err(failed)?;
        let mut fence = load(&lock_row(&transaction, key).await?)?;
        // A dropped transaction is rolled back.
        if let Err(moved) = fence.set(change.from, change.to) {
            return Ok(SetOutcome::Moved(moved));
        }
        save(&transaction, key, &fence, None).await?;
        record(&transaction, key, change).await?;
        transaction.commit().await.map_err(failed)?;
        event::fence_set(key, change.from, change.to);
        Ok(SetOutcome::Set)
    }
}

async fn record(
    transaction: &Transaction<'_>,
    key: &ResourceKey,
    change: &FenceChange,
) -> Result<(), StoreError> {
    let insert = "INSERT INTO fence_changes (resource_id, from_token, to_token, who, reason, at_millis) \
                  VALUES ($1, $2::text::numeric, $3::text::numeric, $4, $5, $6::text::numeric)";
    let insert = transaction.prepare_cached(insert).await.map_err(failed)?;
    let number = |token: Option<FencingToken>| token.map_or(0, FencingToken::as_u64).to_string();
    let (from, to, at) = (number(change.from), number(change.to), change.at_millis.to_string());
    let row: [&(dyn ToSql + Sync); 6] = [&key.as_str(), &from, &to, &change.who, &change.reason, &at];
    transaction.execute(&insert, &row).await.map(drop).map_err(failed)
}

fn change_of(row: &Row) -> Result<FenceChange, StoreError> {
    let number = |column: usize| {
        let text: &str = row.try_get(column).map_err(corrupt)?;
        text.parse::<u64>().map_err(|_| StoreError::Corrupt("a token or time is no whole number"))
    };
    Ok(FenceChange {
        from: FencingToken::new(number(0)?),
        to: FencingToken::new(number(1)?),
        who: row.try_get(2).map_err(corrupt)?,
        reason: row.try_get(3).map_err(corrupt)?,
        at_millis: number(4)?,
    })
}
