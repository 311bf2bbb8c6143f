//! Trials before the work: whether its results can be written.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::destination::{Destination, folder_of, is_same};
use crate::error::Error;
use crate::folder::temporary;

/// Says which folders of an output must exist before the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parents {
    /// They must exist.
    Exist,
    /// The caller creates those that are missing, with [`create_folder`](crate::create_folder), when it
    /// writes.
    Created,
}

/// Checks before the work that the files `outputs` can be written, that none of them is one of `inputs`, and
/// that no two are the same. Leaves nothing behind.
///
/// # Errors
///
/// [`Error`] for the first output that can't be written.
pub fn try_outputs(outputs: &[&Path], inputs: &[&Path], parents: Parents) -> Result<(), Error> {
    for (number, output) in outputs.iter().enumerate() {
        let path = || (*output).to_owned();
        try_output(output, parents)?;
        if let Some(input) = inputs.iter().find(|input| is_same(output, input)) {
            return Err(Error::Input { path: path(), input: (*input).to_owned() });
        }
        let is_output = |other: &&&Path| is_same(output, other) && is_file(output);
        if let Some(other) = outputs[..number].iter().find(is_output) {
            return Err(Error::Twice { path: path(), other: (*other).to_owned() });
        }
    }
    Ok(())
}

fn try_output(output: &Path, parents: Parents) -> Result<(), Error> {
    let tried = || match Destination::of(output)? {
        // To open a pipe waits for its reader.
        Destination::Stream(path) if is_pipe(&path) => Ok(()),
        Destination::Stream(path) => OpenOptions::new().write(true).open(path).map(drop),
        Destination::File(target, there) => {
            if there.is_some() {
                OpenOptions::new().write(true).open(&target)?;
            }
            let folder = folder_of(&target);
            match parents {
                Parents::Exist => temporary(folder).map(drop),
                Parents::Created => probe(folder),
            }
        }
    };
    tried().map_err(Error::at(output))
}

/// Checks before the work that files can be written into a folder, which need not exist. Leaves nothing
/// behind.
///
/// # Errors
///
/// [`Error::Write`] if no file can be written there.
pub fn try_folder(folder: &Path) -> Result<(), Error> {
    probe(folder).map_err(Error::at(folder))
}

/// Creates a temporary file in the folder, or in the closest one above it that exists, and deletes it.
fn probe(folder: &Path) -> io::Result<()> {
    let mut folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    loop {
        match fs::metadata(folder) {
            Ok(there) if there.is_dir() => return temporary(folder).map(drop),
            Ok(_) => return Err(ErrorKind::NotADirectory.into()),
            Err(error) => {
                let above = folder_of(folder);
                // A symbolic link that leads nowhere can't become a folder.
                let is_missing = error.kind() == ErrorKind::NotFound && folder.symlink_metadata().is_err();
                if !is_missing || above == folder {
                    return Err(error);
                }
                folder = above;
            }
        }
    }
}

/// Returns false for a device, which may get several outputs.
fn is_file(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |there| there.is_file())
}

fn is_pipe(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        fs::metadata(path).is_ok_and(|there| there.file_type().is_fifo())
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}
