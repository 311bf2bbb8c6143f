//! Compare and set: a worker that does without the lock. Read-modify-write by conditional writes, through the real HTTP client.

use bytes::Bytes;
use resource::ResourceKey;
use resource::client::{Client, Retry};
use resource::store::Snapshot;
use resource::update::{Update, Updater};

use super::super::worker::Worker as Spec;
use super::seat::{RESOURCE_ADDRESS, Seat, Yields, lock_key};

/// All rounds of a worker: an update each.
pub(super) async fn rounds(seat: Seat<'_>) {
    let Seat { process, options, spec, .. } = seat;
    // The schedule was validated: a key that can't be used does not get here.
    let Some(key) = lock_key(options.key_of(spec)).ok().and_then(|key| ResourceKey::try_from(&key).ok())
    else {
        return;
    };
    let runtime = process.runtime();
    let client = Client::new(runtime.clone(), RESOURCE_ADDRESS);
    let updater = Updater::new(runtime.clone(), client, Yields(runtime), &spec.name);
    let update = update(key, spec);
    for _ in 0..spec.rounds {
        // One that is given up ends in the events; the next round goes on.
        let _ = updater.update(&update, |seen| successor(spec, seen)).await;
        seat.think().await;
    }
}

fn update(key: ResourceKey, spec: &Spec) -> Update {
    let update = Update::new(key, spec.work.duration());
    Update {
        attempts: spec.attempts.unwrap_or(update.attempts),
        retry: spec.retry_put.then(Retry::default),
        answer_timeout: spec.deadline.duration(),
        ..update
    }
}

/// The value that follows the one that was read: it tells who wrote after which version.
fn successor(spec: &Spec, seen: &Snapshot) -> Bytes {
    Bytes::from(format!("{} after {}", spec.name, seen.version))
}
