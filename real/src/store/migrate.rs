//! Creates the tables step by step; each step runs once, in whichever process comes first.

use tokio_postgres::{Client, Error};

/// The steps, in order. A released step is never changed: add another.
const STEPS: [&str; 3] = [
    include_str!("001-resources.sql"),
    include_str!("002-fence-changes.sql"),
    include_str!("003-permits.sql"),
];

/// An arbitrary number that no other program uses for its advisory lock.
const LOCK: i64 = 0x646c_6f63_6b31;

/// Brings the tables up to date in one transaction.
pub(super) async fn migrate(client: &mut Client) -> Result<(), Error> {
    let transaction = client.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    transaction
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS dlock_migrations \
             (step integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())",
        )
        .await?;
    let row = transaction.query_one("SELECT coalesce(max(step), 0) FROM dlock_migrations", &[]).await?;
    let done: i32 = row.try_get(0)?;
    for (step, text) in (1_i32..).zip(STEPS).filter(|(step, _)| *step > done) {
        transaction.batch_execute(text).await?;
        transaction.execute("INSERT INTO dlock_migrations (step) VALUES ($1)", &[&step]).await?;
    }
    transaction.commit().await
}
