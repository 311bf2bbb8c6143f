//! Times updates of a row in PostgreSQL that check their tokens, and the same without the check, in turns on
//! one connection.

use dlock::{FencingToken, Runtime, TokioRuntime};
use fence::{FencedTable, bigint, check};
use resource::{Fencing, ResourceKey};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, Statement};

use super::locks::Stopped;
use super::{Configuration, ExperimentError};
use crate::lab::statistics::quantile;
use crate::servers::{Postgres, Stage};

/// The table of the user. Each arm has a row of its own.
const TABLE: &str = "CREATE TABLE price (id bigint PRIMARY KEY, fence bigint NOT NULL, body text NOT NULL);
INSERT INTO price VALUES (0, 0, 'new'), (1, 0, 'new'), (2, 0, 'new'), (3, 0, 'new');";
/// The statement of [`FencedTable`] without its condition.
const UPDATE: &str = "UPDATE price SET fence = $2, body = $3 WHERE id = $1";
const AUDITED: &str = "SELECT count(*) FROM fence_audit WHERE resource_id = $1";
const BODY: &str = "paid";

/// The arms, each beside the one that it is compared with.
const ARMS: [(By, Fencing); 4] = [
    (By::Statement, Fencing::Off),
    (By::Statement, Fencing::On),
    (By::Transaction, Fencing::Off),
    (By::Transaction, Fencing::On),
];

/// The way in which a row is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
pub(super) enum By {
    /// One statement, which commits alone. With fencing its condition compares the token with a column.
    #[strum(serialize = "one statement")]
    Statement,
    /// A transaction of one statement. With fencing `fence::check` comes first.
    #[strum(serialize = "a transaction")]
    Transaction,
}

/// Updates of one arm.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Updated {
    pub(super) by: By,
    pub(super) fence: Fencing,
    pub(super) updates: u64,
    /// Latency of an update, its commit included, in milliseconds.
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// The rows in the audit log of the check that are of this arm.
    pub(super) audited: u64,
}

/// Times the updates of all arms.
pub(super) fn measure(configuration: &Configuration) -> Result<Vec<Updated>, ExperimentError> {
    let stage = Stage::new()?;
    let postgres = Postgres::start(&stage)?;
    in_turns(configuration, &postgres.url())
        .map_err(|error| ExperimentError::Failed(format!("updates of a row in PostgreSQL: {error}")))
}

/// Returns the figures of each arm.
fn in_turns(configuration: &Configuration, url: &str) -> Result<Vec<Updated>, Stopped> {
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let runtime = TokioRuntime::new(Handle::current());
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        // Drives the connection until the end of this block.
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let mut updater = Updater::new(client).await?;
        let mut arms = ARMS.into_iter().zip(0..).map(Arm::new).collect::<Result<Vec<_>, _>>()?;
        let mut token = 0;
        for _ in 0..configuration.rounds {
            for arm in &mut arms {
                for _ in 0..configuration.writes {
                    token += 1;
                    let token = FencingToken::new(token).ok_or("a token is above zero")?;
                    let called = runtime.now();
                    updater.update(arm, token).await?;
                    arm.latencies_ms.push(runtime.now().saturating_since(called).as_secs_f64() * 1e3);
                }
            }
        }
        let mut all = Vec::new();
        for arm in &arms {
            let at = |share| quantile(&arm.latencies_ms, share).unwrap_or_default();
            let (p50_ms, p99_ms, updates) = (at(0.5), at(0.99), arm.latencies_ms.len() as u64);
            let audited = updater.audited(arm).await?;
            all.push(Updated { by: arm.by, fence: arm.fence, updates, p50_ms, p99_ms, audited });
        }
        Ok(all)
    })
}

/// An arm, its row in the table, and the latencies of its updates.
struct Arm {
    by: By,
    fence: Fencing,
    row: i64,
    key: ResourceKey,
    latencies_ms: Vec<f64>,
}

impl Arm {
    fn new(((by, fence), row): ((By, Fencing), i64)) -> Result<Self, Stopped> {
        Ok(Self { by, fence, row, key: ResourceKey::new(&format!("price:{row}"))?, latencies_ms: Vec::new() })
    }
}

/// The connection and the statements of the user.
struct Updater {
    client: Client,
    plain: Statement,
    fenced: Statement,
}

impl Updater {
    /// Creates the tables, that of the user and those of the check.
    async fn new(client: Client) -> Result<Self, Stopped> {
        client.batch_execute(TABLE).await?;
        fence::migrate(&client).await?;
        let plain = client.prepare(UPDATE).await?;
        let fenced = client.prepare(&FencedTable::new("price", "id", "fence").update(&["body"])).await?;
        Ok(Self { client, plain, fenced })
    }

    /// Updates the row of an arm, and commits.
    async fn update(&mut self, arm: &Arm, token: FencingToken) -> Result<(), Stopped> {
        let number = bigint(token)?;
        let rows = match (arm.by, arm.fence) {
            (By::Statement, Fencing::Off) => {
                self.client.execute(&self.plain, &[&arm.row, &number, &BODY]).await?
            }
            (By::Statement, Fencing::On) => {
                self.client.execute(&self.fenced, &[&arm.row, &number, &BODY]).await?
            }
            (By::Transaction, fencing) => {
                let mut transaction = self.client.transaction().await?;
                if fencing == Fencing::On {
                    check(&mut transaction, &arm.key, token).await?;
                }
                let rows = transaction.execute(&self.plain, &[&arm.row, &number, &BODY]).await?;
                transaction.commit().await?;
                rows
            }
        };
        if rows == 1 { Ok(()) } else { Err(format!("an update with a new token wrote {rows} rows").into()) }
    }

    /// Counts the rows of an arm in the audit log of the check.
    async fn audited(&self, arm: &Arm) -> Result<u64, Stopped> {
        let count: i64 = self.client.query_one(AUDITED, &[&arm.key.as_str()]).await?.try_get(0)?;
        Ok(count.unsigned_abs())
    }
}
