//! The stage: a temporary directory, and a guard that leaves nothing of it behind.
//!
//! The guard is a shell that reads from a pipe whose other end only we hold. However we end (a return, a panic, Ctrl-C,
//! SIGKILL), the pipe closes; the guard then kills what runs in the directory, and removes it. There is no other way out,
//! so what happens after a crash is what happens every day.
//!
//! A process of the stage writes its pid to a file before it becomes the server, so that there is no moment in which it
//! runs and the guard does not know of it.

use std::fs::{self, DirBuilder, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use super::error::ServerError;

/// `$1`: the directory. A line `leave` on the standard input says that the processes are to live on.
const GUARD: &str = include_str!("guard.sh");
/// The names of directories that we made begin so: nothing else is ever removed.
const PREFIX: &str = "dlock-real-";

/// A temporary directory and the processes in it, for as long as a clone of this value lives.
#[derive(Clone, Debug)]
pub struct Stage(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    directory: PathBuf,
    guard: Mutex<Option<(Child, ChildStdin)>>,
}

impl Stage {
    /// A stage in the directory for temporary files (`TMPDIR`).
    ///
    /// # Errors
    ///
    /// [`ServerError`] if no directory can be made there, or no shell be started.
    pub fn new() -> Result<Self, ServerError> {
        let parent = std::env::temp_dir();
        let directory =
            make_directory(&parent).map_err(|source| ServerError::Directory { path: parent, source })?;
        let guard = start_guard(&directory);
        let guard = guard.map_err(|source| ServerError::Spawn { program: "sh".to_owned(), source })?;
        Ok(Self(Arc::new(Inner { directory, guard: Mutex::new(Some(guard)) })))
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// Lets the processes live on when this value is gone; [`end_left_stage`] ends them. Those that are values still
    /// must be left, too: [`super::Process::leave`].
    pub fn leave(&self) {
        if let Some((mut guard, mut words)) =
            self.0.guard.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            // A guard that is gone already can't be told, and need not be.
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

/// Ends what runs in the directory of a stage that was left, and removes it.
///
/// # Errors
///
/// [`ServerError`] if `directory` is no stage, or no shell can be started.
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
    // PostgreSQL runs as another user where we are root, and notes its pid here like the others.
    let pids = directory.join("pids");
    fs::create_dir(&pids)?;
    fs::set_permissions(&pids, Permissions::from_mode(0o1777))?;
    directory.canonicalize()
}

fn start_guard(directory: &Path) -> std::io::Result<(Child, ChildStdin)> {
    let mut guard = Command::new("sh")
        .args(["-c", GUARD, "dlock-real-guard"])
        .arg(directory)
        // Out of reach of the terminal's Ctrl-C, which is meant for us.
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
