//! A PostgreSQL server in all lives of its process.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};

use super::scram::Verifier;
use super::{Options, Server, Watch};
use crate::servers::host::{Acted, Action, ActionError, Host};
use crate::world::lock;
use crate::world::machine::{Machine, WorldMachine};

/// The port on which it listens.
pub const PORT: u16 = 5432;

/// PostgreSQL's `max_connections`.
const SESSIONS_MAX: usize = 100;

const TERMINATE: Action = Action { name: "terminate", argument: Some("the client's process") };

/// A PostgreSQL server on port 5432 of its machine. A restart restores its data from its write-ahead log.
///
/// Actions: `terminate` ends the sessions of a client, as `pg_terminate_backend` does.
///
/// # Example
///
/// ```
/// use sim::Sim;
/// use sim::servers::postgres::PostgresHost;
///
/// let mut sim = Sim::new(7);
/// let accounts = "CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL)";
/// sim.host("db", PostgresHost::new().preset(accounts).setting("lock_timeout", "5s"));
/// ```
pub struct PostgresHost<M: Machine = WorldMachine> {
    setup: Arc<Setup>,
    state: Arc<Mutex<State<M>>>,
}

/// The options of the server, the same in every life.
#[derive(Clone)]
struct Setup {
    password: Option<String>,
    settings: Vec<(String, String)>,
    sessions_max: usize,
    /// Statements that run before the first life begins.
    presets: Vec<String>,
    watch: Option<Watch>,
}

struct State<M> {
    /// The number of starts of the process.
    lives: u32,
    is_alive: bool,
    server: Option<Server<M>>,
    /// Made with the first life, since it takes some thousand hashes.
    verifier: Option<Verifier>,
    /// Statements that earlier lives ran.
    executed: u64,
}

impl<M: Machine> PostgresHost<M> {
    /// Creates a server with an empty database, which all users may enter without a password.
    pub fn new() -> Self {
        let setup = Setup {
            password: None,
            settings: Vec::new(),
            sessions_max: SESSIONS_MAX,
            presets: Vec::new(),
            watch: None,
        };
        let state = State { lives: 0, is_alive: false, server: None, verifier: None, executed: 0 };
        Self { setup: Arc::new(setup), state: Arc::new(Mutex::new(state)) }
    }

    /// Sets the password of all users, who log in by SCRAM-SHA-256.
    #[must_use]
    pub fn password(self, password: impl Into<String>) -> Self {
        let password = password.into();
        self.with(|setup| setup.password = Some(password))
    }

    /// Sets a setting for all sessions, as the server's configuration does, such as `synchronous_commit` to
    /// `off`. A name or a value that does not exist fails all logins, with an error that names it.
    #[must_use]
    pub fn setting(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let setting = (name.into(), value.into());
        self.with(|setup| setup.settings.push(setting))
    }

    /// Sets the most sessions at a time: `max_connections`. Default 100.
    #[must_use]
    pub fn max_connections(self, sessions: usize) -> Self {
        self.with(|setup| setup.sessions_max = sessions)
    }

    /// Runs SQL before the run begins: the disk has its changes.
    ///
    /// # Panics
    ///
    /// At the server's first start, if the SQL fails.
    #[must_use]
    pub fn preset(self, sql: impl Into<String>) -> Self {
        let sql = sql.into();
        self.with(|setup| setup.presets.push(sql))
    }

    /// Calls `observe` with each row that a commit of a client stores in the table `table`, as the texts of
    /// its values in the order of the columns: once the commit is done, before its answer is sent. A fault
    /// may be aimed at an event that it emits.
    #[must_use]
    pub fn watch(
        self,
        table: impl Into<String>,
        observe: impl Fn(&[Option<String>]) + Send + Sync + 'static,
    ) -> Self {
        let watch = Watch { table: table.into(), observe: Arc::new(observe) };
        self.with(|setup| setup.watch = Some(watch))
    }

    fn with(mut self, change: impl FnOnce(&mut Setup)) -> Self {
        change(Arc::make_mut(&mut self.setup));
        self
    }

    fn server(&self) -> Option<Server<M>> {
        lock(&self.state).server.clone()
    }

    /// Begins a life of the process.
    fn begin(&self, machine: &M) -> Options {
        let mut state = lock(&self.state);
        state.lives += 1;
        state.is_alive = true;
        if let Some(password) = self.setup.password.as_deref().filter(|_| state.verifier.is_none()) {
            let salt = Sha256::digest(machine.name()).first_chunk().copied().unwrap_or_default();
            state.verifier = Some(Verifier::new(password, salt));
        }
        Options {
            password: state.verifier.clone(),
            settings: self.setup.settings.clone(),
            sessions_max: self.setup.sessions_max,
            life: state.lives,
            watch: self.setup.watch.clone(),
        }
    }

    /// Runs the main task of one life.
    async fn run(self, machine: M, options: Options) {
        let is_first = options.life == 1;
        let server = Server::new(options, machine.clone());
        if is_first {
            self.setup.presets.iter().for_each(|sql| server.preset(sql));
        }
        {
            let mut state = lock(&self.state);
            // A fault at a point of the start may have killed the process.
            if !state.is_alive {
                return;
            }
            state.server = Some(server.clone());
        }
        let writer = server.clone();
        machine.spawn(async move { writer.write_log().await });
        // It fails only if the process is dead.
        let _ = machine
            .serve(PORT, |stream, client| {
                let server = server.clone();
                async move { server.serve_connection(stream, &client).await }
            })
            .await;
    }
}

impl<M: Machine> Host<M> for PostgresHost<M> {
    fn noun(&self) -> &'static str {
        "a PostgreSQL server"
    }

    fn greeting(&self) -> Option<&'static str> {
        Some("a startup packet")
    }

    fn start(&self, machine: M) -> BoxFuture<'static, ()> {
        let options = self.begin(&machine);
        Box::pin(self.clone().run(machine, options))
    }

    fn shut_down(&self) {
        if let Some(server) = self.server() {
            server.shut_down();
        }
    }

    fn died(&self) {
        let server = {
            let mut state = lock(&self.state);
            state.is_alive = false;
            let server = state.server.take();
            state.executed += server.as_ref().map_or(0, Server::executed);
            server
        };
        // Drop it while no lock is held.
        drop(server);
    }

    fn actions(&self) -> &'static [Action] {
        &[TERMINATE]
    }

    fn offers(&self, action: &str) -> bool {
        self.server().is_some() && self.actions().iter().any(|known| known.name == action)
    }

    fn act(&self, action: &str, argument: Option<&str>) -> Result<Acted, ActionError> {
        self.check(action, argument)?;
        let (Some(server), Some(client)) = (self.server(), argument) else { return Ok(Acted::Down) };
        Ok(match server.terminate(client) {
            0 => Acted::Failed(format!("was to end the sessions of {client}, which has none")),
            count => Acted::Done(format!("ends the sessions of {client}: {count}")),
        })
    }

    fn keeps_on_disk(&self) -> bool {
        true
    }

    fn executed(&self) -> u64 {
        let state = lock(&self.state);
        state.executed + state.server.as_ref().map_or(0, Server::executed)
    }

    fn close(&self) {
        self.died();
    }
}

impl<M: Machine> Default for PostgresHost<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Machine> Clone for PostgresHost<M> {
    fn clone(&self) -> Self {
        Self { setup: Arc::clone(&self.setup), state: Arc::clone(&self.state) }
    }
}
