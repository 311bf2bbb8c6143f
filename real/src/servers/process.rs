//! A process of a stage: started, stopped and continued by signals, killed when dropped.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use super::error::ServerError;
use super::guard::Stage;
use super::host::Host;

/// Writes its pid and the signal that stops it, then executes the program: `$0` is the directory of the pids,
/// `$1` the signal.
const NOTE_PID: &str = r#"signal=$1; shift; echo "$signal" >"$0/$$" && exec "$@""#;

/// The number of lines of its log that an error quotes.
const LAST_WORDS: usize = 12;

/// A program and its options.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Its name in messages: `redis-2`.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables to add to its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working directory, in the stage.
    pub directory: PathBuf,
    /// The host it runs on, if not this machine.
    pub host: Option<Host>,
    /// User and group, if not this process's.
    pub user: Option<(u32, u32)>,
    /// The signal for an orderly shutdown; without one it is killed.
    pub quits_by: Option<Signal>,
}

impl Launch {
    /// Runs `program` in `directory` as this user.
    pub fn new(name: &str, program: impl Into<PathBuf>, directory: &Path) -> Self {
        Self {
            name: name.to_owned(),
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            host: None,
            directory: directory.to_owned(),
            user: None,
            quits_by: None,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Runs it on `host`, if there is one.
    #[must_use]
    pub fn on(mut self, host: Option<&Host>) -> Self {
        self.host = host.cloned();
        self
    }

    /// Runs `job` on the process's host, where 127.0.0.1 is the host's own.
    ///
    /// # Errors
    ///
    /// [`ServerError::Spawn`] if the host was removed.
    pub(super) fn there<T: Send>(&self, job: impl FnOnce() -> T + Send) -> Result<T, ServerError> {
        match &self.host {
            None => Ok(job()),
            Some(host) => host
                .run(job)
                .map_err(|source| ServerError::Spawn { program: self.program.display().to_string(), source }),
        }
    }

    /// Returns the address at which others reach it: that of its host.
    pub(super) fn address(&self) -> &str {
        self.host.as_ref().map_or("127.0.0.1", Host::address)
    }
}

/// A process of a stage.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    pid: Pid,
    log: PathBuf,
    note: PathBuf,
    /// Keeps the directory while the process may use it.
    _stage: Stage,
    left: bool,
}

impl Stage {
    /// Creates the directory `name` in the stage if it does not exist.
    ///
    /// # Errors
    ///
    /// [`ServerError::Directory`].
    pub fn subdirectory(&self, name: &str) -> Result<PathBuf, ServerError> {
        let path = self.directory().join(name);
        match fs::create_dir_all(&path) {
            Ok(()) => Ok(path),
            Err(source) => Err(ServerError::Directory { path, source }),
        }
    }

    /// Starts a process. Its output is appended to the file `NAME.log` in the stage.
    ///
    /// # Errors
    ///
    /// [`ServerError::Spawn`], or [`ServerError::Directory`] for the log.
    pub fn spawn(&self, launch: &Launch) -> Result<Process, ServerError> {
        let log = self.directory().join(format!("{}.log", launch.name));
        let output = File::options().create(true).append(true).open(&log);
        let output = output.map_err(|source| ServerError::Directory { path: log.clone(), source })?;
        let failed = |source| ServerError::Spawn { program: launch.program.display().to_string(), source };
        let errors = output.try_clone().map_err(failed)?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(NOTE_PID).arg(self.pids());
        command.arg(launch.quits_by.map_or("KILL", signal_name)).arg(&launch.program).args(&launch.arguments);
        // The variables of our own flags and log: a child of this program gets its flags as arguments.
        let ours = std::env::vars_os().map(|(name, _)| name);
        for name in ours.filter(|name| name.as_encoded_bytes().starts_with(b"DLOCK_")) {
            command.env_remove(name);
        }
        command.env_remove(crate::logs::VARIABLE);
        command.envs(launch.environment.iter().cloned()).current_dir(&launch.directory).process_group(0);
        if let Some((user, group)) = launch.user {
            command.uid(user).gid(group);
        }
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = launch.there(|| command.spawn())?.map_err(failed)?;
        let pid = Pid::from_child(&child);
        let note = self.pids().join(child.id().to_string());
        let name = launch.name.clone();
        Ok(Process { name, child, pid, log, note, _stage: self.clone(), left: false })
    }
}

impl Process {
    /// Returns its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the path of its log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Stops it and its children by SIGSTOP. Its connections stay open and silent.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Continues it by SIGCONT.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Returns whether it is stopped by SIGSTOP, according to /proc.
    pub fn is_paused(&self) -> bool {
        let state = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // The name before it, in parentheses, may contain anything.
        state.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['T', 't']))
    }

    /// Kills it by SIGKILL and waits until it is gone.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        // On an error it was reaped before.
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.note);
    }

    /// Stops it by `signal`, even if it is paused, and waits until it is gone.
    pub(super) fn quit(&mut self, signal: Signal) {
        self.signal(signal);
        self.resume();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.note);
    }

    /// As [`Process::quit`], unless it is gone or was left.
    pub(super) fn end(&mut self, signal: Signal) {
        if !self.left && self.exited().is_none() {
            self.quit(signal);
        }
    }

    /// Waits until it exits by itself.
    pub(super) fn wait(&mut self) -> std::io::Result<ExitStatus> {
        let status = self.child.wait();
        let _ = fs::remove_file(&self.note);
        status
    }

    /// Returns its exit status, if it has exited.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Lets it live on after this value is dropped.
    pub fn leave(&mut self) {
        self.left = true;
    }

    /// Returns the error for its exit, with its last output.
    pub(super) fn died(&self, status: ExitStatus) -> ServerError {
        let (name, log) = (self.name.clone(), self.last_words());
        ServerError::Died { name, status: status.to_string(), log }
    }

    /// Returns the last lines of its log.
    pub fn last_words(&self) -> String {
        self.last_lines(LAST_WORDS)
    }

    /// Returns the last `count` lines of its log that are not blank.
    pub(super) fn last_lines(&self, count: usize) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }

    fn signal(&self, signal: Signal) {
        // It fails only if the process has exited; the next check reports that.
        let _ = kill_process_group(self.pid, signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.left && self.exited().is_none() {
            self.kill();
        }
    }
}

fn signal_name(signal: Signal) -> &'static str {
    match signal {
        Signal::QUIT => "QUIT",
        Signal::INT => "INT",
        Signal::TERM => "TERM",
        _ => "KILL",
    }
}
