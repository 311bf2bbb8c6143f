//! The guarded side of a long run: the resource, or PostgreSQL in its place.
#![allow(clippy::disallowed_methods, reason = "a run on live processes uses real time")]

use std::path::PathBuf;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::NoTls;

use super::files::{FOLDER, put_away};
use crate::chaos::{ChaosError, Configuration};
use crate::lab::actors::{Actor, ResourceActor};
use crate::record::Record;
use crate::servers::{Postgres, ServerError, Stage};
use crate::task_rows::{self, TaskRow};

/// The timeout for the rows of all tasks: the server may have to end transactions first.
const READ: Duration = Duration::from_secs(60);

/// The guarded side.
pub(super) enum Side {
    Resource(ResourceActor),
    Postgres(Box<Postgres>),
}

impl Side {
    /// Starts it, and waits until it serves.
    pub(super) fn start(stage: &Stage, configuration: &Configuration) -> Result<Self, ChaosError> {
        Ok(match configuration.record {
            Record::Resource => Self::Resource(start_resource(stage, configuration)?),
            Record::Postgres => Self::Postgres(Box::new(Postgres::start(stage)?)),
        })
    }

    /// Returns its address, `127.0.0.1:PORT`.
    pub(super) fn address(&self) -> String {
        match self {
            Self::Resource(resource) => resource.address().to_owned(),
            Self::Postgres(postgres) => postgres.address(),
        }
    }

    /// Returns the process that serves metrics, if there is one.
    pub(super) fn actor(&self) -> Option<&Actor> {
        match self {
            Self::Resource(resource) => Some(&resource.actor),
            Self::Postgres(_) => None,
        }
    }

    pub(super) fn pause(&self) {
        if let Self::Postgres(postgres) = self {
            postgres.pause();
        }
    }

    pub(super) fn resume(&self) {
        if let Self::Postgres(postgres) = self {
            postgres.resume();
        }
    }

    /// Kills it. Returns its history, if it keeps one; `number` is that of the file.
    pub(super) fn kill(&mut self, number: usize) -> Result<Option<PathBuf>, ChaosError> {
        match self {
            Self::Resource(resource) => {
                resource.actor.process.kill();
                put_away(&resource.actor, number)
            }
            Self::Postgres(postgres) => {
                postgres.kill();
                Ok(None)
            }
        }
    }

    /// Restarts it with its data. The resource has another address then.
    pub(super) fn restart(&mut self, stage: &Stage, configuration: &Configuration) -> Result<(), ChaosError> {
        match self {
            Self::Resource(resource) => *resource = start_resource(stage, configuration)?,
            Self::Postgres(postgres) => postgres.restart()?,
        }
        Ok(())
    }

    /// Returns the rows of all tasks that have taken effect; `None` if the resource keeps the record. Heals
    /// PostgreSQL before, since a run may be stopped within a fault.
    pub(super) fn task_rows(&mut self) -> Result<Option<Vec<TaskRow>>, ChaosError> {
        let Self::Postgres(postgres) = self else { return Ok(None) };
        revive(postgres)?;
        let url = postgres.url();
        let rows = Handle::current().block_on(timeout(READ, rows(&url)));
        let rows = rows.unwrap_or_else(|_| Err("it did not answer in time".to_owned()));
        rows.map(Some).map_err(ChaosError::Rows)
    }
}

fn start_resource(stage: &Stage, configuration: &Configuration) -> Result<ResourceActor, ChaosError> {
    Ok(ResourceActor::start(stage, FOLDER, configuration.fence.as_str())?)
}

fn revive(postgres: &mut Postgres) -> Result<(), ServerError> {
    if postgres.process().exited().is_some() {
        return postgres.restart();
    }
    postgres.resume();
    Ok(())
}

async fn rows(url: &str) -> Result<Vec<TaskRow>, String> {
    let (client, connection) =
        tokio_postgres::connect(url, NoTls).await.map_err(|error| error.to_string())?;
    tokio::spawn(connection);
    task_rows::read(&client).await.map_err(|error| error.to_string())
}
