//! PostgreSQL. If this process is root, it runs as the user `postgres`.
#![allow(clippy::disallowed_methods, reason = "waits for live processes")]

use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::error::ServerError;
use super::guard::Stage;
use super::port::{free, on_free_ports};
use super::process::{Launch, Process};
use super::program;
use super::ready::await_ready;

/// The time within which killed processes are gone, and the pause between two looks.
const ENDED_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);

/// A PostgreSQL server with one superuser, `postgres`, who needs no password.
#[derive(Debug)]
pub struct Postgres {
    process: Process,
    port: u16,
    launch: Launch,
    stage: Stage,
}

impl Postgres {
    /// Creates a database cluster, starts a server on a free port, and waits until it serves. It syncs to
    /// disk, as in production.
    ///
    /// # Errors
    ///
    /// [`ServerError`] says what to do.
    pub fn start(stage: &Stage) -> Result<Self, ServerError> {
        let directory = stage.subdirectory("postgres")?;
        let user = if geteuid().is_root() { Some(postgres_user()?) } else { None };
        if let Some((user, group)) = user {
            let owned = chown(&directory, Some(user), Some(group));
            owned.map_err(|source| ServerError::Directory { path: directory.clone(), source })?;
        }
        initialise(stage, &directory, user)?;
        on_free_ports(|| {
            let [port] = free()?;
            let text = port.to_string();
            let mut launch = Launch::new("postgres", program::find_postgres("postgres")?, &directory)
                .args(["-D", "data", "-p", &text, "-c", "listen_addresses=127.0.0.1"])
                // As many connections as an ordinary pool and the waiters of an experiment need.
                .args(["-c", "unix_socket_directories=", "-c", "max_connections=200"]);
            launch.user = user;
            // "Immediate shutdown": at once, and without leaving shared memory behind.
            launch.quits_by = Some(Signal::QUIT);
            let process = stage.spawn(&launch)?;
            let mut server = Self { process, port, launch, stage: stage.clone() };
            server.await_ready()?;
            Ok(server)
        })
    }

    /// Returns `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the URL for clients: `postgresql://postgres@127.0.0.1:PORT/postgres`.
    pub fn url(&self) -> String {
        format!("postgresql://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops all of its processes by SIGSTOP: each session has one, in a process group of its own.
    pub fn pause(&self) {
        // First: it starts no session meanwhile.
        self.process.pause();
        self.signal_sessions(Signal::STOP);
    }

    /// Continues all of its processes by SIGCONT.
    pub fn resume(&self) {
        self.signal_sessions(Signal::CONT);
        self.process.resume();
    }

    /// Kills all of its processes by SIGKILL. The operating system keeps what they have written.
    pub fn kill(&mut self) {
        self.pause();
        let begun = Instant::now();
        // A restart is refused as long as one of them has the shared memory.
        while !children(self.process.pid()).is_empty() && begun.elapsed() < ENDED_WITHIN {
            self.signal_sessions(Signal::KILL);
            thread::sleep(PAUSE);
        }
        self.process.kill();
    }

    /// Sends `signal` to the children of its first process.
    fn signal_sessions(&self, signal: Signal) {
        for child in children(self.process.pid()) {
            // It fails only if the child has ended.
            let _ = kill_process(child, signal);
        }
    }

    /// Returns its first process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Stops it without a checkpoint, as a crash does, and restarts it; it then recovers from its log.
    ///
    /// # Errors
    ///
    /// [`ServerError`] says what to do.
    pub fn restart(&mut self) -> Result<(), ServerError> {
        self.process.quit(Signal::QUIT);
        // A killed server leaves its pid file.
        let _ = fs::remove_file(self.pid_file());
        self.process = self.stage.spawn(&self.launch)?;
        self.await_ready()
    }

    /// Waits until the last line of its pid file says `ready`, as `pg_ctl -w` does.
    fn await_ready(&mut self) -> Result<(), ServerError> {
        let (port, file) = (self.port, self.pid_file());
        await_ready(&mut self.process, port, || {
            fs::read_to_string(&file)
                .is_ok_and(|text| text.lines().nth(7).is_some_and(|line| line.trim() == "ready"))
        })
    }

    fn pid_file(&self) -> PathBuf {
        self.launch.directory.join("data/postmaster.pid")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.process.is_paused() {
            self.resume();
        }
        self.process.end(Signal::QUIT);
    }
}

/// Returns the children of a process that have not ended, according to /proc.
fn children(parent: u32) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let is_child = |pid: &i32| {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // After the name in parentheses, which may contain anything: the state, and the parent.
        let mut fields = state.rsplit(')').next().unwrap_or_default().split_whitespace();
        let has_ended = fields.next().is_none_or(|state| state == "Z");
        !has_ended && fields.next().and_then(|text| text.parse().ok()) == Some(parent)
    };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(is_child).filter_map(Pid::from_raw).collect()
}

fn initialise(
    stage: &Stage,
    directory: &std::path::Path,
    user: Option<(u32, u32)>,
) -> Result<(), ServerError> {
    let mut launch = Launch::new("initdb", program::find_postgres("initdb")?, directory).args([
        "-D",
        "data",
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync",
    ]);
    launch.user = user;
    let mut process = stage.spawn(&launch)?;
    let status =
        process.wait().map_err(|source| ServerError::Spawn { program: "initdb".to_owned(), source })?;
    if status.success() { Ok(()) } else { Err(process.died(status)) }
}

/// Looks up user and group `postgres` by a tool that reads other directories than /etc/passwd, too.
fn postgres_user() -> Result<(u32, u32), ServerError> {
    let asked = Command::new("getent").args(["passwd", "postgres"]).stderr(Stdio::null()).output();
    let answer = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let mut fields = answer.trim().split(':').skip(2).map(str::parse);
    match (fields.next(), fields.next()) {
        (Some(Ok(user)), Some(Ok(group))) => Ok((user, group)),
        _ => Err(ServerError::NoUser),
    }
}
