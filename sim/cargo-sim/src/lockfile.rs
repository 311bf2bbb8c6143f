//! The exchange of Cargo.lock.
//!
//! Cargo has no stable option to use another lock file, and rewrites the workspace's own when tokio is
//! replaced. So the user's file is saved first, and restored when cargo is done. A saved file that is still
//! there when a call begins was left by a call that was killed: it is restored then. The saved file is in the
//! target folder: a call with another one can't restore it, and refuses the file that was left.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::real::REAL_TOKIO;

/// The lock file of a workspace, with the files in which it is kept.
pub(crate) struct LockFile {
    /// The user's file, in the root of the workspace.
    path: PathBuf,
    /// The user's file as it was before the exchange.
    saved: PathBuf,
    /// The lock file with the replaced tokio, of the last call.
    replaced: PathBuf,
    /// The user's file from which cargo made `replaced`.
    origin: PathBuf,
}

impl LockFile {
    /// Returns the lock file of the workspace `root`, kept in `folder`.
    pub(crate) fn new(root: &Path, folder: &Path) -> Self {
        Self {
            path: root.join("Cargo.lock"),
            saved: folder.join("Cargo.lock.saved"),
            replaced: folder.join("Cargo.lock"),
            origin: folder.join("Cargo.lock.origin"),
        }
    }

    /// Restores the file that an earlier call has saved, and says so. A file that somebody else has changed
    /// since is not overwritten.
    ///
    /// # Errors
    ///
    /// A file with the replaced tokio, although this target folder has no saved one.
    pub(crate) fn recover(&self) -> Result<(), Error> {
        let current = read(&self.path)?.unwrap_or_default();
        let Some(saved) = read(&self.saved)? else { return self.refuse_replaced(&current) };
        if current == saved {
            return remove(&self.saved);
        }
        if self.is_ours(&current, &saved) {
            copy(&self.saved, &self.path)?;
            remove(&self.saved)?;
            eprintln!(
                "cargo sim: restored {}, which an interrupted call had left changed",
                self.path.display()
            );
            return Ok(());
        }
        let kept = self.saved.with_extension("before");
        fs::rename(&self.saved, &kept).map_err(Error::at("can't rename", &self.saved))?;
        eprintln!(
            "cargo sim: {} has changed since a call was interrupted, and is used as it is; as it was before \
             that call, it is in {}",
            self.path.display(),
            kept.display()
        );
        Ok(())
    }

    /// Refuses a Cargo.lock with the replaced tokio, which is not the user's. A call with another target
    /// folder has left it, or still uses it. One with this folder has not: it would have saved the user's
    /// file here, and while it runs, this call waits for its turn.
    fn refuse_replaced(&self, current: &[u8]) -> Result<(), Error> {
        if !has_replaced_tokio(current) {
            return Ok(());
        }
        let workspace = self.saved.parent().and_then(Path::file_name).unwrap_or_default();
        Err(Error::Message(format!(
            "{} is the lock file of another `cargo sim`: it names the package {REAL_TOKIO}. That call was \
             killed before it restored yours, or still runs with another target folder. If it runs, wait for \
             its end. If it was killed, copy yours back: from the target folder of that call \
             (TARGET/sim/workspaces/{}/Cargo.lock.saved), or, after a `cargo clean`, from version control \
             (`git checkout Cargo.lock`). If yours is in neither, remove the file: cargo makes a new one",
            self.path.display(),
            workspace.display()
        )))
    }

    /// Returns true if `current` was left by an interrupted call: it names the replaced tokio, or is only the
    /// start of a file that was being written.
    fn is_ours(&self, current: &[u8], saved: &[u8]) -> bool {
        let replaced = fs::read(&self.replaced).unwrap_or_default();
        let is_whole = std::str::from_utf8(current).is_ok_and(|text| text.parse::<toml::Table>().is_ok());
        has_replaced_tokio(current)
            || !is_whole
            || saved.starts_with(current)
            || replaced.starts_with(current)
    }

    /// Saves the user's file, and puts that of the last call in its place if it was made from the same one.
    pub(crate) fn exchange(&self) -> Result<Exchanged<'_>, Error> {
        let Some(user) = read(&self.path)? else {
            return Err(Error::Message(format!(
                "{} does not exist, although cargo has just resolved the dependencies; run `cargo \
                 generate-lockfile`",
                self.path.display()
            )));
        };
        // A call with another target folder may have exchanged it since `recover`.
        self.refuse_replaced(&user)?;
        files::write(&self.saved, &user)?;
        copy_time(&self.path, &self.saved)?;
        let is_known = read(&self.origin)?.is_some_and(|origin| origin == user) && self.replaced.exists();
        let exchanged = Exchanged { lock_file: self, user, is_known, is_restored: false };
        if is_known {
            copy(&self.replaced, &self.path)?;
        }
        Ok(exchanged)
    }
}

/// A Cargo.lock that is restored when this is dropped.
pub(crate) struct Exchanged<'a> {
    lock_file: &'a LockFile,
    /// The content of the user's file.
    user: Vec<u8>,
    is_known: bool,
    is_restored: bool,
}

impl Exchanged<'_> {
    /// Returns true if Cargo.lock is already that with the replaced tokio, of an earlier call.
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Keeps the lock file with the replaced tokio for the next call, and restores the user's.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        let kept = self.keep();
        self.restore()?;
        kept
    }

    fn keep(&self) -> Result<(), Error> {
        let LockFile { path, replaced, origin, .. } = self.lock_file;
        let current = read(path)?.unwrap_or_default();
        if !has_replaced_tokio(&current) || (self.is_known && read(replaced)?.as_ref() == Some(&current)) {
            return Ok(());
        }
        // Never an origin beside a lock file that was made from another one.
        remove(origin)?;
        files::write(replaced, &current)?;
        copy_time(path, replaced)?;
        Ok(files::write(origin, &self.user)?)
    }

    fn restore(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.is_restored, true) {
            return Ok(());
        }
        let LockFile { path, saved, .. } = self.lock_file;
        copy(saved, path)?;
        remove(saved)
    }
}

impl Drop for Exchanged<'_> {
    fn drop(&mut self) {
        if let Err(Error::Message(message)) = self.restore() {
            eprintln!("error: {message}");
        }
    }
}

fn has_replaced_tokio(lock_file: &[u8]) -> bool {
    let name = format!("name = \"{REAL_TOKIO}\"");
    lock_file.windows(name.len()).any(|part| part == name.as_bytes())
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::at("can't read", path)(error)),
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::at("can't remove", path)(error)),
        _ => Ok(()),
    }
}

/// Copies content and time. Writes to the file that is there, so that a link stays a link, and no other file
/// appears in the user's folder.
fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let content = fs::read(from).map_err(Error::at("can't read", from))?;
    let mut file = File::create(to).map_err(Error::at("can't write", to))?;
    file.write_all(&content).and_then(|()| file.sync_all()).map_err(Error::at("can't write", to))?;
    copy_time(from, to)
}

/// Copies the time of the last change, so that build scripts which watch Cargo.lock do not run again.
fn copy_time(from: &Path, to: &Path) -> Result<(), Error> {
    let time = fs::metadata(from).and_then(|file| file.modified()).map_err(Error::at("can't read", from))?;
    let file = File::options().write(true).open(to).map_err(Error::at("can't write", to))?;
    file.set_modified(time).map_err(Error::at("can't set the time of", to))
}

#[cfg(test)]
mod tests;
