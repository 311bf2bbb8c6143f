//! The description of a file, with the methods of the standard library's types, which only a real file system
//! can make.

use std::io;
#[cfg(unix)]
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sim_host::{FileKind, FileMetadata};

/// The description of a file: `std::fs::Metadata`.
#[derive(Clone, Debug)]
pub struct Metadata(pub(super) FileMetadata);

/// The kind of a file: `std::fs::FileType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileType(pub(super) FileKind);

/// The permission bits of a file: `std::fs::Permissions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions(pub(super) u32);

/// The bits that allow to write.
const WRITE: u32 = 0o222;

impl Metadata {
    /// Returns the kind.
    pub fn file_type(&self) -> FileType {
        FileType(self.0.kind)
    }

    /// Returns true for a folder.
    pub fn is_dir(&self) -> bool {
        self.file_type().is_dir()
    }

    /// Returns true for a file.
    pub fn is_file(&self) -> bool {
        self.file_type().is_file()
    }

    /// Returns true for a symbolic link.
    pub fn is_symlink(&self) -> bool {
        self.file_type().is_symlink()
    }

    /// Returns the length in bytes.
    #[allow(clippy::len_without_is_empty, reason = "as in the standard library")]
    pub fn len(&self) -> u64 {
        self.0.length
    }

    /// Returns the permissions.
    pub fn permissions(&self) -> Permissions {
        Permissions(self.0.mode)
    }

    /// Returns the time of the last change of the data, on the wall clock of the machine.
    ///
    /// # Errors
    ///
    /// None.
    pub fn modified(&self) -> io::Result<SystemTime> {
        Ok(UNIX_EPOCH + self.0.modified)
    }

    /// Returns the time of the last reading: that of the creation, unless it was set. Reading does not move
    /// it, as on a file system that is mounted with `noatime`.
    ///
    /// # Errors
    ///
    /// None.
    pub fn accessed(&self) -> io::Result<SystemTime> {
        Ok(UNIX_EPOCH + self.0.accessed)
    }

    /// Returns the time of the creation, on the wall clock of the machine.
    ///
    /// # Errors
    ///
    /// None.
    pub fn created(&self) -> io::Result<SystemTime> {
        Ok(UNIX_EPOCH + self.0.created)
    }
}

impl FileType {
    /// Returns true for a folder.
    pub fn is_dir(&self) -> bool {
        self.0 == FileKind::Folder
    }

    /// Returns true for a file.
    pub fn is_file(&self) -> bool {
        self.0 == FileKind::File
    }

    /// Returns true for a symbolic link.
    pub fn is_symlink(&self) -> bool {
        self.0 == FileKind::Link
    }
}

impl Permissions {
    /// Returns true if nobody may write.
    pub fn readonly(&self) -> bool {
        self.0 & WRITE == 0
    }

    /// Lets nobody write, or everybody.
    pub fn set_readonly(&mut self, readonly: bool) {
        if readonly {
            self.0 &= !WRITE;
        } else {
            self.0 |= WRITE;
        }
    }
}

#[cfg(unix)]
impl From<std::fs::Permissions> for Permissions {
    fn from(permissions: std::fs::Permissions) -> Self {
        Self(permissions.mode() & 0o7777)
    }
}

#[cfg(unix)]
impl PermissionsExt for Permissions {
    fn mode(&self) -> u32 {
        self.0
    }

    fn set_mode(&mut self, mode: u32) {
        self.0 = mode;
    }

    fn from_mode(mode: u32) -> Self {
        Self(mode)
    }
}

#[cfg(unix)]
impl FileTypeExt for FileType {
    fn is_block_device(&self) -> bool {
        false
    }

    fn is_char_device(&self) -> bool {
        false
    }

    fn is_fifo(&self) -> bool {
        false
    }

    fn is_socket(&self) -> bool {
        false
    }
}

fn seconds(time: Duration) -> i64 {
    time.as_secs().try_into().unwrap_or(i64::MAX)
}

#[cfg(unix)]
impl MetadataExt for Metadata {
    fn dev(&self) -> u64 {
        1
    }

    fn ino(&self) -> u64 {
        self.0.inode
    }

    fn mode(&self) -> u32 {
        let kind = match self.0.kind {
            FileKind::File => 0o100_000,
            FileKind::Folder => 0o040_000,
            FileKind::Link => 0o120_000,
        };
        kind | self.0.mode
    }

    fn nlink(&self) -> u64 {
        self.0.links
    }

    fn uid(&self) -> u32 {
        0
    }

    fn gid(&self) -> u32 {
        0
    }

    fn rdev(&self) -> u64 {
        0
    }

    fn size(&self) -> u64 {
        self.0.length
    }

    fn atime(&self) -> i64 {
        seconds(self.0.accessed)
    }

    fn atime_nsec(&self) -> i64 {
        self.0.accessed.subsec_nanos().into()
    }

    fn mtime(&self) -> i64 {
        seconds(self.0.modified)
    }

    fn mtime_nsec(&self) -> i64 {
        self.0.modified.subsec_nanos().into()
    }

    fn ctime(&self) -> i64 {
        self.mtime()
    }

    fn ctime_nsec(&self) -> i64 {
        self.mtime_nsec()
    }

    fn blksize(&self) -> u64 {
        4096
    }

    fn blocks(&self) -> u64 {
        self.0.length.div_ceil(512)
    }
}
