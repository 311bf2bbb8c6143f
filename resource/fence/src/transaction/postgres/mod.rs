//! The check on PostgreSQL, in one statement. PostgreSQL locks the row before it compares, also under READ
//! COMMITTED. Under REPEATABLE READ and SERIALIZABLE the second of two writers fails with 40001 instead.

mod jobs;
mod parameters;
#[cfg(feature = "tokio-postgres")]
mod record;
#[cfg(feature = "sqlx")]
mod sqlx;
mod ticks;
#[cfg(feature = "tokio-postgres")]
mod tokio_postgres;

use std::future::Future;

pub use self::jobs::{Failed, Job, JobQueue, JobStop};
use self::parameters::Parameters;
#[cfg(feature = "tokio-postgres")]
pub use self::record::{PostgresTicks, TickStatements};
use self::ticks::TickParameters;
pub use self::ticks::{PostgresTransaction, begin_tick, claim_ticks, finish_tick};
use super::{Entry, Receipt, ResourceKey, Retryable, Row, Stop};

/// The statement of [`check`](super::check) on PostgreSQL, for programs on other clients. Its comment names
/// the parameters; it returns no row if the write may not pass.
pub const CHECK: &str = include_str!("check.sql");

/// Reads the fence after a check that may not pass.
const FIND: &str = "SELECT token, seq, owner, sha256, version FROM fence_position WHERE resource_id = $1";

/// Fails on purpose. PostgreSQL then refuses every further statement of the transaction, and answers its
/// commit by a rollback.
const ABORT: &str = "DO $$ BEGIN RAISE EXCEPTION 'the fence refused this transaction'; END $$";

/// The step that creates the tables. A released step is never changed: add another.
macro_rules! step_1 {
    () => {
        include_str!("../../../migrations/001-fence.sql")
    };
}

/// The step that creates the table of ticks.
macro_rules! step_2 {
    () => {
        include_str!("../../../migrations/002-cron.sql")
    };
}

/// The step that creates the table of jobs.
macro_rules! step_3 {
    () => {
        include_str!("../../../migrations/003-jobs.sql")
    };
}

/// The migrations of PostgreSQL in their order, each with its name, for programs with a migration tool of
/// their own. Each may run again.
pub const MIGRATIONS: [(&str, &str); 3] =
    [("001-fence", step_1!()), ("002-cron", step_2!()), ("003-jobs", step_3!())];

/// All steps as one script. A server runs a script in one transaction, so the lock, whose number no other
/// program uses, is held to its end: `CREATE TABLE IF NOT EXISTS` alone fails if two programs run it at once.
const MIGRATE: &str =
    concat!("SELECT pg_advisory_xact_lock(110352458277731);\n", step_1!(), step_2!(), step_3!());

/// A transaction of one of the clients.
trait Client: Send {
    type Error: Retryable;

    /// Runs [`CHECK`]; returns the version, or `None` if the write may not pass.
    fn accept(
        &mut self,
        parameters: &Parameters,
    ) -> impl Future<Output = Result<Option<i64>, Self::Error>> + Send;

    /// Runs [`FIND`].
    fn find(&mut self, key: &str) -> impl Future<Output = Result<Option<SignedRow>, Self::Error>> + Send;
}

/// A row of `fence_position` as PostgreSQL stores it.
#[derive(Debug)]
struct SignedRow {
    token: i64,
    seq: i64,
    owner: Option<String>,
    sha256: Vec<u8>,
    version: i64,
}

/// Checks a write by the statement; where that refuses it, the rule says why.
async fn judge<C: Client>(
    client: &mut C,
    key: &ResourceKey,
    entry: &Entry,
) -> Result<Receipt, Stop<C::Error>> {
    let parameters = match Parameters::new(key, entry) {
        Ok(parameters) => parameters,
        Err(too_large) => {
            // A refusal of the jump says more.
            if entry.max_jump.is_some() {
                explain(client, key, entry).await?;
            }
            return Err(Stop::TooLarge(too_large));
        }
    };
    // The statement does not see a first write that is not committed yet. If it refuses a token above the
    // limit for first ones, and that write commits before the row is read, the second run sees it, too.
    for _ in 0..2 {
        if let Some(version) = client.accept(&parameters).await? {
            let version = u64::try_from(version).map_err(|_| Stop::Corrupt("a version is negative"))?;
            return Ok(Receipt { version, max_fence: Some(entry.token) });
        }
        explain(client, key, entry).await?;
    }
    Err(Stop::Corrupt("the statement refused a write that may pass: rows must not be deleted"))
}

/// Returns the error for a write that the rule refuses.
async fn explain<C: Client>(client: &mut C, key: &ResourceKey, entry: &Entry) -> Result<(), Stop<C::Error>> {
    let row = client.find(key.as_str()).await?;
    let row = row.map(Row::try_from).transpose().map_err(Stop::Corrupt)?;
    super::judge(row, entry).map(drop)
}

impl TryFrom<SignedRow> for Row {
    type Error = &'static str;

    fn try_from(row: SignedRow) -> Result<Self, &'static str> {
        Ok(Self {
            token: row.token.try_into().map_err(|_| "a token is not positive")?,
            seq: match row.seq {
                i64::MAX => u64::MAX,
                seq => seq.try_into().map_err(|_| "a sequence number is not positive")?,
            },
            owner: row.owner,
            sha256: row.sha256,
            version: row.version.try_into().map_err(|_| "a version is negative")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use dlock::FencingToken;

    use super::*;
    use crate::MaxJump;

    /// A client for a table with one row, which another transaction commits between two statements.
    struct Scripted {
        accepts: Vec<Option<i64>>,
        row: Option<i64>,
    }

    #[derive(Debug, thiserror::Error)]
    #[error("no statement fails")]
    struct Never;

    impl Retryable for Never {
        fn is_retryable(&self) -> bool {
            false
        }
    }

    impl Client for Scripted {
        type Error = Never;

        async fn accept(&mut self, _: &Parameters) -> Result<Option<i64>, Never> {
            Ok(self.accepts.remove(0))
        }

        async fn find(&mut self, _: &str) -> Result<Option<SignedRow>, Never> {
            let row =
                |token| SignedRow { token, seq: i64::MAX, owner: None, sha256: vec![0; 32], version: 1 };
            Ok(self.row.map(row))
        }
    }

    async fn judged(accepts: &[Option<i64>], row: Option<i64>) -> Result<Receipt, Stop<Never>> {
        let mut client = Scripted { accepts: accepts.to_vec(), row };
        let entry = Entry::new(FencingToken::new(15).unwrap()).max_jump(MaxJump::new(10, 10));
        judge(&mut client, &ResourceKey::new("k").unwrap(), &entry).await
    }

    #[tokio::test]
    async fn a_first_write_that_commits_meanwhile_lets_the_next_one_pass() {
        let receipt = judged(&[None, Some(2)], Some(9)).await.unwrap();
        assert_eq!(receipt, Receipt { version: 2, max_fence: FencingToken::new(15) });
    }

    #[tokio::test]
    async fn a_statement_that_disagrees_with_the_rule_is_named() {
        let stopped = judged(&[None, None], Some(9)).await.unwrap_err();
        assert!(matches!(stopped, Stop::Corrupt(_)), "{stopped}");
        let stopped = judged(&[None], None).await.unwrap_err();
        assert!(matches!(stopped, Stop::Refused(crate::Refusal::Jump { seen: None, .. })), "{stopped}");
    }
}
