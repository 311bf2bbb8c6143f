//! Elections, one candidate that campaigns and resigns again and again: ours, and etcd's own Election service
//! through etcd-client.
#![allow(clippy::disallowed_methods, reason = "peers are measured on the machine's own clock and scheduler")]

use std::time::{Duration, Instant};

use dlock::election::Election;
use dlock::redis::Waiting;
use dlock::{Cap, Lock, LockKey, Options, TokioRuntime};
use etcd_client::{Client, ResignOptions};
use tokio::runtime::{Builder, Handle};

use super::PeerError;
use super::slice::{Job, Peer, Scenario, Slice, Stopped, nanos};
use crate::place::Place;
use crate::systems::System;

/// Longer than any slice.
const LONG: Duration = Duration::from_secs(120);

/// Our election on one of our systems.
pub(super) struct OurElection {
    pub(super) name: &'static str,
    pub(super) system: System,
    pub(super) servers: Vec<String>,
}

impl Peer for OurElection {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(&mut self, job: &Job) -> Result<Slice, PeerError> {
        block_on(self.name, ours(Place::new(self.system, self.servers.clone()), job))
    }
}

/// etcd's own Election service.
pub(super) struct ElectionService {
    pub(super) members: Vec<String>,
}

impl Peer for ElectionService {
    fn name(&self) -> &'static str {
        "etcd's Election service"
    }

    fn run(&mut self, job: &Job) -> Result<Slice, PeerError> {
        block_on(self.name(), service(&self.members, job))
    }
}

fn block_on(
    name: &'static str,
    slice: impl Future<Output = Result<Slice, Stopped>>,
) -> Result<Slice, PeerError> {
    let failed = |what: String| PeerError::Failed { name, what };
    let executor = Builder::new_current_thread().enable_all().build();
    let executor = executor.map_err(|error| failed(error.to_string()))?;
    executor.block_on(slice).map_err(|error| failed(error.to_string()))
}

async fn ours(place: Place, job: &Job) -> Result<Slice, Stopped> {
    debug_assert_eq!(job.scenario, Scenario::Uncontended);
    let runtime = TokioRuntime::new(Handle::current());
    let lock = Lock::new(place.backend(job.ttl(), Waiting::default(), runtime)?, Options::new(job.ttl()))?;
    let election = Election::new(lock.clone(), LockKey::new(&job.name, "0")?, Cap(LONG))?;
    let mut slice = Slice { completed: job.operations, ..Slice::default() };
    let begun = Instant::now();
    // The first round includes the connection's setup.
    for round in 0..=job.operations {
        let called = Instant::now();
        let leadership = election.campaign(lock.deadline_in(LONG)).await?;
        let elected = Instant::now();
        leadership.resign().await?;
        if round > 0 {
            slice.acquire_ns.push(nanos(elected - called));
            slice.release_ns.push(nanos(elected.elapsed()));
        }
    }
    slice.elapsed_ns = nanos(begun.elapsed());
    Ok(slice)
}

async fn service(members: &[String], job: &Job) -> Result<Slice, Stopped> {
    debug_assert_eq!(job.scenario, Scenario::Uncontended);
    // One member, as our peer uses.
    let mut client = Client::connect(&members[..1], None).await?;
    let lease = client.lease_grant(i64::try_from(LONG.as_secs())?, None).await?.id();
    let mut elections = client.election_client();
    let mut slice = Slice { completed: job.operations, ..Slice::default() };
    let begun = Instant::now();
    for round in 0..=job.operations {
        let called = Instant::now();
        let mut answer = elections.campaign(format!("{}:0", job.name), "candidate", lease).await?;
        let elected = Instant::now();
        let leader = answer.take_leader().ok_or("etcd named no leader")?;
        elections.resign(Some(ResignOptions::new().with_leader(leader))).await?;
        if round > 0 {
            slice.acquire_ns.push(nanos(elected - called));
            slice.release_ns.push(nanos(elected.elapsed()));
        }
    }
    slice.elapsed_ns = nanos(begun.elapsed());
    client.lease_revoke(lease).await?;
    Ok(slice)
}
