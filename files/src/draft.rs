//! Content on its way into a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, PersistError};

use crate::destination::{Destination, folder_of};
use crate::error::Error;
use crate::folder::{create_folder, sync, temporary};

/// Content that is written in pieces, and becomes a file only when it is whole. A draft that is dropped
/// leaves nothing.
#[derive(Debug)]
pub struct Draft {
    /// The path as it was given, for errors.
    path: PathBuf,
    to: Target,
}

#[derive(Debug)]
enum Target {
    File { target: PathBuf, content: BufWriter<NamedTempFile> },
    Stream(File),
}

impl Draft {
    /// Begins the file at `path`, in a folder that exists.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] if it can't be written there.
    pub fn begin(path: &Path) -> Result<Self, Error> {
        Self::open(path).map_err(Error::at(path))
    }

    fn open(path: &Path) -> io::Result<Self> {
        let to = match Destination::of(path)? {
            Destination::Stream(path) => Target::Stream(OpenOptions::new().write(true).open(path)?),
            Destination::File(target, there) => {
                let content = temporary(folder_of(&target))?;
                if let Some(there) = there {
                    // A file that may not be written is not replaced either.
                    OpenOptions::new().write(true).open(&target)?;
                    content.as_file().set_permissions(there.permissions())?;
                }
                Target::File { target, content: BufWriter::new(content) }
            }
        };
        Ok(Self { path: path.to_owned(), to })
    }

    /// Puts the file in its place, and replaces what was there.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] if it can't be written; the old file is as it was then.
    pub fn commit(self) -> Result<(), Error> {
        let placed = match self.to {
            Target::Stream(mut stream) => stream.flush(),
            Target::File { target, content } => synced(content)
                .and_then(|content| content.persist(&target).map_err(|error| error.error))
                .and_then(|_| sync(folder_of(&target))),
        };
        placed.map_err(Error::at(&self.path))
    }

    /// Puts the file at `path`, unless a file is there: returns the draft then. `path` is in the folder in
    /// which the draft was begun.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] if it can't be written.
    pub fn commit_new(self, path: &Path) -> Result<Option<Self>, Error> {
        let Target::File { target, content } = self.to else {
            return Err(Error::at(&self.path)(ErrorKind::AlreadyExists.into()));
        };
        let content = synced(content).map_err(Error::at(path))?;
        match content.persist_noclobber(path) {
            Ok(_) => sync(folder_of(path)).map(|()| None).map_err(Error::at(path)),
            Err(PersistError { error, file }) if error.kind() == ErrorKind::AlreadyExists => {
                let to = Target::File { target, content: BufWriter::new(file) };
                Ok(Some(Self { path: self.path, to }))
            }
            Err(PersistError { error, .. }) => Err(Error::at(path)(error)),
        }
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            Target::File { content, .. } => content.write(bytes),
            Target::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            Target::File { content, .. } => content.flush(),
            Target::Stream(stream) => stream.flush(),
        }
    }
}

/// Writes a file whole or not at all, in a folder that exists. Replaces the file that is there.
///
/// # Errors
///
/// [`Error::Write`] if it can't be written; the old file is as it was then.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Error> {
    drafted(path, content.as_ref())?.commit()
}

/// Writes a file whole or not at all, unless one is there. Returns whether it has written it. Of several
/// programs that write the same file, one does.
///
/// # Errors
///
/// [`Error::Write`] if it can't be written.
pub fn write_new(path: &Path, content: impl AsRef<[u8]>) -> Result<bool, Error> {
    // Also a symbolic link that leads nowhere.
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    Ok(drafted(path, content.as_ref())?.commit_new(path)?.is_none())
}

/// Writes content to the first of `NAME.EXTENSION`, `NAME-2.EXTENSION` and so on that is free, or that has
/// this content already, and returns its path. The folder is created if need be. No other file is replaced.
///
/// # Errors
///
/// [`Error::Write`] if it can't be written.
pub fn keep(folder: &Path, name: &str, extension: &str, content: impl AsRef<[u8]>) -> Result<PathBuf, Error> {
    create_folder(folder)?;
    let content = content.as_ref();
    let mut number = 1;
    loop {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let path = folder.join(format!("{name}{suffix}.{extension}"));
        if write_new(&path, content)? || fs::read(&path).is_ok_and(|there| there == content) {
            return Ok(path);
        }
        number += 1;
    }
}

fn drafted(path: &Path, content: &[u8]) -> Result<Draft, Error> {
    let mut draft = Draft::begin(path)?;
    draft.write_all(content).map_err(Error::at(path))?;
    Ok(draft)
}

/// Writes what is buffered, and waits until all is on the disk.
fn synced(content: BufWriter<NamedTempFile>) -> io::Result<NamedTempFile> {
    let content = content.into_inner().map_err(io::IntoInnerError::into_error)?;
    content.as_file().sync_all()?;
    Ok(content)
}
