//! A worker that only reads the resource, to which others write.

use dlock::{Owner, Runtime};
use futures_util::future::BoxFuture;
use resource::client::Client;
use resource::store::Read;
use resource::{OwnerToken, ResourceKey};

use super::super::point::Point;
use super::super::rounds::apart;
use super::super::seat::{RESOURCE_ADDRESS, Seat, lock_key};
use super::super::worker::Worker;
use super::Workload;

/// The workload `read`.
pub(super) struct Reading;

impl Workload for Reading {
    fn name(&self) -> &'static str {
        "read"
    }

    fn acquires(&self) -> bool {
        false
    }

    fn round(&self) -> &'static str {
        "reads once a round, and writes nothing"
    }

    fn reads(&self, _: &Worker) -> bool {
        true
    }

    fn never_passes(&self, _: &Worker, _: Point) -> Option<&'static str> {
        Some("its `mode` is read, only the resource passes points")
    }

    fn rounds<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        apart(rounds(seat))
    }
}

/// Works all rounds of a worker: one read in each.
async fn rounds(seat: Seat<'_>) {
    // The schedule was validated, so the key is valid.
    let key = lock_key(seat.options.key_of(seat.spec)).ok();
    let Some(key) = key.and_then(|key| ResourceKey::try_from(&key).ok()) else { return };
    let runtime = seat.process.runtime();
    let client = Client::new(runtime.clone(), RESOURCE_ADDRESS);
    // Histories name the reader.
    let owner = OwnerToken::try_from(&Owner::random(&runtime, Some(&seat.spec.name))).ok();
    let read = Read { claim: None, owner };
    for _ in 0..seat.spec.rounds {
        // A failed read emits no event of the reader; the next round goes on.
        let _ = client.read_as(&key, &read, runtime.now() + seat.spec.deadline.duration()).await;
        seat.think().await;
    }
}
