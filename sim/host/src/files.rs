//! The files on the disk of a simulated process's machine.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The file system of a process's machine, as one life of the process sees it. It outlives a crash; a power
/// loss takes changes that were not synced.
///
/// Every call ends at once, and fails with the error of Linux for the same call. A relative path begins at
/// the root. Permissions are kept, and refuse nothing, as for root.
pub trait Files: Send + Sync {
    /// Opens a file, or a folder in order to sync it.
    fn open(&self, path: &Path, how: Opening) -> io::Result<Arc<dyn OpenFile>>;

    /// Describes what is at `path`; of a symbolic link, its target if `follow` is true.
    fn metadata(&self, path: &Path, follow: bool) -> io::Result<FileMetadata>;

    /// Sets the permission bits of a file or folder.
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()>;

    /// Creates a folder in one that exists.
    fn create_folder(&self, path: &Path, mode: u32) -> io::Result<()>;

    /// Returns the entries of a folder, in an arbitrary order.
    fn entries(&self, path: &Path) -> io::Result<Vec<FolderEntry>>;

    /// Removes the name of a file. Its data stays while it has another name or is open.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty folder.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;

    /// Renames a file or folder, in one step. A file, or an empty folder, at `to` is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives the file at `original` another name.
    fn hard_link(&self, original: &Path, link: &Path) -> io::Result<()>;

    /// Creates a symbolic link to `original`, which need not exist.
    fn symlink(&self, original: &Path, link: &Path) -> io::Result<()>;

    /// Returns the target of a symbolic link.
    fn read_link(&self, path: &Path) -> io::Result<PathBuf>;

    /// Returns the path from the root, without links.
    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf>;
}

/// An open file. Dropping it closes it; nothing is synced by that.
pub trait OpenFile: Send + Sync {
    /// Reads from `offset` on; 0 bytes at the end.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize>;

    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Writes all of `bytes` at the end. Returns the length of the file.
    fn append(&self, bytes: &[u8]) -> io::Result<u64>;

    /// Shortens the file, or extends it with zeros.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Makes the data durable, and the name under which the file was created; with `names`, also later
    /// changes of its names, and the names in a folder.
    fn sync(&self, names: bool) -> io::Result<()>;

    /// Describes the file.
    fn metadata(&self) -> io::Result<FileMetadata>;

    /// Sets the permission bits.
    fn set_mode(&self, mode: u32) -> io::Result<()>;

    /// Sets the given times, since the Unix epoch.
    fn set_times(&self, accessed: Option<Duration>, modified: Option<Duration>) -> io::Result<()>;
}

/// The options under which a file is opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The file can be read.
    pub read: bool,
    /// The file can be written.
    pub write: bool,
    /// An existing file is emptied.
    pub truncate: bool,
    /// The file is created if it does not exist.
    pub create: bool,
    /// The file must not exist, and is created.
    pub create_new: bool,
    /// The permission bits of a file that is created.
    pub mode: u32,
}

/// The kind of an entry in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
}

/// A file, folder or link as its machine describes it. Times are those of the machine's wall clock, since the
/// Unix epoch.
#[derive(Clone, Copy, Debug)]
pub struct FileMetadata {
    /// The kind.
    pub kind: FileKind,
    /// The number of the inode, which no other has on this machine.
    pub inode: u64,
    /// The length in bytes.
    pub length: u64,
    /// The permission bits, without those of the kind.
    pub mode: u32,
    /// The number of names.
    pub links: u64,
    /// The time of the last reading that was set.
    pub accessed: Duration,
    /// The time of the last change of its data.
    pub modified: Duration,
    /// The time of its creation.
    pub created: Duration,
}

/// An entry of a folder.
#[derive(Clone, Debug)]
pub struct FolderEntry {
    /// Its name in the folder.
    pub name: OsString,
    /// The number of its inode.
    pub inode: u64,
    /// Its kind.
    pub kind: FileKind,
}
