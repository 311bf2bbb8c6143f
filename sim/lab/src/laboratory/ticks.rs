//! The record of a cron's ticks: at the resource or in PostgreSQL, as the schedule says.

use dlock::Instant;
use resource::client::{Client, ClientError};
use resource::cron::ResourceTicks;
use resource::fence::WriteSeq;
use resource::fence::cron::{Grant, Seen, Tick, Ticks, TicksError};
use resource::postgres::PostgresError;
use sim::world::runtime::SimRuntime;

use super::cron::TickStore;
use super::given::Workplace;
use super::postgres::PostgresRecord;

/// The record of a worker's ticks.
pub struct TickRecord(Store);

enum Store {
    Resource(ResourceTicks<SimRuntime>),
    Postgres(Box<PostgresRecord>),
}

/// A record that did not answer.
#[derive(Debug, thiserror::Error)]
pub enum TickError {
    /// The resource.
    #[error(transparent)]
    Resource(ClientError),
    /// PostgreSQL.
    #[error(transparent)]
    Postgres(PostgresError),
}

impl TickRecord {
    /// Creates the correct record of the worker at `place`.
    pub fn at(place: &Workplace<'_>) -> Self {
        Self(match place.options.cron.record {
            TickStore::Resource => {
                let client = Client::new(place.runtime.clone(), place.resource);
                let retry = place.worker.retry_put.then(Default::default);
                Store::Resource(ResourceTicks::new(client).with_retry(retry))
            }
            TickStore::Postgres => {
                Store::Postgres(Box::new(PostgresRecord::new(place.process, place.fencing)))
            }
        })
    }
}

impl Ticks for TickRecord {
    type Error = TickError;

    async fn claim(&mut self, grant: &Grant, deadline: Instant) -> Result<Seen, TicksError<TickError>> {
        match &mut self.0 {
            Store::Resource(ticks) => of(ticks.claim(grant, deadline).await, TickError::Resource),
            Store::Postgres(ticks) => of(ticks.claim(grant, deadline).await, TickError::Postgres),
        }
    }

    async fn commit(
        &mut self,
        grant: &Grant,
        number: WriteSeq,
        tick: Tick,
        result: &[u8],
        deadline: Instant,
    ) -> Result<(), TicksError<TickError>> {
        match &mut self.0 {
            Store::Resource(ticks) => {
                of(ticks.commit(grant, number, tick, result, deadline).await, TickError::Resource)
            }
            Store::Postgres(ticks) => {
                of(ticks.commit(grant, number, tick, result, deadline).await, TickError::Postgres)
            }
        }
    }
}

/// Returns the answer with the error of a record in general.
fn of<T, E>(
    answer: Result<T, TicksError<E>>,
    failed: impl FnOnce(E) -> TickError,
) -> Result<T, TicksError<TickError>> {
    answer.map_err(|error| match error {
        TicksError::Refused(refusal) => TicksError::Refused(refusal),
        TicksError::Done(tick) => TicksError::Done(tick),
        TicksError::Corrupt(problem) => TicksError::Corrupt(problem),
        TicksError::Failed(error) => TicksError::Failed(failed(error)),
    })
}
