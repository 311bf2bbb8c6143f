//! Times writes to a resource that checks their tokens, and to one that does not, in turns.

use std::time::Duration;

use dlock::{FencingToken, Runtime, TokioRuntime};
use resource::client::{Client, PutAnswer};
use resource::fence::Guard;
use resource::store::Write;
use resource::{Fencing, OwnerToken, ResourceKey};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle};

use super::locks::Stopped;
use super::{Configuration, ExperimentError};
use crate::lab::actors::ResourceActor;
use crate::lab::statistics::quantile;
use crate::servers::Stage;

/// The timeout of a write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Writes to one resource.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Checked {
    /// `memory` or `redb`, a file that is written to the disk before the answer.
    pub(super) store: String,
    pub(super) fence: Fencing,
    pub(super) writes: u64,
    /// Latency of a write, in milliseconds.
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

/// Times the writes to both stores.
pub(super) fn measure(configuration: &Configuration) -> Result<Vec<Checked>, ExperimentError> {
    let mut all = Vec::new();
    for store in ["memory", "redb"] {
        let stage = Stage::new()?;
        let mut resources = Vec::new();
        for fence in Fencing::BOTH {
            let resource = ResourceActor::start_on(&stage, fence.as_str(), store, fence.as_str())?;
            resources.push((fence, resource));
        }
        let timed = in_turns(configuration, &resources)
            .map_err(|error| ExperimentError::Failed(format!("writes to a resource: {error}")))?;
        for ((fence, _), latencies) in resources.iter().zip(timed) {
            let at = |share| quantile(&latencies, share).unwrap_or_default();
            let (p50_ms, p99_ms) = (at(0.5), at(0.99));
            let writes = latencies.len() as u64;
            all.push(Checked { store: store.to_owned(), fence: *fence, writes, p50_ms, p99_ms });
        }
    }
    Ok(all)
}

/// Returns the latencies of the writes to each resource, in milliseconds.
fn in_turns(
    configuration: &Configuration,
    resources: &[(Fencing, ResourceActor)],
) -> Result<Vec<Vec<f64>>, Stopped> {
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let runtime = TokioRuntime::new(Handle::current());
        let clients: Vec<_> =
            resources.iter().map(|(_, resource)| Client::new(runtime.clone(), resource.address())).collect();
        let key = ResourceKey::new("price:1")?;
        let mut latencies = vec![Vec::new(); clients.len()];
        let mut token = 0;
        for _ in 0..configuration.rounds {
            for (client, latencies) in clients.iter().zip(&mut latencies) {
                for _ in 0..configuration.writes {
                    token += 1;
                    let write = write(token)?;
                    let called = runtime.now();
                    let answer = client.put(&key, &write, called + WRITE_TIMEOUT).await?;
                    latencies.push(runtime.now().saturating_since(called).as_secs_f64() * 1e3);
                    if !matches!(answer, PutAnswer::Accepted { .. }) {
                        return Err(format!("a write with a new token got {answer:?}").into());
                    }
                }
            }
        }
        Ok(latencies)
    })
}

fn write(token: u64) -> Result<Write, Stopped> {
    let token = FencingToken::new(token).ok_or("a token is above zero")?;
    let owner = Some(OwnerToken::new("price:28999649")?);
    Ok(Write { guard: Guard::token(token), owner, body: "paid".into() })
}
