//! The PostgreSQL of a world: it has the record of a cron's ticks, or a job queue, and the rows of their
//! effects. Each row that is committed is an accepted write of the history.

mod jobs;
mod ticks;

use dlock::FencingToken;
use history::emit;
use resource::fence::{JobStop, MIGRATIONS, Stop, WriteSeq};
use resource::postgres::ConnectPostgres;
use resource::{OwnerToken, ResourceKey};
use sim::Process;
use sim::clients::tokio_postgres::types::{ToSql, Type};
use sim::clients::tokio_postgres::{Client, Config, Error, Transaction};
use sim::servers::postgres::PostgresHost;

pub(super) use self::jobs::{Effects, Unconditional};
pub(super) use self::ticks::PostgresRecord;

/// The name of the server.
pub(super) const POSTGRES: &str = "postgres";

/// The bytes that it needs on a connection before the first request.
pub(super) const GREETING: &str = "a startup packet";

const ADDRESS: &str = "postgres:5432";

/// The table of the effects: the rows that a user's statements insert.
const TABLE: &str = "effect";

const CREATE: &str = "CREATE TABLE effect (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
                      key text NOT NULL, owner text, token bigint NOT NULL, seq bigint NOT NULL, \
                      task bigint NOT NULL)";

const INSERT: &str = "INSERT INTO effect (key, owner, token, seq, task) \
                      VALUES ($1::text, $2::text, $3::bigint, $4::bigint, $5::bigint)";

/// After which the server ends a statement, and a transaction whose client is silent: the locks of a worker
/// that is paused or cut off would stay.
const TIMEOUT: &str = "5s";

/// Returns the server, with the tables of the library and that of the effects.
pub(super) fn host() -> PostgresHost {
    let host = MIGRATIONS.iter().fold(PostgresHost::new(), |host, (_, step)| host.preset(*step));
    let host = ["statement_timeout", "idle_in_transaction_session_timeout"]
        .into_iter()
        .fold(host, |host, name| host.setting(name, TIMEOUT));
    host.preset(CREATE).watch(TABLE, emit_accepted)
}

/// Emits that a row of an effect is committed.
fn emit_accepted(row: &[Option<String>]) {
    let [id, key, owner, token, seq, ..] = row else { return };
    let number = |text: &Option<String>| text.as_deref()?.parse::<u64>().ok();
    let (Some(key), Some(token), Some(version)) = (key.as_deref(), number(token), number(id)) else { return };
    emit!(WriteAccepted {
        key: key,
        owner: owner.as_deref(),
        token: token,
        seq: number(seq),
        version: version,
        body: None::<&str>,
    });
}

/// Opens connections of a process.
pub(super) struct Connecting {
    process: Process,
    /// A statement that each session begins with.
    setup: Option<&'static str>,
}

impl Connecting {
    pub(super) fn of(process: &Process) -> Self {
        Self { process: process.clone(), setup: None }
    }

    /// Begins each session with a statement.
    pub(super) fn with_setup(self, setup: Option<&'static str>) -> Self {
        Self { setup, ..self }
    }
}

impl ConnectPostgres for Connecting {
    async fn connect(&self) -> Result<Client, Error> {
        let mut config = Config::new();
        config.user("lab");
        let client = sim::clients::postgres(&self.process, ADDRESS, &config).await?;
        if let Some(setup) = self.setup {
            client.batch_execute(setup).await?;
        }
        Ok(client)
    }
}

/// The effect of a tick or of a part of a job.
struct Effect<'a> {
    key: &'a ResourceKey,
    owner: Option<&'a OwnerToken>,
    token: FencingToken,
    seq: WriteSeq,
    task: u64,
}

impl Effect<'_> {
    /// Inserts its row.
    async fn insert(&self, transaction: &mut Transaction<'_>) -> Result<(), Error> {
        let (key, owner) = (self.key.id_hash(), self.owner.map(|owner| owner.prefix().to_owned()));
        let [token, seq, task] = [self.token.as_u64(), self.seq.as_u64(), self.task].map(bigint);
        let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
            (&key, Type::TEXT),
            (&owner, Type::TEXT),
            (&token, Type::INT8),
            (&seq, Type::INT8),
            (&task, Type::INT8),
        ];
        transaction.query_typed_opt(INSERT, &parameters).await.map(drop)
    }
}

/// Returns the number as PostgreSQL has it. The numbers of a run are far below the limit.
fn bigint(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn failed(error: Error) -> JobStop<Error> {
    JobStop::Stop(Stop::from(error))
}
