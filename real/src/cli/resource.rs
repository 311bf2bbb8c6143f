//! `resource`: serves the protected resource as a process of its own.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use real::serve::{listen, serve_resource};
use real::stop::Stop;
use real::store::{Blocking, PostgresStore};
use resource::Fencing;
use resource::http::{App, Config};
use resource::store::{FenceAdmin, MemoryStore, RedbStore};

use super::guards::GuardArgs;
use super::tls::ServerTls;
use super::{Identity, Outcome, fencing, print};

/// The flags of `resource`.
#[derive(Args)]
pub(crate) struct Resource {
    /// The address to listen on; port 0 picks a free one and prints it.
    #[arg(long, env = "DLOCK_LISTEN", default_value = "127.0.0.1:8080")]
    listen: String,
    /// The store of values and fences.
    #[arg(long, env = "DLOCK_STORE", value_enum, default_value = "redb")]
    store: StoreKind,
    /// The file of the redb store.
    #[arg(long, env = "DLOCK_PATH", default_value = "resource.redb", value_name = "FILE")]
    path: PathBuf,
    /// The database of the PostgreSQL store.
    #[arg(long, env = "DLOCK_POSTGRES", value_name = "URL", required_if_eq("store", "postgres"))]
    postgres: Option<String>,
    /// Refuses stale tokens (on), or accepts every write (off).
    #[arg(long, env = "DLOCK_FENCE", value_parser = fencing::parser(), default_value = "on")]
    fence: Fencing,
    #[command(flatten)]
    guards: GuardArgs,
    #[command(flatten)]
    tls: ServerTls,
    #[command(flatten)]
    identity: Identity,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StoreKind {
    /// Keeps everything in memory; all is lost when the process ends.
    Memory,
    /// A file on disk, synced before a write is acknowledged.
    Redb,
    /// Tables in PostgreSQL: checks the fence, writes and logs the write in one transaction.
    Postgres,
}

impl Resource {
    pub(crate) fn run(self) -> Outcome {
        let recording = self.identity.record(&self.identity.name_or("resource"))?;
        let stop = Stop::on_signals()?;
        let executor = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        executor.block_on(async {
            let app = self.app().await?;
            let tls = self.tls.acceptor()?;
            let listener = listen(&self.listen).await?;
            let scheme = if tls.is_some() { "https://" } else { "" };
            print(&format!("listening on {scheme}{}\n", listener.local_addr()?))?;
            // A server that was told to end has done its work: 0, unlike a command that was interrupted.
            let limit = self.guards.max_connections();
            stop.or(serve_resource(listener, app, tls, limit)).await;
            Ok::<_, Box<dyn Error>>(())
        })?;
        super::finish(recording)?;
        Ok(true)
    }

    async fn app(&self) -> Result<App, Box<dyn Error>> {
        let max_jump = self.guards.max_jump(self.fence)?;
        match self.store {
            StoreKind::Memory => {
                let store = MemoryStore::new();
                self.serve(max_jump.into_iter().fold(store, MemoryStore::with_max_jump))
            }
            StoreKind::Redb => {
                let store = RedbStore::open(&self.path);
                let store = store.map_err(|error| {
                    format!(
                        "--path {}: {error}; give a file that this user can write to",
                        self.path.display()
                    )
                })?;
                self.serve(Blocking::new(max_jump.into_iter().fold(store, RedbStore::with_max_jump)))
            }
            StoreKind::Postgres => {
                let url = self.postgres.as_deref().unwrap_or_default();
                self.serve(PostgresStore::connect_within(url, max_jump).await?)
            }
        }
    }

    fn serve<S: FenceAdmin>(&self, store: S) -> Result<App, Box<dyn Error>> {
        let (store, config) = (Arc::new(store), Config { fencing: self.fence, ..Config::default() });
        self.guards.guard(App::new(Arc::clone(&store), config), store)
    }
}
