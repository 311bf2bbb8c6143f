//! Folders with generated content.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The files of a folder, by their paths in it.
pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Makes `folder` contain `files` and nothing else. A file that has its content already is not written, so
/// that cargo has nothing to rebuild.
pub(crate) fn write_folder(folder: &Path, files: &Files) -> Result<(), Error> {
    for (name, content) in files {
        write_changed(&folder.join(name), content)?;
    }
    for name in names(folder)? {
        if !files.contains_key(&name) {
            let path = folder.join(name);
            fs::remove_file(&path).map_err(Error::at("can't remove", &path))?;
        }
    }
    Ok(())
}

/// Writes a file, unless it has this content.
pub(crate) fn write_changed(path: &Path, content: &[u8]) -> Result<(), Error> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(Error::at("can't create", parent))?;
    }
    fs::write(path, content).map_err(Error::at("can't write", path))
}

/// Reads all files of `folder` whose path in it `is_wanted` accepts; it is asked for folders, too.
pub(crate) fn read_folder(folder: &Path, is_wanted: impl Fn(&Path) -> bool) -> Result<Files, Error> {
    let mut files = Files::new();
    visit(folder, Path::new(""), &is_wanted, &mut |name| {
        let path = folder.join(&name);
        let content = fs::read(&path).map_err(Error::at("can't read", &path))?;
        files.insert(name, content);
        Ok(())
    })?;
    Ok(files)
}

fn names(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut names = Vec::new();
    visit(folder, Path::new(""), &|_| true, &mut |name| {
        names.push(name);
        Ok(())
    })?;
    Ok(names)
}

fn visit(
    folder: &Path,
    inside: &Path,
    is_wanted: &dyn Fn(&Path) -> bool,
    found: &mut dyn FnMut(PathBuf) -> Result<(), Error>,
) -> Result<(), Error> {
    let path = folder.join(inside);
    let entries = match fs::read_dir(&path) {
        Ok(entries) => entries,
        // A tokio without files makes cargo fail, and a folder to be written does not exist at first.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::at("can't read", &path)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(Error::at("can't read", &path))?;
        let name = inside.join(entry.file_name());
        if !is_wanted(&name) {
            continue;
        }
        // Follows symbolic links, which a git checkout may contain.
        if entry.path().is_dir() {
            visit(folder, &name, is_wanted, found)?;
        } else {
            found(name)?;
        }
    }
    Ok(())
}
