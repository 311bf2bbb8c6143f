//! Times the commands of a lock on a Redis with a replica, with WAIT after each and without.
#![allow(clippy::disallowed_methods, reason = "measures another client on the machine's own clock")]

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::locks::Stopped;
use super::{Configuration, ExperimentError, Measured, Setting, Times};
use crate::servers::{Persistence, Redis, Stage};
use crate::systems::System;

/// The time after which WAIT answers in any case.
const WAIT_MS: u64 = 5000;

/// Times both settings.
pub(super) fn measure(configuration: &Configuration) -> Result<Vec<Measured>, ExperimentError> {
    let stage = Stage::new()?;
    let primary = Redis::start(&stage, "primary", Persistence::None)?;
    let _replica = Redis::start_replica(&stage, "replica", &primary)?;
    let one = |setting| {
        let times = times(configuration, &primary.address(), setting == Setting::Wait)
            .map_err(|error| ExperimentError::Failed(format!("a Redis with a replica: {error}")))?;
        Ok(Measured::of(System::Redis, setting, &times))
    };
    [Setting::Replica, Setting::Wait].into_iter().map(one).collect()
}

fn times(configuration: &Configuration, address: &str, waits: bool) -> Result<Times, Stopped> {
    let Configuration { operations, tasks, lasts, .. } = *configuration;
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let mut client = Client::connect(address, "alone".to_owned(), configuration, waits).await?;
        let (begun, mut acquires_ms) = (Instant::now(), Vec::new());
        for _ in 0..operations {
            acquires_ms.push(client.section().await?.as_secs_f64() * 1e3);
        }
        let alone_per_second = f64::from(operations) / begun.elapsed().as_secs_f64();
        let mut clients = Vec::new();
        for task in 0..tasks {
            // WAIT is about the writes of its own connection.
            clients.push(Client::connect(address, task.to_string(), configuration, waits).await?);
        }
        let (begun, mut count, mut running) = (Instant::now(), 0, JoinSet::new());
        for client in clients {
            running.spawn(client.repeat(begun + lasts.0));
        }
        while let Some(ended) = running.join_next().await {
            count += ended??;
        }
        let together_per_second = f64::from(count) / begun.elapsed().as_secs_f64();
        Ok(Times { acquires_ms, alone_per_second, together_per_second })
    })
}

struct Client {
    connection: MultiplexedConnection,
    key: String,
    ttl_ms: u64,
    waits: bool,
}

impl Client {
    async fn connect(
        address: &str,
        key: String,
        configuration: &Configuration,
        waits: bool,
    ) -> Result<Self, Stopped> {
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
        let client = redis::Client::open(format!("redis://{address}"))?;
        let connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        let ttl_ms = u64::try_from(configuration.ttl.0.as_millis())?;
        Ok(Self { connection, key, ttl_ms, waits })
    }

    async fn repeat(mut self, end: Instant) -> Result<u32, Stopped> {
        let mut count = 0;
        while Instant::now() < end {
            self.section().await?;
            count += 1;
        }
        Ok(count)
    }

    /// Acquires by SET and releases by DEL; returns the time of the acquire.
    async fn section(&mut self) -> Result<Duration, Stopped> {
        let called = Instant::now();
        let mut set = redis::cmd("SET");
        set.arg(&self.key).arg("owner").arg("NX").arg("PX").arg(self.ttl_ms);
        let set: Option<String> = set.query_async(&mut self.connection).await?;
        if set.is_none() {
            return Err(format!("the key {} was not free", self.key).into());
        }
        self.wait().await?;
        let took = called.elapsed();
        let _: u32 = redis::cmd("DEL").arg(&self.key).query_async(&mut self.connection).await?;
        self.wait().await?;
        Ok(took)
    }

    /// Waits until the replica has the writes of this connection.
    async fn wait(&mut self) -> Result<(), Stopped> {
        if !self.waits {
            return Ok(());
        }
        let have: u32 = redis::cmd("WAIT").arg(1).arg(WAIT_MS).query_async(&mut self.connection).await?;
        if have == 0 { Err(format!("no replica had the write after {WAIT_MS} ms").into()) } else { Ok(()) }
    }
}
