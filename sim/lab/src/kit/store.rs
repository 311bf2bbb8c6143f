//! A resource that behaves as the correct one, except where its mistake changes it. It keeps a value and a
//! fence for each key, and emits its decisions as the real stores do.

use std::collections::BTreeMap;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use resource::fence::{
    Beside, Fence, Fencing, Guard, LastWrite, Mark, Position, Receipt, Refusal, WriteOutcome,
};
use resource::http::{App, Config};
use resource::store::{Read, ReadOutcome, Snapshot, Store, StoreError, Write};
use resource::{BodyDigest, OwnerToken, ResourceKey, event};
use sim::servers::resource::ResourceHost;
use sim::world::machine::WorldMachine;
use sim::world::runtime::SimRuntime;

use super::Faultless;
use crate::{Options, Store as Kept};

/// A mistake: it replaces one or more of the correct steps.
pub trait ResourceMistake: Send + Sync + 'static {
    /// Returns the rows with which a life of the process begins, given the stored `rows`. Correct: all rows.
    fn begin(rows: &Rows) -> Rows {
        Arc::clone(rows)
    }

    /// Decides a write with a token, granted beside the permits `beside`, with fencing on. Correct: the fence
    /// rule judges the write, which is applied at once.
    fn write(
        shelf: &Shelf,
        key: &ResourceKey,
        write: &Write,
        position: Position,
        beside: &Beside,
    ) -> impl Future<Output = WriteOutcome> + Send {
        let _ = position;
        async { shelf.apply(key, write, write.guard, beside, Fencing::On) }
    }

    /// Returns the guard for a conditional write. Correct: the version that the write names.
    fn guard(shelf: &Shelf, key: &ResourceKey, write: &Write) -> Guard {
        let _ = (shelf, key);
        write.guard
    }
}

impl ResourceMistake for Faultless {}

/// The rows of a resource. They outlive a restart of the process, as on a disk that syncs at once.
pub type Rows = Arc<Mutex<BTreeMap<ResourceKey, Row>>>;

/// A key's value and its fence.
#[derive(Default)]
pub struct Row {
    /// The state of the fence rule.
    pub fence: Fence,
    /// The fence of each instance of the application, if each judges by itself.
    pub instances: BTreeMap<String, Fence>,
    value: Option<Bytes>,
}

/// The runtime and the rows of one life of the process.
pub struct Shelf {
    /// The runtime of the process.
    pub runtime: SimRuntime,
    rows: Rows,
}

/// A resource with the mistake `M`.
struct Mistaken<M>(Shelf, PhantomData<fn() -> M>);

/// Returns the resource of one run with the mistake `M`. The same faults apply to it as to the correct one,
/// so that a crash exposes a resource that forgets.
pub fn resource_with<M: ResourceMistake>(options: &Options, config: Config) -> ResourceHost {
    let rows = Rows::default();
    ResourceHost::new(options.resource.store == Kept::Redb, move |machine: &WorldMachine| {
        let runtime = SimRuntime::new(machine.world(), machine.process());
        let shelf = Shelf { runtime, rows: M::begin(&rows) };
        Ok(App::new(Arc::new(Mistaken::<M>(shelf, PhantomData)), config))
    })
}

impl Shelf {
    /// Locks the rows.
    pub fn rows(&self) -> MutexGuard<'_, BTreeMap<ResourceKey, Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Judges the write by the fence rule with `guard`, applies it if it is accepted, and emits the decision.
    pub fn apply(
        &self,
        key: &ResourceKey,
        write: &Write,
        guard: Guard,
        beside: &Beside,
        fencing: Fencing,
    ) -> WriteOutcome {
        let digest = BodyDigest::of(&write.body);
        let mut rows = self.rows();
        let row = rows.entry(key.clone()).or_default();
        let outcome = row.fence.write_beside(guard, beside, write.owner.as_ref(), digest, fencing);
        if matches!(outcome, WriteOutcome::Accepted(_)) {
            row.value = Some(write.body.clone());
        }
        event::write_decided(key, write, digest, &outcome);
        outcome
    }

    /// Emits and returns the refusal of a write with a token; returns `None` if the write passes.
    pub fn refusal(
        &self,
        key: &ResourceKey,
        write: &Write,
        passes: impl Fn(&Fence) -> Result<(), Refusal>,
    ) -> Option<WriteOutcome> {
        let rows = self.rows();
        let fence = rows.get(key).map(|row| &row.fence)?;
        let refusal = passes(fence).err()?;
        let digest = BodyDigest::of(&write.body);
        let this = LastWrite { guard: write.guard, owner: write.owner.clone(), digest };
        let outcome = if fence.last_write.as_ref() == Some(&this) {
            WriteOutcome::Repeated(Receipt { version: fence.version, max_fence: refusal.seen() })
        } else {
            WriteOutcome::Refused(refusal)
        };
        event::write_decided(key, write, digest, &outcome);
        Some(outcome)
    }
}

/// Judges a write of `owner` at `position` by the fence rule, as a step apart from its application: against
/// the highest token, or against the permits beside it.
///
/// # Errors
///
/// The refusal, if it may not pass.
pub fn judge_apart(fence: &Fence, position: Position, owner: Option<&OwnerToken>) -> Result<(), Refusal> {
    let mark = Mark { position, owner: owner.cloned() };
    // A claim is judged by the same rule as a write. The copy that remembers it is dropped.
    fence.clone().claim(&mark, Fencing::On)
}

impl<M: ResourceMistake> Store for Mistaken<M> {
    async fn write(
        &self,
        key: &ResourceKey,
        write: &Write,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        self.write_beside(key, write, &Beside::NONE, fencing).await
    }

    async fn read(
        &self,
        key: &ResourceKey,
        read: &Read,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        self.read_beside(key, read, &Beside::NONE, fencing).await
    }

    async fn write_beside(
        &self,
        key: &ResourceKey,
        write: &Write,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        let shelf = &self.0;
        Ok(match (write.guard, fencing) {
            (Guard::Token { token, seq }, Fencing::On) => {
                M::write(shelf, key, write, Position::write(token, seq), beside).await
            }
            (Guard::Token { .. }, Fencing::Off) => shelf.apply(key, write, write.guard, beside, fencing),
            (Guard::Version { .. }, _) => {
                shelf.apply(key, write, M::guard(shelf, key, write), beside, fencing)
            }
        })
    }

    async fn read_beside(
        &self,
        key: &ResourceKey,
        read: &Read,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        let mut rows = self.0.rows();
        let row = rows.entry(key.clone()).or_default();
        let claimed = read.mark().map_or(Ok(()), |mark| row.fence.claim_beside(&mark, beside, fencing));
        let outcome = match claimed {
            Ok(()) => ReadOutcome::Read(Snapshot {
                value: row.value.clone(),
                version: row.fence.version,
                max_fence: row.fence.max_fence(),
            }),
            Err(refusal) => ReadOutcome::Refused(refusal),
        };
        event::read_decided(key, read, &outcome);
        Ok(outcome)
    }
}
