//! `resource`: serves the protected resource as a process of its own.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::{Args, ValueEnum};
use real::serve::{listen, serve_resource};
use real::stop::Stop;
use real::store::{Apart, Blocking, Bucket, PostgresStore};
use resource::Fencing;
use resource::http::{App, Config};
use resource::store::{BucketStore, FenceAdmin, FolderStore, MemoryStore, RedbStore};

use super::guards::GuardArgs;
use super::tls::ServerTls;
use super::{Identity, Outcome, fencing, print, span};

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
    #[arg(
        long,
        env = "DLOCK_POSTGRES",
        value_name = "URL",
        hide_env_values = true,
        required_if_eq("store", "postgres")
    )]
    postgres: Option<String>,
    /// The folder of the store of files.
    #[arg(long, env = "DLOCK_DIR", default_value = "resources", value_name = "FOLDER")]
    dir: PathBuf,
    /// The server of the bucket, `http://host:port`; without it that of AWS, in the region AWS_REGION. The
    /// credentials come from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN.
    #[arg(long, env = "DLOCK_S3_URL", value_name = "URL")]
    s3_url: Option<String>,
    /// The bucket of the s3 store.
    #[arg(long, env = "DLOCK_S3_BUCKET", value_name = "NAME", required_if_eq("store", "s3"))]
    s3_bucket: Option<String>,
    /// The folder in the bucket.
    #[arg(long, env = "DLOCK_S3_PREFIX", value_name = "FOLDER", default_value = "resources")]
    s3_prefix: String,
    /// Before serving, deletes the values that dead processes left in the s3 store or among the files, if
    /// they are older than this.
    #[arg(long, env = "DLOCK_SWEEP", value_name = "AGE", value_parser = span::parse)]
    sweep: Option<Duration>,
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
    /// A bucket of S3, or of a server with conditional puts: any number of processes may use it.
    S3,
    /// Files in a folder, synced before a write is acknowledged: processes of one machine may share it.
    Files,
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
            StoreKind::S3 => {
                let (name, prefix) = (self.s3_bucket.clone().unwrap_or_default(), self.s3_prefix.clone());
                let store = Bucket { url: self.s3_url.clone(), name, prefix }.connect().await?;
                if let Some(before) = self.sweep_before() {
                    report_sweep(store.sweep(before).await?);
                }
                self.serve(Apart::new(max_jump.into_iter().fold(store, BucketStore::with_max_jump)))
            }
            StoreKind::Files => {
                let store = FolderStore::open(&self.dir);
                let store = store.map_err(|error| format!("--dir {}: {error}", self.dir.display()))?;
                if let Some(before) = self.sweep_before() {
                    report_sweep(store.sweep(before)?);
                }
                self.serve(Blocking::new(max_jump.into_iter().fold(store, FolderStore::with_max_jump)))
            }
        }
    }

    #[allow(clippy::disallowed_methods, reason = "compares with the times of files and objects")]
    fn sweep_before(&self) -> Option<SystemTime> {
        let age = self.sweep?;
        Some(SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH))
    }

    fn serve<S: FenceAdmin>(&self, store: S) -> Result<App, Box<dyn Error>> {
        let (store, config) = (Arc::new(store), Config { fencing: self.fence, ..Config::default() });
        self.guards.guard(App::new(Arc::clone(&store), config), store)
    }
}

fn report_sweep(deleted: usize) {
    tracing::info!(deleted, "values of dead processes deleted");
}
