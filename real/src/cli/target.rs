//! The flags of a command that works on one lock: its key, its servers and its resource.

use std::error::Error;
use std::path::PathBuf;

use clap::Args;
use dlock::TokioRuntime;
use real::operate::{Entry, Inspection, Names, Seen, Servers, Stage, Target};
use real::systems::System;
use resource::client::Client;
use serde_json::Value;
use tokio::runtime::{Builder, Handle, Runtime};

use super::lock::ServerArgs;
use super::tls::ResourceAccess;

/// The lock, its servers and its resource.
#[derive(Args)]
pub(crate) struct TargetArgs {
    /// The key of the lock, such as orders:42, or the key under which a server stores it.
    #[arg(value_name = "KEY")]
    key: String,
    #[command(flatten)]
    servers: ServerArgs,
    /// The address of the resource, host:port or https://host:port: the highest token that it has seen is
    /// compared with the lock.
    #[arg(long, env = "DLOCK_RESOURCE")]
    resource: Option<String>,
    #[command(flatten)]
    access: ResourceAccess,
}

/// The lock, with connections to its servers.
pub(crate) struct Lock {
    pub(crate) target: Target,
    pub(crate) servers: Servers,
    resource: Option<Client<TokioRuntime>>,
}

impl TargetArgs {
    /// Returns the lock system.
    pub(crate) fn system(&self) -> Result<System, Box<dyn Error>> {
        self.servers.system()
    }

    /// Returns the lock and its servers, without a connection.
    pub(crate) fn target(&self) -> Result<Target, Box<dyn Error>> {
        Ok(Target { names: Names::parse(&self.key)?, place: self.servers.place()? })
    }

    /// Connects to the servers; to be called within an executor.
    pub(crate) async fn connect(&self) -> Result<Lock, Box<dyn Error>> {
        let runtime = TokioRuntime::new(Handle::current());
        let target = self.target()?;
        let client = |address: &String| self.access.client(runtime.clone(), address);
        let resource = self.resource.as_ref().map(client).transpose()?;
        let servers = Servers::connect(runtime, target.clone()).await?;
        Ok(Lock { target, servers, resource })
    }
}

impl Lock {
    /// Returns the highest token that the resource has seen, if there is a resource.
    pub(crate) async fn seen(&self) -> Result<Option<Seen>, Box<dyn Error>> {
        match &self.resource {
            None => Ok(None),
            Some(client) => Ok(Some(Seen::read(self.servers.runtime(), client, &self.target.names).await?)),
        }
    }

    /// Returns a record of `command`, which changes the lock that `inspection` shows.
    pub(crate) fn entry<'a>(
        &'a self,
        command: &'static str,
        stage: Stage,
        inspection: &'a Inspection,
        details: Value,
    ) -> Entry<'a> {
        let (key, system, servers) = (&*inspection.key, inspection.system, &*self.target.place.addresses);
        Entry { command, stage, key, system, servers, details }
    }

    /// Reads the lock and its resource.
    pub(crate) async fn inspect(&mut self) -> Result<Inspection, Box<dyn Error>> {
        // Before the lock: a token that the resource sees after the lock was read may be above its counter.
        let resource = self.seen().await?;
        let mut inspection = self.servers.read().await?;
        inspection.resource = resource;
        Ok(inspection)
    }
}

/// The audit log.
#[derive(Args)]
pub(crate) struct AuditArgs {
    /// The file to which a record of the change is appended, before and after it.
    #[arg(long, env = "DLOCK_AUDIT", default_value = "dlock-audit.jsonl", value_name = "FILE")]
    pub(crate) audit: PathBuf,
    /// The reason of the change, for the record.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// Returns an executor with a thread beside this one: connections stay alive while the user is asked.
pub(crate) fn executor() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).enable_all().build()
}
