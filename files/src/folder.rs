//! Folders, and the temporary files in them.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::destination::folder_of;
use crate::error::Error;

/// The prefix of temporary files. They have no extension, so that no reader of a folder takes one for
/// content.
const PREFIX: &str = ".new-";

/// Creates a folder, and those in which it is, and waits until their names are on the disk.
///
/// # Errors
///
/// [`Error::Write`] if it can't be created.
pub fn create_folder(folder: &Path) -> Result<(), Error> {
    let missing: Vec<_> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    let created = match fs::create_dir_all(folder) {
        // A file is in its place.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(ErrorKind::NotADirectory.into()),
        created => created,
    };
    let sync_name = |folder: &&Path| match sync(folder_of(folder)) {
        // A folder that may be written, but not read.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    };
    created.and_then(|()| missing.iter().try_for_each(sync_name)).map_err(Error::at(folder))
}

/// Waits until the names of the files in a folder are on the disk, where its file system can do that.
///
/// # Errors
///
/// [`Error::Write`] if the disk fails.
pub fn sync_folder(folder: &Path) -> Result<(), Error> {
    sync(folder).map_err(Error::at(folder))
}

pub(crate) fn sync(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error) if !matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Err(error),
        _ => Ok(()),
    }
}

/// Renames a folder that is not empty to the first of `NAME.earlier`, `NAME-2.earlier` and so on that is
/// free, and returns its new path. Does nothing if there is no such folder, or nothing in it.
///
/// # Errors
///
/// [`Error::Write`] if it can't be read or renamed.
pub fn put_aside(folder: &Path) -> Result<Option<PathBuf>, Error> {
    let is_empty = match fs::read_dir(folder) {
        Ok(mut files) => files.next().is_none(),
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        Err(error) => return Err(Error::at(folder)(error)),
    };
    if is_empty {
        return Ok(None);
    }
    let mut number = 1;
    loop {
        let mut name = folder.as_os_str().to_owned();
        name.push(if number == 1 { ".earlier".into() } else { format!("-{number}.earlier") });
        let aside = PathBuf::from(name);
        // The rename itself refuses a folder with content that another program puts there in between.
        if aside.symlink_metadata().is_err() {
            match fs::rename(folder, &aside) {
                Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
                renamed => return renamed.map(|()| Some(aside)).map_err(Error::at(folder)),
            }
        }
        number += 1;
    }
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
