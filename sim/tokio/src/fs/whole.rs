//! The functions of several calls: on whole files, and on a folder with all that is in it.

use std::io;
use std::path::{Path, PathBuf};

use sim_host::{FileKind, Opening};

use super::background::{Machine, run};
use super::open_options::OpenOptions;

/// Reads a file to its end.
///
/// # Errors
///
/// If there is no file at `path`.
pub async fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let path = path.as_ref().to_owned();
    run(|machine| async move { read_on(&machine, &path).await }).await
}

/// Reads a file to its end, as text.
///
/// # Errors
///
/// If there is no file at `path`, or it is not UTF-8.
pub async fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = read(path).await?;
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

/// Writes a file, which it creates or empties first. Syncs nothing.
///
/// # Errors
///
/// If `path` is no place for a file.
pub async fn write(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let (path, contents) = (path.as_ref().to_owned(), contents.as_ref().to_owned());
    run(|machine| async move { write_on(&machine, &path, emptied()?, contents).await }).await
}

/// Copies a file with its permissions. Returns its length.
///
/// # Errors
///
/// If `from` is no file, or `to` no place for one.
pub async fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<u64, io::Error> {
    let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
    run(|machine| async move {
        let source = machine.call(|files| files.metadata(&from, true)).await?;
        if source.kind != FileKind::File {
            let problem = "the source path is neither a regular file nor a symlink to a regular file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let contents = read_on(&machine, &from).await?;
        let length = contents.len() as u64;
        let how = Opening { mode: source.mode, ..emptied()? };
        write_on(&machine, &to, how, contents).await?;
        machine.call(|files| files.set_mode(&to, source.mode)).await?;
        Ok(length)
    })
    .await
}

/// Removes a folder with all that is in it, one name after the other. Follows no symbolic link.
///
/// # Errors
///
/// If there is no folder at `path`.
pub async fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    run(|machine| async move { remove_on(&machine, path).await }).await
}

/// Returns the options of a file that is created or emptied.
fn emptied() -> io::Result<Opening> {
    OpenOptions::new().write(true).create(true).truncate(true).opening()
}

async fn read_on(machine: &Machine, path: &Path) -> io::Result<Vec<u8>> {
    let how = OpenOptions::new().read(true).opening()?;
    let file = machine.call(|files| files.open(path, how)).await?;
    machine
        .call(|_| {
            let mut bytes = vec![0; file.metadata()?.length as usize];
            let length = file.read_at(0, &mut bytes)?;
            bytes.truncate(length);
            Ok(bytes)
        })
        .await
}

async fn write_on(machine: &Machine, path: &Path, how: Opening, contents: Vec<u8>) -> io::Result<()> {
    let file = machine.call(|files| files.open(path, how)).await?;
    if contents.is_empty() {
        return Ok(());
    }
    machine.call(|_| file.write_at(0, &contents)).await
}

async fn remove_on(machine: &Machine, path: PathBuf) -> io::Result<()> {
    if machine.call(|files| files.metadata(&path, false)).await?.kind == FileKind::Link {
        return machine.call(|files| files.remove_file(&path)).await;
    }
    let mut folders = vec![path];
    while let Some(folder) = folders.last() {
        let entries = machine.call(|files| files.entries(folder)).await?;
        let mut inner = Vec::new();
        for entry in entries {
            let path = folder.join(entry.name);
            match entry.kind {
                FileKind::Folder => inner.push(path),
                FileKind::File | FileKind::Link => machine.call(|files| files.remove_file(&path)).await?,
            }
        }
        if inner.is_empty() {
            machine.call(|files| files.remove_folder(folder)).await?;
            folders.pop();
        } else {
            folders.append(&mut inner);
        }
    }
    Ok(())
}
