//! The jobs of a queue in PostgreSQL: the rows of their effects, and a record that checks no token.

use std::time::Duration;

use dlock::Instant;
use resource::fence::{JobStop, WriteSeq};
use resource::jobs::{JobGrant, JobRecord, JobRecordError, JobStatements, Part, number_of};
use resource::postgres::{PostgresError, PostgresSession};
use sim::Process;
use sim::clients::tokio_postgres::types::{ToSql, Type};
use sim::clients::tokio_postgres::{Client, Error, Transaction};
use sim::world::runtime::SimRuntime;

use super::{Connecting, Effect, bigint, failed};

/// The statements of a part's effect.
pub(crate) struct Effects;

impl JobStatements for Effects {
    async fn run(
        &mut self,
        transaction: &mut Transaction<'_>,
        grant: &JobGrant,
        number: WriteSeq,
        _: &Part,
    ) -> Result<(), Error> {
        effect(grant, number).insert(transaction).await
    }
}

fn effect(grant: &JobGrant, seq: WriteSeq) -> Effect<'_> {
    let JobGrant { key, token, owner } = grant;
    Effect { key, owner: owner.as_ref(), token: *token, seq, task: number_of(key).unwrap_or_default() }
}

/// Returns the state of a job, and its progress as JSON or null. $1 number.
const LOOK: &str = "SELECT state, progress::text FROM queue_job WHERE id = $1::bigint";

/// Keeps the progress of a job, also if another has claimed it since. $1 number, $2 progress, $3 lease in
/// milliseconds.
const ADVANCE: &str = "UPDATE queue_job SET progress = to_jsonb($2::text), \
                       lease_until = clock_timestamp() + $3::bigint * interval '1 ms' WHERE id = $1::bigint";

/// Makes a job done, also if another has claimed it since. $1 number.
const COMPLETE: &str = "UPDATE queue_job SET state = 'done', lease_until = NULL, ended_at = now() \
                        WHERE id = $1::bigint";

/// A record that commits on no condition: the lease alone decides who runs a job. It is the arm without
/// fencing.
pub(crate) struct Unconditional {
    session: PostgresSession<SimRuntime, Connecting>,
    lease: Duration,
}

impl Unconditional {
    /// Creates the record, which connects with its first claim.
    pub(crate) fn new(process: &Process, lease: Duration) -> Self {
        Self { session: PostgresSession::new(process.runtime(), Connecting::of(process)), lease }
    }
}

impl JobRecord for Unconditional {
    type Error = PostgresError;

    async fn claim(
        &mut self,
        grant: &JobGrant,
        deadline: Instant,
    ) -> Result<Option<Part>, JobRecordError<PostgresError>> {
        let id = number_of(&grant.key).unwrap_or_default();
        let part = self.session.run(deadline, move |client| look(client, bigint(id))).await;
        part.map_err(JobRecordError::Failed)
    }

    async fn commit(
        &mut self,
        grant: &JobGrant,
        number: WriteSeq,
        part: &Part,
        deadline: Instant,
    ) -> Result<(), JobRecordError<PostgresError>> {
        let lease_ms = u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX);
        let step = move |client| commit(client, grant, number, part, bigint(lease_ms));
        self.session.run(deadline, step).await.map_err(JobRecordError::Failed)
    }
}

async fn look(client: Client, id: i64) -> Result<(Client, Option<Part>), JobStop<Error>> {
    let row = client.query_typed_opt(LOOK, &[(&id, Type::INT8)]).await.map_err(failed)?;
    let Some(row) = row else { return Ok((client, None)) };
    let state: String = row.try_get(0).map_err(failed)?;
    let progress: Option<String> = row.try_get(1).map_err(failed)?;
    let part = match state.as_str() {
        "done" => Some(Part::Done(Vec::new())),
        // The progress is a number, as a text of JSON.
        _ => progress.map(|progress| Part::Progress(progress.trim_matches('"').as_bytes().to_vec())),
    };
    Ok((client, part))
}

async fn commit(
    mut client: Client,
    grant: &JobGrant,
    number: WriteSeq,
    part: &Part,
    lease_ms: i64,
) -> Result<(Client, ()), JobStop<Error>> {
    let effect = effect(grant, number);
    let id = bigint(effect.task);
    let mut transaction = client.transaction().await.map_err(failed)?;
    effect.insert(&mut transaction).await.map_err(failed)?;
    match part {
        Part::Progress(progress) => {
            let progress = String::from_utf8_lossy(progress).into_owned();
            let parameters: [(&(dyn ToSql + Sync), Type); 3] =
                [(&id, Type::INT8), (&progress, Type::TEXT), (&lease_ms, Type::INT8)];
            transaction.query_typed_opt(ADVANCE, &parameters).await.map_err(failed)?;
        }
        Part::Done(_) => {
            transaction.query_typed_opt(COMPLETE, &[(&id, Type::INT8)]).await.map_err(failed)?;
        }
    }
    transaction.commit().await.map_err(failed)?;
    Ok((client, ()))
}
