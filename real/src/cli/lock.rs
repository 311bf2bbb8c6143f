//! The flags that choose the lock servers and the TTL of a lease.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use dlock::TokioRuntime;
use real::systems::System;

use super::span;
use super::state::State;

/// The lock servers.
#[derive(Args)]
pub(crate) struct ServerArgs {
    /// The lock system.
    #[arg(long, visible_alias = "backend", env = "DLOCK_SYSTEM", value_enum, default_value = "redis")]
    pub(crate) system: System,
    /// Its addresses, host:port, separated by commas; by default those that `real up` has started.
    #[arg(long, env = "DLOCK_SERVERS", value_delimiter = ',')]
    servers: Vec<String>,
    /// The state file of `real up`.
    #[arg(long, env = "DLOCK_STATE", value_name = "FILE")]
    state: Option<PathBuf>,
}

/// The lock servers and the TTL.
#[derive(Args)]
pub(crate) struct LockArgs {
    #[command(flatten)]
    pub(crate) place: ServerArgs,
    /// The TTL of a lease.
    #[arg(long, env = "DLOCK_TTL", value_parser = span::parse, default_value = "2s")]
    pub(crate) ttl: Duration,
    /// The time for which a thread polls for an answer before it sleeps, as long as the server answers within
    /// it. It saves the time of a wake-up and takes a processor while it polls. At most 1ms; 0 never polls.
    #[arg(long, env = "DLOCK_BUSY_POLL", value_parser = busy_poll, default_value = "100us")]
    pub(crate) busy_poll: Duration,
}

/// Parses the time to poll.
fn busy_poll(text: &str) -> Result<Duration, String> {
    let most = TokioRuntime::BUSY_POLL_MAX;
    let busy_poll = span::parse(text).map_err(|error| error.to_string())?;
    match busy_poll <= most {
        true => Ok(busy_poll),
        false => Err(format!(
            "{busy_poll:?} is too long: give {most:?} or less, since no lease is renewed meanwhile"
        )),
    }
}

impl ServerArgs {
    /// Returns the addresses of the lock servers.
    pub(crate) fn addresses(&self) -> Result<Vec<String>, Box<dyn Error>> {
        if !self.servers.is_empty() {
            return Ok(self.servers.clone());
        }
        let system = self.system.as_str();
        let state = State::load(self.state.as_deref())?;
        let servers = state.and_then(|state| state.servers.get(system).cloned());
        servers.ok_or_else(|| {
            format!("no {system} is running: run `real up {system}` first, or give --servers").into()
        })
    }
}
