//! The workers of a long run, each with links to the servers and to the guarded side.

use std::io;
use std::time::Duration;

use tokio::runtime::Handle;

use super::files::FOLDER;
use super::{Deployment, Worker};
use crate::chaos::fault::worker_name;
use crate::chaos::{ChaosError, Configuration};
use crate::faults::Proxy;
use crate::lab::actors::Actor;
use crate::record::Record;

impl Deployment<'_> {
    /// Starts a worker and its links.
    pub(super) fn start_with_links(&self, number: usize) -> Result<Worker, ChaosError> {
        let proxy = |address: &str| Handle::current().block_on(Proxy::start(address));
        let places = self.locks.places();
        let to_servers = places.iter().map(|address| proxy(address)).collect::<io::Result<Vec<_>>>();
        let to_servers = to_servers.map_err(ChaosError::Proxy)?;
        let to_side = proxy(&self.side.address()).map_err(ChaosError::Proxy)?;
        let name = worker_name(number);
        let actor = self.start_worker(number, &name, &to_servers, &to_side)?;
        Ok(Worker { name, actor, to_servers, to_side })
    }

    /// Starts a worker. Workers differ, as in a fleet: every second one does not check its lease before it
    /// writes, every third renews it.
    pub(super) fn start_worker(
        &self,
        number: usize,
        name: &str,
        to_servers: &[Proxy],
        to_side: &Proxy,
    ) -> Result<Actor, ChaosError> {
        let Configuration { system, record, ttl, work, keys, primitive, tokens, .. } = self.configuration;
        let primitive = primitive.to_string();
        let servers: Vec<_> = to_servers.iter().map(Proxy::address).collect();
        let (servers, side) = (servers.join(","), to_side.address());
        let url = format!("postgresql://postgres@{side}/postgres");
        let millis = |time: &Duration| format!("{}ms", time.as_millis());
        let (ttl, rest, work) = (millis(ttl), millis(&(*work * 2)), millis(work));
        let (keys, rounds, first) = (keys.to_string(), u64::MAX.to_string(), number.to_string());
        let check = if number.is_multiple_of(2) { "on" } else { "off" };
        let mut arguments = match record {
            Record::Resource => vec!["--resource", &side],
            Record::Postgres => vec!["--record", record.as_str(), "--postgres", &url],
        };
        if let Some(system) = system {
            arguments.extend(["--system", system.as_str(), "--servers", &servers]);
        }
        arguments
            .extend(["--ttl", &ttl, "--work", &work, "--keys", &keys, "--rounds", &rounds, "--rest", &rest]);
        arguments.extend(["--claim", "on", "--check", check, "--primitive", &primitive]);
        arguments.extend(["--first-key", &first]);
        if !tokens.is_default() {
            arguments.extend(["--tokens", tokens.as_str()]);
        }
        if number % 3 == 2 {
            arguments.extend(["--renew", "1h"]);
        }
        if self.serves_metrics {
            arguments.extend(["--metrics", "127.0.0.1:0"]);
        }
        Ok(Actor::start(&self.stage, FOLDER, name, "worker", &arguments)?)
    }
}
