//! The file that a path names, through symbolic links.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// The most symbolic links that are followed, as on Linux.
const LINKS_MAX: usize = 40;

/// The places that have the open files of processes.
const OPEN_FILES: [&str; 5] = ["/proc", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"];

/// Where the content of an output goes.
#[derive(Debug)]
pub(crate) enum Destination {
    /// A file that is replaced by a rename: its path without symbolic links, and what is there now.
    File(PathBuf, Option<Metadata>),
    /// A device, a pipe or an open file of a process, into which content is written.
    Stream(PathBuf),
}

impl Destination {
    /// Finds the destination that a path names.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let there = match fs::metadata(path) {
            Ok(there) => Some(there),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if there.as_ref().is_some_and(Metadata::is_dir) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        // The open files of a process look like symbolic links to files. /dev/shm has files of its own.
        let is_open = OPEN_FILES.iter().any(|place| path.starts_with(place));
        if there.as_ref().is_some_and(|there| is_open || !there.is_file()) {
            return Ok(Self::Stream(path.to_owned()));
        }
        Ok(Self::File(resolve(path)?, there))
    }
}

/// Returns the folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Follows the symbolic links of a path whose file need not exist.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(target) => path = folder_of(&path).join(target),
            // It is no link, or nothing is there.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Returns whether two paths name one file: by the same path, by symbolic links or by hard links.
pub fn is_same(one: &Path, other: &Path) -> bool {
    match (identity(one), identity(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// Tells a file from all others.
#[derive(PartialEq, Eq)]
enum Identity {
    /// Device and inode of a file that exists.
    #[cfg(unix)]
    Inode(u64, u64),
    /// The path, without symbolic links.
    Path(PathBuf),
}

fn identity(path: &Path) -> Option<Identity> {
    #[cfg(unix)]
    if let Ok(there) = fs::metadata(path) {
        use std::os::unix::fs::MetadataExt;
        return Some(Identity::Inode(there.dev(), there.ino()));
    }
    let path = resolve(path).ok()?;
    let folder = fs::canonicalize(folder_of(&path)).ok()?;
    Some(Identity::Path(folder.join(path.file_name()?)))
}
