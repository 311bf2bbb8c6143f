//! The functions of one call on a path.

use std::io;
use std::path::{Path, PathBuf};

use super::background::call;
use super::metadata::{Metadata, Permissions};

/// Returns the path from the root, without links.
///
/// # Errors
///
/// If there is nothing at `path`.
pub async fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref().to_owned();
    call(move |files| files.canonicalize(&path)).await
}

/// Gives the file at `original` another name.
///
/// # Errors
///
/// If `link` exists, or `original` is no file.
pub async fn hard_link(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let (original, link) = (original.as_ref().to_owned(), link.as_ref().to_owned());
    call(move |files| files.hard_link(&original, &link)).await
}

/// Describes the file or folder to which `path` leads.
///
/// # Errors
///
/// If there is nothing.
pub async fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref().to_owned();
    call(move |files| files.metadata(&path, true).map(Metadata)).await
}

/// Describes what is at `path`, which may be a symbolic link.
///
/// # Errors
///
/// If there is nothing.
pub async fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref().to_owned();
    call(move |files| files.metadata(&path, false).map(Metadata)).await
}

/// Returns the target of a symbolic link.
///
/// # Errors
///
/// If there is none at `path`.
pub async fn read_link(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref().to_owned();
    call(move |files| files.read_link(&path)).await
}

/// Removes an empty folder.
///
/// # Errors
///
/// If it is none.
pub async fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    call(move |files| files.remove_folder(&path)).await
}

/// Removes the name of a file.
///
/// # Errors
///
/// If there is no file at `path`.
pub async fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    call(move |files| files.remove_file(&path)).await
}

/// Renames a file or folder, and replaces a file at `to`. The new name is durable once the file or the folder
/// is synced.
///
/// # Errors
///
/// If there is nothing at `from`, or `to` can't be replaced.
pub async fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
    call(move |files| files.rename(&from, &to)).await
}

/// Sets the permissions of a file or folder.
///
/// # Errors
///
/// If there is nothing at `path`.
pub async fn set_permissions(path: impl AsRef<Path>, perm: impl Into<Permissions>) -> io::Result<()> {
    let (path, mode) = (path.as_ref().to_owned(), perm.into().0);
    call(move |files| files.set_mode(&path, mode)).await
}

/// Creates a symbolic link to `original`.
///
/// # Errors
///
/// If `link` exists.
#[cfg(unix)]
pub async fn symlink(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let (original, link) = (original.as_ref().to_owned(), link.as_ref().to_owned());
    call(move |files| files.symlink(&original, &link)).await
}

/// Returns true if `path` leads to a file or folder.
///
/// # Errors
///
/// If the path can't be followed.
pub async fn try_exists(path: impl AsRef<Path>) -> io::Result<bool> {
    match metadata(path).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
