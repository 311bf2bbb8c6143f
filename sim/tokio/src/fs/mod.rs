//! `tokio::fs`: the files on the disk of the process's machine. They outlive a crash of the process; a power
//! loss takes what was not synced.
//!
//! As with tokio, each operation runs beside its caller, and goes on if the caller drops the future. Other
//! tasks run meanwhile, and a pause stops it. A function of several calls, such as [`write()`], takes them
//! one by one: a crash between them leaves what the first ones have done.
//!
//! [`Metadata`], [`FileType`] and [`Permissions`] are types of their own, with the methods of the standard
//! library's, which only a real file system can make. A function that takes permissions takes both.
//!
//! The machine has the folders `/etc`, `/home`, `/run`, `/tmp`, `/var/lib`, `/var/log` and `/var/tmp`, and no
//! file of the real machine. A relative path begins at the root. Permissions are kept and refuse nothing.
//!
//! Each function panics outside of a simulated process, as tokio's do outside of a runtime.

mod background;
mod cursor;
mod dir;
mod file;
mod file_state;
mod metadata;
mod names;
mod open_options;
mod times;
mod whole;

pub use self::dir::{DirBuilder, DirEntry, ReadDir, create_dir, create_dir_all, read_dir};
pub use self::file::File;
pub use self::metadata::{FileType, Metadata, Permissions};
#[cfg(unix)]
pub use self::names::symlink;
pub use self::names::{
    canonicalize, hard_link, metadata, read_link, remove_dir, remove_file, rename, set_permissions,
    symlink_metadata, try_exists,
};
pub use self::open_options::OpenOptions;
pub use self::times::FileTimes;
pub use self::whole::{copy, read, read_to_string, remove_dir_all, write};

/// Tells what to do in the place of a call that needs a real file.
const INSTEAD: &str = "open the file through tokio::fs, whose files are simulated";
