//! The round of a worker that locks several keys together.

use dlock::{AnyBackend, Handle, Lock, LockKey};
use resource::ResourceKey;
use sim::faults::Call;
use sim::sim::Section;
use sim::world::runtime::SimRuntime;

use super::worker::{Hands, RENEW_CAP, WorkerMistake};

impl Hands {
    /// Locks `keys` in this order, works and writes under each of them in turn, and releases the newest
    /// first.
    pub(super) async fn round_of_several<M: WorkerMistake>(
        &self,
        lock: &Lock<AnyBackend<SimRuntime>>,
        keys: Vec<LockKey>,
    ) {
        let acquire = self.acquire_all::<M>(lock, keys);
        let Some(Some(held)) = self.process.cancellable(Call::Acquire, acquire).await else { return };
        for (hands, handle, _) in &held {
            let first = held.first().map_or(handle, |(_, first, _)| first);
            hands.work::<M>(handle, first).await;
        }
        for (hands, handle, section) in held.into_iter().rev() {
            M::end(&hands, handle, section).await;
        }
    }

    /// Acquires one key after the other, and renews those that it has; `None` if one is not acquired.
    async fn acquire_all<M: WorkerMistake>(
        &self,
        lock: &Lock<AnyBackend<SimRuntime>>,
        keys: Vec<LockKey>,
    ) -> Option<Vec<(Self, Handle<AnyBackend<SimRuntime>>, Section)>> {
        let deadline = self.deadline();
        let mut held: Vec<(Self, Handle<AnyBackend<SimRuntime>>)> = Vec::new();
        for key in keys {
            let hands = Self { resource: ResourceKey::try_from(&key).ok()?, ..self.clone() };
            let locked = M::lock_key(key);
            if held.iter().any(|(_, handle)| *handle.key() == locked) {
                continue;
            }
            let handle = lock.acquire(&locked, deadline).await.ok()?;
            handle.keep_alive(RENEW_CAP);
            held.push((hands, handle));
        }
        let enter = |(hands, handle): (Self, Handle<AnyBackend<SimRuntime>>)| {
            let section = hands.process.section_with_token(handle.key().name(), handle.fence().as_u64());
            (hands, handle, section)
        };
        Some(held.into_iter().map(enter).collect())
    }
}
