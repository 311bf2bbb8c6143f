//! Folders: their creation and their entries.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::future::{Future as _, poll_fn};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use sim_host::FolderEntry;

use super::background::{Machine, Work, call, run, start};
use super::metadata::{FileType, Metadata};
use super::open_options::masked;

/// The options under which a folder is created.
#[derive(Debug, Default)]
pub struct DirBuilder {
    recursive: bool,
    mode: Option<u32>,
}

/// The number of entries that one call of the operating system returns, as in tokio.
const CHUNK: usize = 32;

/// The entries of a folder, as they were when it was read. Their order is arbitrary, as on ext4.
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct ReadDir {
    entries: VecDeque<DirEntry>,
    /// The number of entries until the next call of the operating system.
    left: usize,
    busy: Option<Work<io::Result<()>>>,
}

/// An entry of a folder.
#[derive(Debug)]
pub struct DirEntry {
    folder: PathBuf,
    entry: FolderEntry,
}

/// Creates a folder in one that exists.
///
/// # Errors
///
/// If there is something at `path`.
pub async fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    DirBuilder::new().create(path).await
}

/// Creates a folder, and those above it that are missing, one after the other.
///
/// # Errors
///
/// If there is something else at `path` or above it.
pub async fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(path).await
}

/// Returns the entries of a folder.
///
/// # Errors
///
/// If there is no folder at `path`.
pub async fn read_dir(path: impl AsRef<Path>) -> io::Result<ReadDir> {
    let folder = path.as_ref().to_owned();
    let read = move |machine: Machine| async move {
        let entries = machine.call(|files| files.entries(&folder)).await?;
        Ok(entries.into_iter().map(|entry| DirEntry { folder: folder.clone(), entry }).collect())
    };
    Ok(ReadDir { entries: run(read).await?, left: CHUNK, busy: None })
}

impl DirBuilder {
    /// Returns the options of a folder in one that exists.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates missing folders above, too, and accepts one that exists.
    pub fn recursive(&mut self, recursive: bool) -> &mut Self {
        self.recursive = recursive;
        self
    }

    /// Sets the permission bits, but for the bits 022.
    #[cfg(unix)]
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.mode = Some(mode);
        self
    }

    /// Creates the folder.
    ///
    /// # Errors
    ///
    /// If there is something at `path`.
    pub async fn create(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let (path, mode) = (path.as_ref().to_owned(), masked(self.mode.unwrap_or(0o777)));
        if self.recursive {
            run(|machine| async move { create_all(&machine, &path, mode).await }).await
        } else {
            call(move |files| files.create_folder(&path, mode)).await
        }
    }
}

/// Creates the folders of `path` that are missing.
async fn create_all(machine: &Machine, path: &Path, mode: u32) -> io::Result<()> {
    let mut missing = Vec::new();
    for ancestor in path.ancestors().filter(|ancestor| !ancestor.as_os_str().is_empty()) {
        match machine.call(|files| files.metadata(ancestor, true)).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(ancestor),
            Err(error) => return Err(error),
            Ok(found) if FileType(found.kind).is_dir() => break,
            Ok(_) if missing.is_empty() => return Err(io::ErrorKind::AlreadyExists.into()),
            Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
        }
    }
    for folder in missing.into_iter().rev() {
        let created = machine.call(|files| files.create_folder(folder, mode)).await;
        // Another task may have created it.
        if let Err(error) = created
            && !machine
                .call(|files| files.metadata(folder, true))
                .await
                .is_ok_and(|found| FileType(found.kind).is_dir())
        {
            return Err(error);
        }
    }
    Ok(())
}

impl ReadDir {
    /// Returns the next entry; `None` at the end.
    ///
    /// # Errors
    ///
    /// If the process is dead.
    pub async fn next_entry(&mut self) -> io::Result<Option<DirEntry>> {
        poll_fn(|cx| self.poll_next_entry(cx)).await
    }

    /// Returns the next entry; `None` at the end.
    ///
    /// # Errors
    ///
    /// As [`ReadDir::next_entry`].
    pub fn poll_next_entry(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<DirEntry>>> {
        if self.left == 0 && self.busy.is_none() {
            self.busy = Some(start(|machine| async move { machine.call(|_| Ok(())).await }));
        }
        if let Some(work) = &mut self.busy {
            let ended = ready!(Pin::new(work).poll(cx));
            self.busy = None;
            ended??;
            self.left = CHUNK;
        }
        self.left -= 1;
        Poll::Ready(Ok(self.entries.pop_front()))
    }
}

impl DirEntry {
    /// Returns the path: that of the folder, and the name in it.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.entry.name)
    }

    /// Returns the name in the folder.
    pub fn file_name(&self) -> OsString {
        self.entry.name.clone()
    }

    /// Describes the entry. Follows no symbolic link.
    ///
    /// # Errors
    ///
    /// If it is gone.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        super::symlink_metadata(self.path()).await
    }

    /// Returns its kind.
    ///
    /// # Errors
    ///
    /// None.
    pub async fn file_type(&self) -> io::Result<FileType> {
        Ok(FileType(self.entry.kind))
    }

    /// Returns the number of its inode.
    #[cfg(unix)]
    pub fn ino(&self) -> u64 {
        self.entry.inode
    }
}
