//! Folders, and the temporary files in them.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

use crate::error::Error;

/// The prefix of temporary files. They have no extension, so that no reader of a folder takes one for
/// content.
const PREFIX: &str = ".new-";

/// Creates a folder, and those in which it is.
///
/// # Errors
///
/// [`Error::Write`] if it can't be created.
pub fn create_folder(folder: &Path) -> Result<(), Error> {
    let created = match fs::create_dir_all(folder) {
        // A file is in its place.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(ErrorKind::NotADirectory.into()),
        created => created,
    };
    created.map_err(Error::at(folder))
}

/// Creates a temporary file in the folder, with the permissions of any other file.
pub(crate) fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}
