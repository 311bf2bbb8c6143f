//! The flags that say which lock servers, and how long a lease lives.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use real::TokioRuntime;
use real::systems::System;

use super::span;
use super::state::State;

/// Which lock servers.
#[derive(Args)]
pub(crate) struct LockArgs {
    /// The system of lock server.
    #[arg(long, env = "DLOCK_SYSTEM", value_enum, default_value = "redis")]
    pub(crate) system: System,
    /// Its addresses, `host:port` with commas between; by default those that `real up` has started.
    #[arg(long, env = "DLOCK_SERVERS", value_delimiter = ',')]
    servers: Vec<String>,
    /// Where `real up` has noted what it started.
    #[arg(long, env = "DLOCK_STATE", value_name = "FILE")]
    state: Option<PathBuf>,
    /// How long a lease lives.
    #[arg(long, env = "DLOCK_TTL", value_parser = span::parse, default_value = "2s")]
    pub(crate) ttl: Duration,
    /// How long to poll for an answer before sleeping until it comes, while the server is so near that its answers come within
    /// that time: to be woken takes as long as all the rest. A thread that polls takes a processor. At most 1ms; 0 for never.
    #[arg(long, env = "DLOCK_BUSY_POLL", value_parser = busy_poll, default_value = "100us")]
    pub(crate) busy_poll: Duration,
}

/// Reads how long to poll busily.
fn busy_poll(text: &str) -> Result<Duration, String> {
    let most = TokioRuntime::BUSY_POLL_MAX;
    let busy_poll = span::parse(text)?;
    match busy_poll <= most {
        true => Ok(busy_poll),
        false => Err(format!("give {most:?} or less: no lease is renewed while a thread polls")),
    }
}

impl LockArgs {
    /// The addresses of the lock servers.
    pub(crate) fn servers(&self) -> Result<Vec<String>, Box<dyn Error>> {
        if !self.servers.is_empty() {
            return Ok(self.servers.clone());
        }
        let system = self.system.as_str();
        let state = State::load(self.state.as_deref())?;
        let servers = state.and_then(|state| state.servers.get(system).cloned());
        servers.ok_or_else(|| {
            format!("no {system} to talk to: run `real up {system}` first, or give --servers").into()
        })
    }
}
