//! The protected resource in all lives of its process: the service of the crate `resource`, over HTTP.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use history::{Kind, Name};
use resource::fence::{Beside, WriteOutcome};
use resource::http::{App, Config, serve_connection};
use resource::store::{MemoryStore, Read, ReadOutcome, RedbStore, Store, StoreError, Write};
use resource::{Fencing, ResourceKey};

use super::host::Host;
use crate::record::note;
use crate::world::disk::{Disk, File};
use crate::world::machine::{Machine, WorldMachine};

/// The port on which it listens.
#[doc(hidden)]
pub const PORT: u16 = 80;

/// Makes the service for one life of the process.
type Make<M> = dyn Fn(&M) -> Result<App, StoreError> + Send + Sync;

/// The protected resource on port 80 of its machine.
pub struct ResourceHost<M: Machine = WorldMachine> {
    make: Arc<Make<M>>,
    keeps_on_disk: bool,
}

impl<M: Machine> ResourceHost<M> {
    /// Creates a resource that keeps values and tokens in memory: a restart forgets them.
    pub fn in_memory(config: Config) -> Self {
        Self::new(false, move |machine: &M| {
            Ok(App::with_probes(Arc::new(MemoryStore::new()), config, machine.clone()))
        })
    }

    /// Creates a resource that keeps values and tokens in a redb database on its machine's disk, synced
    /// before a write is acknowledged.
    pub fn on_disk(config: Config) -> Self {
        Self::new(true, move |machine: &M| {
            let store = OnDisk::open(&machine.disk())?;
            Ok(App::with_probes(Arc::new(store), config, machine.clone()))
        })
    }

    /// Creates a resource on any store. `make` makes the service anew for each life of the process;
    /// `keeps_on_disk` says whether the store survives a restart.
    pub fn new(
        keeps_on_disk: bool,
        make: impl Fn(&M) -> Result<App, StoreError> + Send + Sync + 'static,
    ) -> Self {
        Self { make: Arc::new(make), keeps_on_disk }
    }
}

/// A store on a simulated disk.
struct OnDisk {
    store: RedbStore,
    file: File,
}

impl OnDisk {
    fn open(disk: &Disk) -> Result<Self, StoreError> {
        let file = disk.open();
        Ok(Self { store: RedbStore::create(file.clone())?, file })
    }
}

impl Store for OnDisk {
    async fn write(
        &self,
        key: &ResourceKey,
        write: &Write,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        self.store.write(key, write, fencing).await
    }

    async fn read(
        &self,
        key: &ResourceKey,
        read: &Read,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        self.store.read(key, read, fencing).await
    }

    async fn write_beside(
        &self,
        key: &ResourceKey,
        write: &Write,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        self.store.write_beside(key, write, beside, fencing).await
    }

    async fn read_beside(
        &self,
        key: &ResourceKey,
        read: &Read,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        self.store.read_beside(key, read, beside, fencing).await
    }
}

impl Drop for OnDisk {
    // Without this, each run would prepare a clean close: a fifth of the time of a short one.
    fn drop(&mut self) {
        if self.file.is_dead() {
            self.store.notice_failure();
        }
    }
}

impl<M: Machine> Host<M> for ResourceHost<M> {
    fn noun(&self) -> &'static str {
        "the resource"
    }

    fn start(&self, machine: M) -> BoxFuture<'static, ()> {
        let make = Arc::clone(&self.make);
        Box::pin(async move {
            let app = match make(&machine) {
                Ok(app) => app,
                Err(error) => {
                    let detail = Some(Name::from(error.to_string().as_str()));
                    note(machine.name(), Kind::ServerStopped { detail });
                    return;
                }
            };
            // It fails only if the process is dead.
            let _ = machine
                .serve(PORT, |stream, _| {
                    let serving = serve_connection(stream, &app);
                    // Ignores a broken connection: its client notices it.
                    async move { drop(serving.await) }
                })
                .await;
        })
    }

    fn keeps_on_disk(&self) -> bool {
        self.keeps_on_disk
    }
}
