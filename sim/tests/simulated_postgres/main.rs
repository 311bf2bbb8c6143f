//! The simulated PostgreSQL, with the real client: transactions, locks, crashes, and the protocol.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod disk;
mod locks;
mod messages;
mod portals;
mod protocol;
mod sessions;
#[cfg(feature = "tls")]
mod tls;
mod wire;

use std::future::Future;
use std::time::Duration;

use sim::clients::tokio_postgres::{Client, Config, Error};
use sim::servers::postgres::PostgresHost;
use sim::{Control, Process, Report, Sim};

/// The table of most tests.
const JOBS: &str = "CREATE TABLE jobs (id bigint PRIMARY KEY, owner text)";

/// Returns a world with the server `db` and the processes `a` and `b`, in which scripts run their code.
fn world(host: PostgresHost) -> Sim {
    let mut sim = Sim::new(7);
    sim.host("db", host).empty_process("a").empty_process("b");
    sim
}

/// Runs a script in such a world.
fn script<F, T>(host: PostgresHost, script: impl FnOnce(Control) -> F + Send + 'static) -> (Report, T)
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    world(host).run_script(script).unwrap()
}

async fn connect(process: &Process) -> Client {
    try_connect(process, Config::new().user("app")).await.unwrap()
}

async fn try_connect(process: &Process, config: &Config) -> Result<Client, Error> {
    sim::clients::postgres(process, "db:5432", config).await
}

/// Returns the SQLSTATE of an error of the server.
fn code(error: &Error) -> String {
    error.code().map_or_else(|| format!("no code: {error:?}"), |code| code.code().to_owned())
}

/// Returns the ids of the jobs.
async fn jobs(client: &Client) -> Vec<i64> {
    let rows = client.query("SELECT id FROM jobs ORDER BY id", &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}
