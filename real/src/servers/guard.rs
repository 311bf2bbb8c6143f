//! The stage: a temporary directory, and a guard that removes it with its processes.
//!
//! The guard is a shell that reads from a pipe whose other end only this process holds. However this process
//! ends (a return, a panic, Ctrl-C, SIGKILL), the pipe closes; the guard then kills the processes of the
//! directory and removes it. There is no other cleanup, so the cleanup after a crash is exercised in every
//! run.
//!
//! A process of the stage writes its pid to a file before it executes the server, so that the guard knows of
//! it whenever it runs.

use std::fs::{self, DirBuilder, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use super::error::ServerError;

/// `$1` is the directory. A line `leave` on standard input lets the processes live on.
const GUARD: &str = include_str!("guard.sh");
/// The prefix of the directories: no directory without it is ever removed.
const PREFIX: &str = "dlock-real-";

/// A temporary directory and its processes. They live as long as a clone of this value.
#[derive(Clone, Debug)]
pub struct Stage(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    directory: PathBuf,
    guard: Mutex<Option<(Child, ChildStdin)>>,
}

impl Stage {
    /// Creates a stage in the directory for temporary files (`TMPDIR`).
    ///
    /// # Errors
    ///
    /// [`ServerError`] if the directory can't be created or the shell can't be started.
    pub fn new() -> Result<Self, ServerError> {
        let parent = std::env::temp_dir();
        let directory =
            make_directory(&parent).map_err(|source| ServerError::Directory { path: parent, source })?;
        let guard = start_guard(&directory);
        let guard = guard.map_err(|source| ServerError::Spawn { program: "sh".to_owned(), source })?;
        Ok(Self(Arc::new(Inner { directory, guard: Mutex::new(Some(guard)) })))
    }

    /// Returns its path.
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// Lets the processes live on after this value is dropped; [`end_left_stage`] stops them. Processes held
    /// as values must also be left: [`super::Process::leave`].
    pub fn leave(&self) {
        if let Some((mut guard, mut words)) =
            self.0.guard.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            // If the guard is gone, the message is not needed.
            let _ = words.write_all(b"leave\n");
            drop(words);
            let _ = guard.wait();
        }
    }

    pub(super) fn pids(&self) -> PathBuf {
        self.0.directory.join("pids")
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let guard = self.guard.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((mut guard, words)) = guard {
            drop(words);
            let _ = guard.wait();
        }
    }
}

/// Stops the processes of a stage that was left, and removes its directory.
///
/// # Errors
///
/// [`ServerError`] if `directory` is no stage, or the shell can't be started.
pub fn end_left_stage(directory: &Path) -> Result<(), ServerError> {
    let failed = |source| ServerError::Directory { path: directory.to_owned(), source };
    let directory = directory.canonicalize().map_err(failed)?;
    let named = directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    if !named || !directory.join("pids").is_dir() {
        let problem = std::io::Error::other("this is no directory that `real up` made");
        return Err(ServerError::Directory { path: directory, source: problem });
    }
    let guard = start_guard(&directory);
    let (mut guard, words) =
        guard.map_err(|source| ServerError::Spawn { program: "sh".to_owned(), source })?;
    drop(words);
    guard.wait().map_err(failed)?;
    Ok(())
}

fn make_directory(parent: &Path) -> std::io::Result<PathBuf> {
    let directory = parent.join(format!("{PREFIX}{}-{:016x}", std::process::id(), rand::random::<u64>()));
    DirBuilder::new().mode(0o755).create(&directory)?;
    // PostgreSQL runs as another user if this process is root, and writes its pid here like the others.
    let pids = directory.join("pids");
    fs::create_dir(&pids)?;
    fs::set_permissions(&pids, Permissions::from_mode(0o1777))?;
    directory.canonicalize()
}

fn start_guard(directory: &Path) -> std::io::Result<(Child, ChildStdin)> {
    let mut guard = Command::new("sh")
        .args(["-c", GUARD, "dlock-real-guard"])
        .arg(directory)
        // In a group of its own, so that the terminal's Ctrl-C does not reach it.
        .process_group(0)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    match guard.stdin.take() {
        Some(words) => Ok((guard, words)),
        None => Err(std::io::Error::other("the guard has no standard input")),
    }
}
